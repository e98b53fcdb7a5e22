"""Releases: idempotent, in order, nothing skipped, held to what was promised."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, tzinfo
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc import Campaign
from adsbpc.campaign import Running, check_targets, release_slot, start
from adsbpc.errors import AdsbpcError, BudgetError, LedgerError, ReleaseError, SpecError
from adsbpc.ledger import Ledger
from adsbpc.mechanisms import MeasuresState
from adsbpc.model import load_spec
from adsbpc.privacy import Randomness, SecureRandomness, SeededRandomness
from adsbpc.privacy.randomness import Integers
from tests.campaign.files import ADSBPC, PERSONAL, edit, published, stored, write_campaign
from tests.conftest import open_test_engine
from tests.estimates import by_cell


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_campaign(tmp_path)


def test_everything_that_is_over_is_released_in_order(file: Path) -> None:
    released = Campaign.load(file).release()
    assert [one.release.slot for one in released] == [1, 2, 3, 4, 5]
    assert not any(one.replayed for one in released)
    assert stored(file.parent / "ledger.sqlite") == published(file.parent)
    first = released[0].release
    assert (first.starts_at, first.ends_at) == (
        "2026-03-01T00:00:00+00:00",
        "2026-03-02T00:00:00+00:00",
    )
    (measured,) = first.measures
    assert measured.randomness == "opendp"
    assert [e.keys for e in by_cell(measured)] == [("P-1",), ("P-2",), ("other",)]


def test_a_repeated_release_returns_the_stored_bytes(file: Path) -> None:
    campaign = Campaign.load(file)
    first = campaign.release()
    again = Campaign.load(file).release()
    assert [one.text for one in again] == [one.text for one in first]
    assert all(one.replayed for one in again)
    assert campaign.release(3)[0].text == first[2].text
    assert list(campaign.release(through="2026-03-02")) == list(again[:2])


def test_a_replay_needs_no_events(file: Path) -> None:
    campaign = Campaign.load(file)
    first = campaign.release(1)
    (file.parent / "conversions.parquet").unlink()
    assert campaign.release(1)[0].text == first[0].text
    with pytest.raises(AdsbpcError, match=r"conversions\.parquet: found no file"):
        campaign.release(2)


def test_slots_go_in_order(file: Path) -> None:
    with pytest.raises(ReleaseError, match="slot 1 is next"):
        Campaign.load(file).release(3)
    assert not (file.parent / "ledger.sqlite").exists()


def test_an_empty_slot_is_released_and_charged_like_any_other(file: Path) -> None:
    quiet, busy = (one.release for one in Campaign.load(file).release()[1:3])
    assert len(quiet.measures[0].values) == 3
    assert [c.part for c in quiet.charges] == [c.part for c in busy.charges]
    assert Campaign.load(file).status().released == 5


def test_nothing_is_promised_before_the_first_release(file: Path) -> None:
    """A first run that fails leaves the file free to be corrected."""
    (file.parent / "conversions.parquet").rename(file.parent / "later.parquet")
    with pytest.raises(AdsbpcError, match="found no file"):
        Campaign.load(file).release()
    edit(file, '"P-2"]', '"P-2", "P-3"]')
    edit(file, "rho = 1.0", "rho = 0.5")
    edit(file, "conversions.parquet", "later.parquet")
    assert len(Campaign.load(file).release()) == 5


def test_a_report_is_held_to_the_promise_too(file: Path) -> None:
    Campaign.load(file).release(1)
    edit(file, "rho = 1.0", "rho = 0.001")
    for act in (Campaign.load(file).report, Campaign.load(file).status):
        with pytest.raises(LedgerError, match=r"\[privacy\] rho: was 1, is now 0.001"):
            act()


def test_a_rehearsal_charges_nothing(file: Path) -> None:
    found = Campaign.load(file).rehearse()
    assert (found.slot, found.conversions, found.quarantined) == (1, 12, {})
    assert not (file.parent / "ledger.sqlite").exists()


@pytest.mark.parametrize("name", ["acme ", " acme"])
def test_a_scope_with_spaces_at_its_ends_is_refused(file: Path, name: str) -> None:
    edit(file, 'scope = "acme"', f'scope = "{name}"')
    with pytest.raises(SpecError, match="expected no spaces at its ends"):
        load_spec(file)


def test_accents_are_spelled_one_way(file: Path) -> None:
    for spelling in ("caf\u00e9", "cafe\u0301"):
        text = file.read_text()
        file.write_text(re.sub('scope = ".*"', f'scope = "{spelling}"', text))
        assert load_spec(file).campaign.scope == "caf\u00e9"


PROMISES = [
    ("slots = 5", "slots = 6", r"\[campaign\] slots: was 5, is now 6"),
    ('"P-2"]', '"P-2", "P-3"]', r"\[campaign\] publishers"),
    ("start = 2026-03-01", "start = 2026-03-02", r"\[campaign\] start"),
    ('advertiser = "Ad-1"', 'advertiser = "Ad-2"', r"\[campaign\] advertiser"),
    ("rho = 1.0", "rho = 2.0", r"\[privacy\] rho: was 1, is now 2"),
    ("rho = 1.0", "rho = 1.0\nadjacency = 'substitute'", "adjacency"),
    (ADSBPC, f"{ADSBPC}\n[privacy.adsbpc]\nbounds = 'svt'", r"\[privacy\] adsbpc"),
    ('model = "uniform"', 'model = "last_touch"', r"\[attribution\] model: was 'uniform'"),
    ('queries = "prefix"', 'queries = "slot"', r"\[workload\] queries"),
    ("[attribution]", "[events.impression_columns]\nuser_id = 'device'\n[attribution]",
     r"\[events.impression_columns\] user_id: was 'user_id', is now 'device'"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "message"), PROMISES)
def test_a_changed_promise_is_refused(file: Path, before: str, after: str, message: str) -> None:
    Campaign.load(file).release(1)
    edit(file, before, after)
    with pytest.raises(LedgerError, match=message):
        Campaign.load(file).release()
    assert list(stored(file.parent / "ledger.sqlite")) == [1]


HARMLESS = [
    ("threads = 1", "threads = 2"),
    ("rho = 1.0", "rho = 1.00\ndelta = 1e-9\nscope_rho = 1.0\nadjacency = 'add-remove'"),
    ('model = "uniform"', 'model = "uniform"\nclick_lookback = "720h"'),
    ('queries = "prefix"', 'queries = "prefix"\n[[workload]]\nqueries = "sliding"\nwindow = 2'),
    ("impressions.parquet", "*pressions.parquet"),
]


@pytest.mark.parametrize(("before", "after"), HARMLESS)
def test_harmless_changes_are_allowed(file: Path, before: str, after: str) -> None:
    first = Campaign.load(file).release(1)
    edit(file, before, after)
    assert Campaign.load(file).release()[0].text == first[0].text
    assert Campaign.load(file).status().released == 5


def test_a_changed_limit_of_the_scope_is_refused(file: Path) -> None:
    Campaign.load(file).release(1)
    edit(file, "rho = 1.0", "rho = 1.0\nscope_rho = 5")
    with pytest.raises(LedgerError, match=r"has a limit of 1, and \[privacy\] scope_rho says 5"):
        Campaign.load(file).release()


def test_a_second_campaign_must_fit_into_the_scope(file: Path) -> None:
    Campaign.load(file).release(1)
    second = file.with_name("summer.toml")
    second.write_text(file.read_text().replace('name = "spring"', 'name = "summer"'))
    with pytest.raises(BudgetError, match="requested 1, spent 1, left 0"):
        Campaign.load(second).release()


def test_a_slot_that_is_not_over_is_refused(file: Path) -> None:
    edit(file, "start = 2026-03-01", "start = 2149-01-01")
    campaign = Campaign.load(file)
    assert len(campaign.release()) == 0
    with pytest.raises(ReleaseError, match=r"slot 1: lasts until 2149-01-02.* no slot is over"):
        campaign.release(1)
    with pytest.raises(ReleaseError, match=r"slot 3: lasts until 2149-01-04"):
        campaign.release(through=date(2149, 1, 3))


def test_through_a_date(file: Path) -> None:
    campaign = Campaign.load(file)
    assert campaign.due(through="2026-03-02") == range(1, 3)
    assert campaign.due(through=date(2026, 3, 2)) == range(1, 3)
    assert campaign.due(through="2026-03-02T10:00") == range(1, 3)
    assert campaign.due(through="2026-12-31") == range(1, 6)
    for through, message in (
        ("2026-02-28", "is before the campaign starts"),
        ("soon", "expected a date such as"),
    ):
        with pytest.raises(SpecError, match=message):
            campaign.due(through=through)
    with pytest.raises(SpecError, match="from 1 to 5"):
        campaign.due(slot=6)
    with pytest.raises(SpecError, match="not both"):
        campaign.due(1, "2026-03-02")
    for odd in ("1", 1.0, True):
        with pytest.raises(SpecError, match="expected a whole number"):
            campaign.due(slot=odd)  # type: ignore[arg-type]


def test_through_an_hour(tmp_path: Path) -> None:
    campaign = Campaign.load(write_campaign(tmp_path, 48, "1h"))
    assert campaign.due(through="2026-03-01") == range(1, 25)
    assert campaign.due(through="2026-03-01T03:30") == range(1, 5)
    assert campaign.due(through="2026-03-01T03:30+01:00") == range(1, 4)


def _in_weeks(tmp_path: Path, slots: int) -> Path:
    """Days from Sunday, 1 March 2026, released by the week."""
    file = write_campaign(tmp_path, 7 * slots)
    edit(file, f"slots = {7 * slots}", f'slots = {slots}\nweek_starts = "sunday"')
    edit(file, 'slot = "1d"', 'slot = "1w"')
    return file


def test_through_a_week(tmp_path: Path) -> None:
    """A day means the week that it is in, which must be over."""
    campaign = Campaign.load(_in_weeks(tmp_path, 3))
    for day, slots in (("01", 1), ("07", 1), ("08", 2), ("11", 2), ("14", 2), ("15", 3), ("31", 3)):
        assert campaign.due(through=f"2026-03-{day}") == range(1, slots + 1)
    assert campaign.due(through="2026-03-08T00:00") == range(1, 3)
    assert campaign.due(through="2026-03-08T00:00+01:00") == range(1, 2)


def test_a_week_that_is_not_over_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wednesday(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Wednesday:
            return cls(2026, 3, 18, 12, tzinfo=tz)

    monkeypatch.setattr("adsbpc.campaign.due_slots.datetime", Wednesday)
    campaign = Campaign.load(_in_weeks(tmp_path, 4))
    assert campaign.due() == campaign.due(through="2026-03-14") == range(1, 3)
    with pytest.raises(ReleaseError, match=r"slot 3: lasts until 2026-03-22T00:00:00\+00:00"):
        campaign.due(through="2026-03-17")


def test_weeks_and_months_are_released(tmp_path: Path) -> None:
    weekly = Campaign.load(_in_weeks(tmp_path / "weeks", 2))
    weekly.release()
    report = weekly.report()
    assert [(r.starts_at[:10], r.ends_at[:10]) for r in report.releases] == [
        ("2026-03-01", "2026-03-08"),
        ("2026-03-08", "2026-03-15"),
    ]
    assert str(report.table().title).endswith("after week 2 of 2")
    file = write_campaign(tmp_path / "months", 61)
    edit(file, "slots = 61", "end = 2026-04-30")
    edit(file, 'slot = "1d"', 'slot = "1mo"')
    monthly = Campaign.load(file)
    monthly.release()
    released = monthly.report().releases
    assert [r.ends_at[:10] for r in released] == ["2026-04-01", "2026-05-01"]
    assert monthly.verify().problem is None
    assert monthly.audit().held


def test_what_a_file_lists_is_promised(tmp_path: Path) -> None:
    """The names, wherever they stand: they may move to a file, and must stay as they were."""
    file = write_campaign(tmp_path, 2)
    Campaign.load(file).release(slot=1)
    edit(file, '["P-1", "P-2"]', '"names.txt"')
    names = tmp_path / "names.txt"
    names.write_text("# public\nP-1\nP-2\n")
    Campaign.load(file).release(slot=2)
    for text in ("P-1\n", "P-2\nP-1\n", "P-1\nP-2\nP-3\n"):
        names.write_text(text)
        with pytest.raises(LedgerError, match="its file promises something else now") as refused:
            Campaign.load(file).status()
        assert "[campaign] publishers: was ['P-1', 'P-2'], is now" in str(refused.value)


def test_the_list_of_publishers_is_not_overwritten(tmp_path: Path) -> None:
    file = write_campaign(tmp_path, 2)
    edit(file, '["P-1", "P-2"]', '"names.txt"')
    (tmp_path / "names.txt").write_text("P-1\n")
    with pytest.raises(SpecError, match="a list of publishers"):
        check_targets([tmp_path / "names.txt"], load_spec(file), file)


class Pretender(SeededRandomness):
    """Says of itself what the ledger wants to hear."""

    source = "opendp"


class Subclass(SecureRandomness):
    """Secure but for one sampler."""

    def gaussian(self, scale: float, size: int) -> Integers:
        return np.zeros(size, dtype=np.int64)


@pytest.mark.parametrize("privacy", ["", PERSONAL], ids=["adsbpc", "personal-budget"])
@pytest.mark.parametrize(
    "randomness",
    [SeededRandomness(1), Pretender(1), Subclass()],
    ids=lambda each: type(each).__name__,
)
def test_other_noise_never_reaches_the_ledger(
    randomness: Randomness, privacy: str, tmp_path: Path
) -> None:
    """A source is known by its type, whatever it says and whatever it is derived from."""
    file = write_campaign(tmp_path, privacy=privacy)
    spec = load_spec(file)
    ledger = Ledger(spec.ledger.location, spec.directory)
    running, engine = start(spec, ledger), open_test_engine("duckdb")
    name = type(randomness).__name__
    with pytest.raises(LedgerError, match=rf"came from '[a-z_.]*{name}', which hides nobody"):
        release_slot(running, 1, lambda: engine, randomness)
    engine.close()
    assert not ledger.exists()
    assert published(file.parent) == {}


def test_a_slot_that_somebody_commits_meanwhile_is_returned(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right before the state is read, another process releases the same slot."""
    spec = load_spec(file)
    running = start(spec, Ledger(spec.ledger.location, spec.directory))
    read = Running.state
    others: list[str] = []

    def slow_state(self: Running) -> MeasuresState:
        if not others:
            others.append("")
            others[0] = Campaign.load(file).release(1)[0].text
        return read(self)

    monkeypatch.setattr(Running, "state", slow_state)
    engine = open_test_engine("duckdb")
    released = release_slot(running, 1, lambda: engine, SecureRandomness())
    engine.close()
    assert released.replayed
    assert released.text == others[0]


