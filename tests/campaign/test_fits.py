"""Campaigns with a fitted attribution model: the fit is charged and made once, stored with its
release, reused; parameters may come from elsewhere if they are declared public."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq
import pytest

from adsbpc import Campaign
from adsbpc.attribution import fitted_model, journeys_of
from adsbpc.attribution.counts import Coalitions
from adsbpc.attribution.reference import Conversion, Impression
from adsbpc.attribution.reference import attribute as plain_attribute
from adsbpc.campaign import attribute
from adsbpc.campaign.fits import make_fit
from adsbpc.engines import open_engine
from adsbpc.errors import LedgerError, PrivacyError, SpecError
from adsbpc.mechanisms import plan_measures
from adsbpc.model import Fit, load_spec
from adsbpc.model.attribution_spec import FittedModelName
from adsbpc.privacy import COUNT_UNITS
from tests.campaign.files import PERSONAL, edit, published, stored, write_campaign
from tests.campaign.onlooker import Onlooker
from tests.campaign.test_kills import lines_of, states_of
from tests.campaign.test_races import race
from tests.campaign.victims import Point, die_at, victim
from tests.conftest import SPARK_OPTIONS
from tests.effort import first
from tests.mechanisms.recording import RecordingRandomness

MODELS = get_args(FittedModelName)
OWN = "rho = 0.05\nslots = 2"


def with_fit(directory: Path, model: str = "shapley", fit: str = OWN, **options: object) -> Path:
    """Five slots; the fit is made in the second, which has no conversions of its own."""
    file = write_campaign(directory, model=model, **options)  # type: ignore[arg-type]
    edit(file, "\n[privacy]\n", f"\n[attribution.fit]\n{fit}\n\n[privacy]\n")
    return file


def fit_in(file: Path, slot: int = 2) -> Fit:
    fit = json.loads(published(file.parent)[slot])["fit"]
    return Fit.model_validate_json(json.dumps(fit))


# ---- one fit, one charge -----------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("privacy", first(1, ["", PERSONAL]), ids=["adsbpc", "personal-budget"])
def test_the_fit_is_made_once_and_charged_once(model: str, privacy: str, tmp_path: Path) -> None:
    file = with_fit(tmp_path, model, privacy=privacy)
    Campaign.load(file).release()
    releases = {slot: json.loads(text) for slot, text in published(tmp_path).items()}
    assert [release["fit"] is not None for release in releases.values()] == [
        False, True, False, False, False,
    ]  # fmt: skip
    assert [release["attribution"] for release in releases.values()] == [
        "shapley_path", "shapley_path", model, model, model,
    ]  # fmt: skip
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as ledger:
        charged = ledger.execute(
            "SELECT slot, pico_rho FROM adsbpc_entries WHERE part = 'attribution fit'"
        ).fetchall()
    ((slot, pico_rho),) = charged
    assert slot == 2
    assert 0.0499 * 10**12 < pico_rho <= 0.05 * 10**12
    budget = Campaign.load(file).status().campaign_budget
    assert 0.98 < budget.spent <= 1
    assert stored(tmp_path / "ledger.sqlite") == published(tmp_path)
    again = Campaign.load(file).release()
    assert all(released.replayed for released in again)
    assert Campaign.load(file).verify().problem is None


def test_measuring_has_what_the_fit_leaves(tmp_path: Path) -> None:
    file = with_fit(tmp_path)
    spec = load_spec(file)
    assert float(plan_measures(spec).runs[0][1].guarantee.rho) == 0.95
    planned = Campaign.load(file).plan()
    assert float(planned.promise.guarantee.rho) == 1.0
    assert float(sum(planned.split.values())) == 1.0
    assert float(planned.split["attribution fit"]) == 0.05


def test_a_fit_that_leaves_nothing_is_refused(tmp_path: Path) -> None:
    file = with_fit(tmp_path, fit="rho = 1.0\nslots = 2")
    with pytest.raises(PrivacyError, match="leaves nothing"):
        Campaign.load(file).release()
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize(("adjacency", "factor"), [("add-remove", 1), ("substitute", 2)])
def test_noise_of_the_counts(adjacency: str, factor: int, tmp_path: Path) -> None:
    file = with_fit(tmp_path, privacy=f'adjacency = "{adjacency}"')
    randomness = RecordingRandomness()
    engine = open_engine("duckdb", {})
    try:
        fit, charge = make_fit(load_spec(file), engine, randomness)
    finally:
        engine.close()
    (scale,) = randomness.scales("gaussian")
    assert scale == fit.scale == pytest.approx(COUNT_UNITS * (factor / 0.1) ** 0.5)
    assert charge.pico_rho == 50_000_000_000
    # Twelve users, each in one coalition; nobody converted without a click.
    assert sum(fit.values) == 12 * COUNT_UNITS
    assert len(fit.values) == len(Coalitions(3).cells)


# ---- credits -----------------------------------------------------------------------------------


@pytest.mark.parametrize("engine_name", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_credits_follow_from_the_released_parameters(engine_name: str, tmp_path: Path) -> None:
    file = with_fit(tmp_path, "markov")
    Campaign.load(file).release()
    spec, fit = load_spec(file), fit_in(file)
    engine = open_engine(engine_name, SPARK_OPTIONS if engine_name == "spark" else {})
    try:
        credits = attribute(spec, engine, 4, fit).credits
        found = engine.rows("credits", f"SELECT user_id, publisher_id, credit_units FROM {credits}")
    finally:
        engine.close()
    events = {
        name: pq.read_table(tmp_path / f"{name}.parquet").to_pylist()
        for name in ("impressions", "conversions")
    }
    impressions = [
        Impression(
            row["user_id"], row["publisher_id"], int(row["timestamp"].timestamp() * 1e6), True
        )
        for row in events["impressions"]
    ]
    conversions = [
        Conversion(row["user_id"], f"{number}", at, at)
        for number, row in enumerate(events["conversions"])
        for at in [int(row["timestamp"].timestamp() * 1e6)]
    ]
    expected = plain_attribute(
        impressions, conversions, spec.grid, journeys_of(spec.attribution), fitted_model(fit), 1_000
    )
    of_slot = [(c.user_id, c.publisher_id, c.credit_units) for c in expected if c.slot == 4]
    assert sorted(found) == sorted(of_slot)


def test_all_slots_together_are_the_slots_one_by_one(tmp_path: Path) -> None:
    """Those before the fit with the fallback, the others with the model."""
    file = with_fit(tmp_path, "incremental_value", fit=f'{OWN}\nfallback = "last_touch"')
    Campaign.load(file).release()
    spec, fit = load_spec(file), Campaign.load(file).fit()
    columns = "SELECT user_id, slot, publisher_id, credit_units FROM"
    engine = open_engine("duckdb", {})
    try:
        credits = attribute(spec, engine, None, fit).credits
        together = sorted(engine.rows("credits", f"{columns} {credits}"))
        apart = []
        for slot in range(1, 6):
            credits = attribute(spec, engine, slot, fit).credits
            apart += engine.rows("credits", f"{columns} {credits}")
    finally:
        engine.close()
    assert together == sorted(apart)
    assert len(together) > 40


def test_nothing_to_fit_from(tmp_path: Path) -> None:
    """No conversion, no impression: noise alone, and the campaign goes on."""
    file = with_fit(tmp_path)
    for name in ("impressions.parquet", "conversions.parquet"):
        pq.write_table(pq.read_table(tmp_path / name).slice(0, 0), tmp_path / name)
    assert len(Campaign.load(file).release()) == 5
    assert len(fit_in(file).values) == 14


# ---- kills and races ---------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("points_of", "at_least"),
    [(states_of, 5), pytest.param(lines_of, 20, marks=pytest.mark.slow)],
    ids=["every state", "every line"],
)
def test_killed_in_a_fit(
    points_of: Callable[[Path, int], list[Point]], at_least: int, tmp_path: Path
) -> None:
    started = with_fit(tmp_path / "started")
    Campaign.load(started).release(1)

    def copy(name: str) -> Path:
        shutil.copytree(started.parent, tmp_path / name)
        return tmp_path / name / started.name

    points = points_of(copy("traced"), 2)
    if points_of is lines_of:
        points = [point for point in points if point[0].endswith("fits.py")]
    assert len(points) > at_least

    def die(number: int, point: Point) -> int:
        file = copy(str(number))
        onlooker = Onlooker(file, "ledger.sqlite")
        process = victim(die_at, file, 2, point)
        process.join()
        found = onlooker.look()
        onlooker.finish(3)
        assert sum(json.loads(text)["fit"] is not None for text in onlooker.seen) == 1
        shutil.rmtree(file.parent)
        return found

    committed = [die(number, point) for number, point in enumerate(points)]
    # Lines of the fit itself come before the commit.
    assert committed.count(1) == len(points) if points_of is lines_of else set(committed) == {1, 2}


@pytest.mark.slow
def test_eight_processes_make_one_fit(tmp_path: Path) -> None:
    file = with_fit(tmp_path)
    Campaign.load(file).release(1)
    found = race(file, 2)
    assert len({text for text, _ in found}) == 1
    assert [replayed for _, replayed in found].count(False) == 1
    found = race(file, 3)
    assert len({text for text, _ in found}) == 1


# ---- campaign files ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "fit", "message"),
    [
        ("shapley", "rho = 0.05", "belong together"),
        ("shapley", "slots = 2", "belong together"),
        ("shapley", "rho = 0.05\nslots = 5", "serves the slots after it"),
        ("shapley", 'rho = 0.05\nslots = 2\nprevious = "x"', "give either"),
        ("shapley", 'previous = "x"\nparameters = "y"', "give either"),
        ("shapley", 'previous = "x"\nfallback = "uniform"', "fallback belongs to a fit"),
        ("shapley", 'rho = 0.05\nslots = 2\nfallback = "markov"', "fallback"),
        ("shapley", "rho = 0.0000000000001\nslots = 2", "rho"),
        ("uniform", OWN, "needs no fit"),
        ('markov"\norder = 9 #"', OWN, "order 1 or 2 or 3"),
        ('shapley"\norder = 2 #"', OWN, "no order"),
        ("markov", f'{OWN}\nholdout = "x"', "holdout"),
    ],
)
def test_campaign_files_that_do_not_add_up(
    model: str, fit: str, message: str, tmp_path: Path
) -> None:
    file = with_fit(tmp_path, model, fit)
    with pytest.raises(SpecError, match=message):
        load_spec(file)


def test_a_fitted_model_needs_a_fit(tmp_path: Path) -> None:
    file = write_campaign(tmp_path, model="markov")
    with pytest.raises(SpecError, match=r"add \[attribution.fit\]"):
        load_spec(file)


def test_too_many_publishers_for_coalitions(tmp_path: Path) -> None:
    file = with_fit(tmp_path)
    names = ", ".join(f'"P-{k}"' for k in range(70))
    edit(file, '"P-1", "P-2"', names)
    for refused in (Campaign.load(file).plan, Campaign.load(file).release):
        with pytest.raises(SpecError, match="tell 61 apart"):
            refused()
    assert not (tmp_path / "ledger.sqlite").exists()


def test_writing_out_the_usual_order_is_no_other_promise(tmp_path: Path) -> None:
    file = with_fit(tmp_path, "probabilistic")
    Campaign.load(file).release(1)
    edit(file, 'model = "probabilistic"', 'model = "probabilistic"\norder = 2')
    Campaign.load(file).release(2)
    edit(file, "order = 2", "order = 1")
    with pytest.raises(LedgerError, match="order"):
        Campaign.load(file).release(3)


def test_a_changed_fit_is_not_used(tmp_path: Path) -> None:
    """Somebody with the rights to do so rewrites the parameters within the ledger."""
    file = with_fit(tmp_path, "markov")
    Campaign.load(file).release(1)
    Campaign.load(file).release(2)
    with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as ledger:
        triggers = ledger.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in triggers.fetchall():
            ledger.execute(f"DROP TRIGGER {name}")
        ledger.execute(
            "UPDATE adsbpc_entries SET body = replace(body, '\"weights\":[', '\"weights\":[1')"
            " WHERE kind = 'release' AND slot = 2"
        )
        ledger.commit()
    with pytest.raises(LedgerError, match="not what was written"):
        Campaign.load(file).release(3)
