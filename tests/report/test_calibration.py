"""What publishers caused, beside what attribution credits them: the same people in both figures."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from adsbpc.report import Report
from adsbpc.report.calibration import factor_of
from adsbpc.report.cells import Cell
from adsbpc.report.lift import Lift
from adsbpc.report.lift_words import calibration_words, sentence
from tests.report.trials import PEOPLE, MadeUpTrial

REACH = 1.959964
MADE = MadeUpTrial(daily_spend=100.0)


@pytest.fixture(scope="module")
def report() -> Report:
    return MADE.report()


def newest(report: Report, measure: str, arm: str, control: str, country: str = "") -> Lift:
    keys = {"country": country} if country else {}
    (found,) = (
        each
        for each in report.lifts
        if (each.measure, each.arm, each.control) == (measure, arm, control)
        and each.slot == report.newest.slot
        and each.keys == keys
    )
    return found


@pytest.mark.parametrize(
    ("arm", "control", "withheld"),
    [
        ("treatment", "control", ()),
        ("no_search", "control", ()),
        ("treatment", "no_search", ("search",)),
    ],
)
def test_arms_are_compared_with_the_control_and_with_those_that_see_less(
    arm: str, control: str, withheld: tuple[str, ...], report: Report
) -> None:
    for measure in ("buyers", "purchases"):
        found = newest(report, measure, arm, control)
        assert found.withheld == withheld
        ratio = PEOPLE[arm] / PEOPLE[control]
        expected = MADE.truth(arm, 31, measure) - ratio * MADE.truth(control, 31, measure)
        # Of four standard errors sampling is the larger part, and not in this difference.
        assert abs(found.incremental - expected) < 4 * found.standard_error
        assert found.low < found.incremental < found.high


def test_credits_and_lift_are_of_the_same_arm(report: Report) -> None:
    found = {(each.arm, each.control): each for each in report.calibrations}
    assert set(found) == {
        ("treatment", "control"), ("no_search", "control"), ("treatment", "no_search"),
    }  # fmt: skip
    credited = {
        ("treatment", "no_search"): MADE.credited("treatment", "search"),
        ("no_search", "control"): MADE.credited("no_search", "social"),
        ("treatment", "control"): sum(MADE.credited("treatment", p) for p in ("search", "social")),
    }
    for pair, true in credited.items():
        assert found[pair].attributed == pytest.approx(true, abs=60), pair
    search = found["treatment", "no_search"]
    assert search.factor is not None
    assert search.low is not None
    assert search.high is not None
    assert search.factor == pytest.approx(search.incremental / search.attributed)
    # People buy for search at 1.2%, and 1% more are credited to it who would have bought anyway.
    assert search.low < 0.012 / (0.012 + 0.5 * 0.02) < search.high
    assert search.low > 0


def test_publishers_are_told_in_words_and_files(report: Report) -> None:
    words = calibration_words(report)
    assert any("to search, which caused" in text for text in words)
    text = sentence(report, newest(report, "buyers", "treatment", "no_search"))
    assert "more of “buyers” than without search" in text
    found = json.loads(report.to_json())
    rows = [row for row in found["calibration"] if row["withheld"] == ["search"]]
    assert [row["control"] for row in rows] == ["no_search"]
    frame = report.to_polars()
    own = frame.filter((frame["query"] == "calibration") & (frame["publisher"] == "search"))
    assert own["value"].to_list() == [rows[0]["factor"]]
    assert own["compared_with"].to_list() == ["no_search"]
    looks = frame.filter((frame["query"] == "incremental") & (frame["measure"] == "buyers"))
    by_pair = looks.group_by("arm", "compared_with").len()
    assert by_pair["len"].to_list() == 3 * [31]
    page = report.to_html()
    assert "Attribution beside it" in page
    assert "buyers by search: treatment against no_search" in page


def test_credits_of_everybody_are_an_arms_own_only_where_nobody_else_sees_anything() -> None:
    people = {"treatment": 4_000, "control": 4_000}
    for share, arms in ((0.5, ["treatment"]), (0.4, [])):
        made = MadeUpTrial(
            slots=3, released=3, people=people, credits_by=("publisher",),
            lift={"withholds": None, "shares": dict.fromkeys(people, share)},
        )  # fmt: skip
        assert [each.arm for each in made.report().calibrations] == arms


def test_the_interval_of_the_factor_holds() -> None:
    """Trials of a publisher that causes 12 of 22 credited purchases in a thousand people."""
    rng, people, trials, noise = np.random.default_rng(5), 40_000, 4_000, 12.0
    caused, anyway, credited_anyway = (
        rng.poisson(people * rate, trials) for rate in (0.012, 0.010, 0.010)
    )
    without = rng.poisson(people * 0.02, trials)
    moment, held = datetime(2026, 3, 1, tzinfo=UTC), 0
    for row in range(trials):
        treated = caused[row] + anyway[row] + credited_anyway[row] + rng.normal(0, noise)
        control = without[row] + rng.normal(0, noise)
        credits = caused[row] + credited_anyway[row] + rng.normal(0, noise)
        cell = Cell(
            "credits", ("search", "treatment"), 1, 1, moment, moment, "", float(credits), noise,
            0.0, 0.0, 0.0, noisy=False,
        )  # fmt: skip
        error = float(np.sqrt(treated + control + 2 * noise**2))
        found = factor_of(float(treated - control), error, [cell], REACH)
        assert found is not None
        held += found[1] <= 12 / 22 <= found[2]
    # Too wide rather than too narrow, and not by much.
    assert 0.945 <= held / trials <= 0.99


def test_credits_that_may_be_nothing_have_no_factor() -> None:
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    cell = Cell(
        "credits", ("p", "a"), 1, 1, moment, moment, "", 5.0, 4.0, 0.0, 0.0, 0.0, noisy=True
    )
    assert factor_of(10.0, 3.0, [cell], REACH) is None
    whole = replace(cell, estimate=100.0, noisy=False)
    cut = factor_of(10.0, 3.0, [replace(whole, cut=50.0)], REACH)
    plain = factor_of(10.0, 3.0, [whole], REACH)
    assert cut is not None
    assert plain is not None
    assert cut[1] < plain[1]
    assert cut[2] == plain[2]


def test_what_was_paid_is_shared_out_over_the_arms_that_see_it(report: Report) -> None:
    """Social is seen by 30,000 people and search by 20,000; each is paid 100 a day."""
    social, search = 3100 * 20_000 / 30_000, 3100.0
    whole = newest(report, "buyers", "treatment", "control")
    own = newest(report, "buyers", "treatment", "no_search")
    for found, paid in ((whole, social + search), (own, search)):
        assert found.cost == pytest.approx(paid / found.incremental)
        assert found.cost_low == pytest.approx(paid / found.high)
        assert found.cost_high == pytest.approx(paid / found.low)
        assert f"Each one cost {found.cost:,.2f}" in sentence(report, found)
    nothing = replace(report, spend=None)
    assert all(each.cost is None for each in nothing.lifts)
    # Where it may be nothing, there is no cost of one.
    assert all(each.cost is None for each in report.lifts if each.low <= 0)
    assert any(each.low <= 0 for each in report.lifts), "all are told: this tests little"


def test_lift_by_country(report: Report) -> None:
    ratio = PEOPLE["treatment"] / PEOPLE["control"]
    for country in ("DE", "other"):
        found = newest(report, "buyers by country", "treatment", "control", country)
        true = [
            len(
                {each.user for each in MADE.purchases if (each.arm, each.country) == (arm, country)}
            )
            for arm in ("treatment", "control")
        ]
        assert abs(found.incremental - (true[0] - ratio * true[1])) < 4 * found.standard_error
        assert f"country {country}" in sentence(report, found)
        assert found.cost is None


def test_how_long_it_would_take_is_said(report: Report) -> None:
    """What is caused grows with time, and how far it may be off with the root of it."""
    early = MadeUpTrial(released=12).report()
    found = newest(early, "buyers", "treatment", "control")
    assert found.band_low is not None
    reach = (found.incremental - found.band_low) / found.standard_error
    needed = 12 * (reach * found.standard_error / found.incremental) ** 2
    assert found.slots_needed == int(np.ceil(needed))
    untold = replace(found, band_low=-1.0, band_high=99.0, low=2.0, high=90.0)
    in_nine = sentence(early, replace(untold, slots_needed=21))
    assert "No effect of the campaign on “buyers” can be told yet" in in_nine
    assert "If it goes on as so far, it would be told in about 9 days." in in_nine
    late = sentence(early, replace(untold, slots_needed=40))
    assert "in about 28 days, after the campaign's last day" in late
    never = sentence(early, replace(untold, slots_needed=31 * 3 + 1))
    assert "too small for this campaign" in never
    few = sentence(early, replace(untold, band_low=None, band_high=None))
    assert "too few people are behind the figures" in few