def test_counts_for_the_operator_are_not_in_the_release(file: Path) -> None:
    table = pq.read_table(file.parent / "conversions.parquet")
    users = [None if k == 0 else user for k, user in enumerate(table["user_id"].to_pylist())]
    table = table.set_column(0, "user_id", pa.array(users, pa.string()))
    pq.write_table(table, file.parent / "conversions.parquet")
    (released,) = Campaign.load(file).release(1)
    assert released.conversions == 11
    assert released.quarantined == {("conversions", "no user"): 1}
    body = json.loads(released.text)
    assert not {"conversions", "quarantined"} & body.keys()


@pytest.mark.parametrize("bounds", ["svt", "fixed", "histogram"])
def test_every_tracker_goes_on_from_the_ledger(bounds: str, tmp_path: Path) -> None:
    extra = "bound = 2" if bounds == "fixed" else "quantile_slots = 2" if bounds == "svt" else ""
    section = f"[privacy.adsbpc]\nbounds = '{bounds}'\n{extra}"
    file = write_campaign(tmp_path, privacy=section)
    for slot in range(1, 6):
        (released,) = Campaign.load(file).release(slot)
        assert released.release.slot == slot
    assert Campaign.load(file).verify().problem is None
    budget = Campaign.load(file).status().campaign_budget
    assert 0.99 < budget.spent <= 1


def test_a_running_campaign_keeps_the_budgets_it_started_with(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of a solver may find other last digits; the plan is in the ledger."""
    Campaign.load(file).release(1)

    def other_solver(*_: Any) -> None:
        raise AssertionError("planned anew")

    monkeypatch.setattr("adsbpc.mechanisms.planning.slot_budgets", other_solver)
    assert len(Campaign.load(file).release()) == 5
