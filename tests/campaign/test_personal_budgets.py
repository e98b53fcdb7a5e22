"""Campaigns under personal budgets: they go on with the plan that they started with, may start from
an earlier campaign, and are the same on both engines."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adsbpc import Campaign
from adsbpc.campaign import start
from adsbpc.campaign.promise import promise_of
from adsbpc.errors import AdsbpcError, BudgetError, LedgerError, PrivacyError, SpecError
from adsbpc.ledger import Ledger
from adsbpc.mechanisms import BudgetByRows, plan_measures
from adsbpc.mechanisms.by_rows.planning import starting_from
from adsbpc.model import CampaignSpec, Release, StoredPlan, load_spec
from adsbpc.privacy import Strategy, identity
from tests.campaign.book_files import committed, kept, rows_of, steps
from tests.campaign.files import ADSBPC, FIXED, PERSONAL, edit, published, stored, write_campaign
from tests.compatibility.making import seeded_noise
from tests.conftest import SPARK_OPTIONS
from tests.effort import first


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_campaign(tmp_path, privacy=PERSONAL)


def mechanism_of(file: Path) -> BudgetByRows:
    """As a release would run it now."""
    spec = load_spec(file)
    found = start(spec, Ledger(spec.ledger.location, spec.directory)).measures.runs[0][1]
    assert isinstance(found, BudgetByRows)
    return found


# ---- the plan that a campaign started with -----------------------------------------------------


def test_releases_one_by_one_are_those_of_one_run(tmp_path: Path) -> None:
    whole, parts = (write_campaign(tmp_path / name, privacy=FIXED) for name in ("whole", "parts"))
    Campaign.load(whole).release()
    for slot in range(1, 6):
        Campaign.load(parts).release(slot)
    assert kept(whole.parent) == kept(parts.parent)
    for one, other in zip(committed(whole.parent), committed(parts.parent), strict=True):
        assert rows_of(one, ["cells.parquet"]) == rows_of(other, ["cells.parquet"])
    budget = Campaign.load(whole).status().campaign_budget
    assert 0.99 < budget.spent <= 1


def test_a_running_campaign_keeps_its_strategy(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version of the solver may find another one, or other budgets; the plan is in the
    ledger."""
    first = Campaign.load(file).release(1)
    started = mechanism_of(file)

    def other_solver(asked: Any, _recurrence: float) -> Strategy:
        return identity(len(asked))

    def other_budgets(rho: Fraction, slots: int) -> tuple[Fraction, ...]:
        return (rho / slots,) * slots

    monkeypatch.setattr("adsbpc.mechanisms.strategy_choice.optimised", other_solver)
    monkeypatch.setattr("adsbpc.mechanisms.by_rows.planning._paced", other_budgets)
    anew = plan_measures(load_spec(file)).runs[0][1]
    assert isinstance(anew, BudgetByRows)
    assert anew.strategy != started.strategy
    assert anew.fingerprint != started.fingerprint
    again = mechanism_of(file)
    assert again.strategy == started.strategy
    assert again.slot_rho == started.slot_rho != anew.slot_rho
    assert again.fingerprint == started.fingerprint
    released = Campaign.load(file).release()
    assert released[0].text == first[0].text
    assert {step["plan"] for step in steps(file.parent)} == {started.fingerprint}
    # The noise of later slots is that strategy's too.
    inverse = np.linalg.inv(started.strategy.matrix.astype(float)).sum(axis=0)
    last = released[-1].release.measures[0].running_totals[1]
    fine = np.array(
        [
            [max(1, step["multipliers"][0] * size // 64) for size in step["sizes"]]
            for step in steps(file.parent)
        ]
    )
    noise = np.linalg.norm(inverse[:, None] / fine, axis=0) * started.measurement.scale
    if last.added == 0:
        assert last.errors == pytest.approx(noise * started.unit_value)
    assert (np.array(last.errors) >= 0.999 * noise * started.unit_value).all()


CHANGES = [
    ("heavy_user = 20", "heavy_user = 21", "'heavy_user': 20.*'heavy_user': 21"),
    ("heavy_user = 20", "heavy_user = 20\nstrategy = 'identity'", "'optimised'.*'identity'"),
    ("heavy_user = 20", "heavy_user = 20\nallowance = 2.0", "'allowance': None.*'allowance': 2.0"),
    ("heavy_user = 20", "heavy_user = 20\nhistogram_share = 0.1", "None.*'histogram_share': 0.1"),
    ("heavy_user = 20", "heavy_user = 20\nprevious = 'x'", "'previous': None.*'previous': 'x'"),
]


@pytest.mark.parametrize(("before", "after", "message"), CHANGES)
def test_changed_parameters_are_refused(before: str, after: str, message: str, file: Path) -> None:
    edit(file, PERSONAL, f"{PERSONAL}\n[privacy.personal_budget]\nheavy_user = 20")
    Campaign.load(file).release(1)
    edit(file, before, after)
    for act in (Campaign.load(file).release, Campaign.load(file).report):
        with pytest.raises(LedgerError, match=rf"\[privacy\] personal_budget: was .*{message}"):
            act()
    assert list(stored(file.parent / "ledger.sqlite")) == [1]


def test_a_default_may_be_written_down(file: Path) -> None:
    Campaign.load(file).release(1)
    edit(file, PERSONAL, f"{PERSONAL}\n[privacy.personal_budget]\nstrategy = 'optimised'")
    assert len(Campaign.load(file).release()) == 5


@pytest.mark.parametrize("started", [PERSONAL, ADSBPC])
@pytest.mark.parametrize(
    "stated", first(1, [{"heavy_user": 20, "histogram_share": 0.04}, {"heavy_user": 20}, {}])
)
def test_what_a_file_leaves_out_stays_as_it_was(
    stated: dict[str, float], started: str, tmp_path: Path
) -> None:
    """Whatever leaving it out would mean for a new campaign."""
    lines = "\n".join(f"{key} = {value}" for key, value in stated.items())
    guess = f"\n[privacy.personal_budget]\n{lines}" if stated else ""
    file = write_campaign(tmp_path, privacy=started + guess)
    Campaign.load(file).release(1)
    edit(file, started + guess, "")
    campaign = Campaign.load(file)
    named = started.split('"')[1]
    assert campaign.plan().mechanism == named
    assert {each.release.measures[0].mechanism for each in campaign.release()} == {named}
    assert len(campaign.report().releases) == 5
    record = Ledger("ledger.sqlite", tmp_path).campaign("acme", "spring")
    assert record is not None
    promised = record.promise["privacy"]["personal_budget"]
    for key in ("heavy_user", "histogram_share"):
        assert promised[key] == stated.get(key)


@pytest.mark.parametrize(("before", "after"), [(ADSBPC, PERSONAL), (PERSONAL, ADSBPC)])
def test_the_mechanism_stays(before: str, after: str, tmp_path: Path) -> None:
    file = write_campaign(tmp_path, privacy=before)
    Campaign.load(file).release(1)
    edit(file, f"rho = 1.0\n{before}", f"rho = 1.0\n{after}")
    was, now = before.split('"')[1], after.split('"')[1]
    with pytest.raises(LedgerError, match=rf"\[privacy\] mechanism: was '{was}', is now '{now}'"):
        Campaign.load(file).release()
    assert list(stored(tmp_path / "ledger.sqlite")) == [1]


def test_campaigns_of_both_mechanisms_share_a_scope(file: Path) -> None:
    edit(file, "rho = 1.0", "rho = 1.0\nscope_rho = 2.0")
    others = [file.with_name(f"{name}.toml") for name in ("summer", "autumn")]
    for other in others:
        other.write_text(file.read_text().replace('"spring"', f'"{other.stem}"'))
        edit(other, PERSONAL, "")
    Campaign.load(file).release()
    Campaign.load(others[0]).release()
    with pytest.raises(BudgetError, match="requested 1, spent 2, left 0"):
        Campaign.load(others[1]).release()
    for each in (file, others[0]):
        assert Campaign.load(each).verify().problem is None
    assert 1.98 < Campaign.load(file).status().scope_budget.spent <= 2


def test_a_ledger_of_an_earlier_version_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It kept no strategies, and knew of one mechanism only."""

    def as_it_was(record: Any) -> dict[str, Any]:
        if isinstance(record, StoredPlan):
            return {"slot_pico_rho": record.slot_pico_rho}
        return asdict(record)

    def as_it_promised(spec: CampaignSpec) -> dict[str, Any]:
        return {**promise_of(spec), "privacy": {"rho": 1.0}}

    file = write_campaign(tmp_path)
    with monkeypatch.context() as earlier:
        earlier.setattr("adsbpc.ledger.rows.asdict", as_it_was)
        earlier.setattr("adsbpc.campaign.release.promise_of", as_it_promised)
        first = Campaign.load(file).release(1)
    edit(file, ADSBPC, "")
    record = Ledger("ledger.sqlite", tmp_path).campaign("acme", "spring")
    assert record is not None
    assert len(record.plan.slot_pico_rho) == 5
    assert (record.plan.strategy, record.plan.start) == ((), None)
    assert not {"mechanism", "personal_budget"} & record.promise["privacy"].keys()
    released = Campaign.load(file).release()
    assert len(released) == 5
    assert released[0].text == first[0].text
    assert Campaign.load(file).verify().problem is None
    assert not (tmp_path / "adsbpc-books").exists()


# ---- an earlier campaign ------------------------------------------------------------------------

PREVIOUS = "adsbpc-releases/acme/spring"


def summer(file: Path, previous: str, name: str = "summer") -> Path:
    """Another campaign beside one, in a scope of its own, that starts from releases."""
    other = file.with_name(f"{name}.toml")
    other.write_text(
        file.read_text().replace('"spring"', f'"{name}"').replace('"acme"', f'"{name}"')
    )
    edit(other, "heavy_user = 1", f'heavy_user = 1\nprevious = "{previous}"')
    return other


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    """A campaign with so many people that their needs show in the histograms."""
    section = f"{PERSONAL}\n[privacy.personal_budget]\nheavy_user = 1"
    return write_campaign(tmp_path, 8, privacy=section, conversions_per_slot=600)


def test_a_campaign_starts_from_an_earlier_one(crowd: Path) -> None:
    # Of some draws the first look is so far above the start that it is believed.
    with seeded_noise():
        _start_from_an_earlier_one(crowd)


def _start_from_an_earlier_one(crowd: Path) -> None:
    Campaign.load(crowd).release()
    releases = tuple(Release.from_text(text) for _, text in sorted(published(crowd.parent).items()))
    unstarted = plan_measures(load_spec(crowd)).runs[0][1]
    assert isinstance(unstarted, BudgetByRows)
    assert unstarted.chooser is not None
    earlier = tuple(release.measures[0] for release in releases)
    expected = starting_from(unstarted, earlier).allowance
    # The histograms show more than the public guess.
    assert expected is not None
    assert expected > 2 * unstarted.limit().usual
    second = summer(crowd, PREVIOUS)
    assert Campaign.load(second).plan().bound == expected
    # Allowances that go with whole multipliers.
    own = unstarted.measurement
    whole = own.allowance_of(own.multiplier_of(expected))
    assert Campaign.load(second).release(1)[0].release.measures[0].allowance == whole
    assert Campaign.load(second).status().allowance == whole
    # What it started with is in the ledger: the earlier releases may go.
    shutil.move(crowd.parent / PREVIOUS, crowd.parent / "archive")
    assert mechanism_of(second).allowance == expected
    assert len(Campaign.load(second).release()) == 8
    with pytest.raises(SpecError, match="has no releases"):
        Campaign.load(summer(crowd, PREVIOUS, "autumn")).release()


@pytest.mark.slow
def test_in_the_same_scope_if_there_is_room(crowd: Path) -> None:
    edit(crowd, "rho = 1.0", "rho = 1.0\nscope_rho = 2.0")
    Campaign.load(crowd).release(1)
    second = summer(crowd, PREVIOUS)
    edit(second, 'scope = "summer"', 'scope = "acme"')
    third = summer(crowd, PREVIOUS, "autumn")
    edit(third, 'scope = "autumn"', 'scope = "acme"')
    assert len(Campaign.load(second).release()) == 8
    with pytest.raises(BudgetError, match="requested 1, spent 2, left 0"):
        Campaign.load(third).release()


def nothing(_folder: Path) -> None:
    pass


def empty(folder: Path) -> None:
    folder.mkdir(parents=True)


def broken(folder: Path) -> None:
    empty(folder)
    (folder / "0001.json").write_text('{"scope": ')


def not_a_release(folder: Path) -> None:
    empty(folder)
    (folder / "0001.json").write_text('{"scope": "acme", "position": 6}')


def not_a_text(folder: Path) -> None:
    empty(folder)
    (folder / "0001.json").write_bytes(b"\xff\xfe\xfd")


def of_adsbpc(folder: Path) -> None:
    other = write_campaign(folder.parent / "other", 2)
    Campaign.load(other).release()
    shutil.copytree(other.parent / PREVIOUS, folder)


def of_a_fixed_allowance(folder: Path) -> None:
    other = write_campaign(folder.parent / "other", 2, privacy=FIXED)
    Campaign.load(other).release()
    shutil.copytree(other.parent / PREVIOUS, folder)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (nothing, SpecError, "previous = 'earlier': has no releases. Name the folder of"),
        (empty, SpecError, "previous = 'earlier': has no releases. Name the folder of"),
        (broken, SpecError, "previous = 'earlier': holds a release that cannot be read"),
        (not_a_release, SpecError, "previous = 'earlier': holds a release that cannot be read"),
        (not_a_text, SpecError, "previous = 'earlier': holds a release that cannot be read"),
        (of_adsbpc, PrivacyError, "have no histograms of personal budgets. Name the folder"),
        (of_a_fixed_allowance, PrivacyError, "have no histograms of personal budgets. Name the"),
    ],
)
def test_releases_that_nothing_can_start_from(
    make: Callable[[Path], None], kind: type[AdsbpcError], message: str, tmp_path: Path
) -> None:
    section = f"{PERSONAL}\n[privacy.personal_budget]\nprevious = 'earlier'"
    file = write_campaign(tmp_path, privacy=section)
    make(tmp_path / "earlier")
    for act in (Campaign.load(file).plan, Campaign.load(file).release):
        with pytest.raises(kind, match=message) as caught:
            act()
        assert caught.value.exit_code == 2
    assert not (tmp_path / "ledger.sqlite").exists()


def test_the_command_says_so(tmp_path: Path) -> None:
    section = f"{PERSONAL}\n[privacy.personal_budget]\nprevious = 'earlier'"
    file = write_campaign(tmp_path, privacy=section)
    for command in ("plan", "release"):
        done = subprocess.run(
            [sys.executable, "-m", "adsbpc", command, file.name],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        assert "previous = 'earlier': has no releases" in done.stderr


# ---- engines ------------------------------------------------------------------------------------


@pytest.mark.spark
def test_the_same_books_on_duckdb_and_spark(tmp_path: Path) -> None:
    """With a fixed allowance what is let in does not depend on noise; on both it is the same, for
    every person."""
    spark = "\n".join(f'"{key}" = {json.dumps(value)}' for key, value in SPARK_OPTIONS.items())
    for engine, options in (("duckdb", "threads = 2"), ("spark", spark)):
        file = write_campaign(tmp_path / engine, 3, engine=engine, options=options, privacy=FIXED)
        assert len(Campaign.load(file).release()) == 3
        assert Campaign.load(file).verify().problem is None
    totals = kept(tmp_path / "duckdb")
    assert totals == kept(tmp_path / "spark")
    # Something was kept and something cut; the second slot is empty.
    assert all(totals[0] + totals[2])
    assert totals[1] == [0, 0, 0, 0]
    for one, other in zip(
        committed(tmp_path / "duckdb"), committed(tmp_path / "spark"), strict=True
    ):
        found = [
            rows_of(folder, [each.name for each in folder.iterdir()]) for folder in (one, other)
        ]
        assert found[0] == found[1]


@pytest.mark.spark
def test_a_campaign_that_changes_to_spark(tmp_path: Path) -> None:
    """Books are files that either engine reads."""
    undisturbed = write_campaign(tmp_path / "undisturbed", 3, privacy=FIXED)
    Campaign.load(undisturbed).release()
    spark = "\n".join(f'"{key}" = {json.dumps(value)}' for key, value in SPARK_OPTIONS.items())
    file = write_campaign(tmp_path / "changed", 3, privacy=FIXED)
    on_duckdb = file.read_text()
    on_spark = on_duckdb.replace('"duckdb"', '"spark"').replace("threads = 1", spark)
    for slot, text in ((1, on_duckdb), (2, on_spark), (3, on_duckdb)):
        file.write_text(text)
        Campaign.load(file).release(slot)
    assert kept(file.parent) == kept(undisturbed.parent)
