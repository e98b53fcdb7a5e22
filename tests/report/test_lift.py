"""Lift: estimates, intervals and bands against what is computed by hand."""

from __future__ import annotations

import json
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from adsbpc import Campaign
from adsbpc.errors import SpecError
from adsbpc.lab.lift import RepeatedTrial, Scenario, one_trial, price_of
from adsbpc.report.balance import chance_of
from adsbpc.report.contrast import ArmTotals, Contrast
from adsbpc.report.looks import critical_value, going_on, over_slots
from tests.campaign.trial import CAMPAIGN, KEYED, trial, write_trial

REACH = 1.959964


def contrast(treated: list[float], control: list[float], ratio: float = 1.0) -> Contrast:
    looks = len(treated)
    noise = np.eye(looks) * 4.0
    return Contrast(
        ArmTotals(np.array(treated), people=np.full(looks, 1000.0)),
        ArmTotals(np.array(control), people=np.full(looks, 500.0)),
        np.full(looks, ratio), noise, noise, np.zeros((looks, looks)), 0.95, REACH,
    )  # fmt: skip


def test_what_is_incremental_and_how_far_it_may_be_off() -> None:
    found = contrast([60.0, 130.0], [20.0, 40.0], ratio=2.0)
    assert found.incremental.tolist() == [20.0, 50.0]
    treated, control = 131 * (1 - 131 / 1000), 41 * (1 - 41 / 500)
    assert found.errors[1] == pytest.approx(sqrt(treated + 4 * control + (1 + 4) * 4.0))
    low, high = found.interval(1, REACH)
    assert (low + high) / 2 == pytest.approx(50.0)
    relative = found.relative(1)
    assert relative is not None
    assert relative[0] == pytest.approx(130 / 80 - 1)
    assert relative[1] < relative[0] < relative[2]


def test_a_control_that_may_be_nothing_has_no_ratio() -> None:
    assert contrast([10.0], [0.5]).relative(0) is None


def test_the_band_begins_when_enough_people_are_behind_both_arms() -> None:
    found = contrast([10.0, 30.0, 60.0], [9.0, 19.0, 30.0])
    assert found.begins == 2
    assert contrast([1.0], [1.0]).begins == 1


def test_critical_values_of_known_distributions() -> None:
    """One look has that of the normal; independent ones that of their product; Brownian motion on
    31 looks what the literature has for repeated tests, about 2.7."""
    assert critical_value(np.eye(1), 0.95) == pytest.approx(1.96, abs=0.02)
    alone = 0.95 ** (1 / 10)
    from statistics import NormalDist

    expected = NormalDist().inv_cdf((1 + alone) / 2)
    assert critical_value(3 * np.eye(10), 0.95) == pytest.approx(expected, abs=0.02)
    motion = over_slots(np.arange(1.0, 32.0))
    assert 2.6 < critical_value(motion, 0.95) < 2.8
    assert critical_value(motion, 0.95) == critical_value(motion, 0.95)


def test_slots_to_come_go_on_as_so_far() -> None:
    assert going_on(np.array([2.0, 4.0]), 4).tolist() == [2.0, 4.0, 6.0, 8.0]
    assert over_slots(np.array([2.0, 1.0, 3.0])).tolist() == [[2, 2, 2], [2, 2, 2], [2, 2, 3]]


def test_chances_of_chi_square() -> None:
    from scipy import stats

    for freedom in range(1, 8):
        for statistic in (0.1, 2.0, 15.0):
            assert chance_of(statistic, freedom) == pytest.approx(stats.chi2.sf(statistic, freedom))


def test_squares_say_how_much_people_differ() -> None:
    once = ArmTotals(np.array([100.0]))
    twice = ArmTotals(np.array([100.0]), squares=np.array([200.0]))
    assert twice.sampling[0] > 1.9 * once.sampling[0]
    assert twice.behind[0] == pytest.approx(100**2 / 201)


def test_the_band_holds_and_plain_intervals_do_not() -> None:
    """A hundred trials without an effect; `adsbpc lab lift` has thousands."""
    repeated = RepeatedTrial(people=8_000, slots=31, rho=0.5)
    found = [one_trial(repeated, Scenario("none", 0.02, 0.0), seed) for seed in range(100)]
    # Of 100 at 5% more than 14 come once in some ten thousand times.
    assert sum(each.alarm for each in found) <= 14
    assert sum(not each.end for each in found) <= 14
    assert sum(each.plain_alarm for each in found) >= 15


def test_the_price_of_privacy() -> None:
    assert price_of(RepeatedTrial(rho=0.05))["wider_by_daily_releases"] <= 0.10
    assert price_of(RepeatedTrial(rho=1.0))["wider_by_daily_releases"] <= 0.01


@pytest.mark.slow
def test_from_releases_to_files(tmp_path: Path) -> None:
    people = "[lift.people]\ntreatment = 240\ncontrol = 120\n"
    file = write_trial(tmp_path, trial(400), KEYED + people, privacy="")
    campaign = Campaign.load(file)
    campaign.release()
    report = campaign.report()
    found = json.loads(report.to_json())
    rows = [row for row in found["lift"] if row["measure"] == "buyers"]
    assert [row["slot"] for row in rows] == [1, 2, 3, 4]
    truth = trial(400).expected("buyers")
    treated, control = (sum(slot[place] for slot in truth) / 720_720 for place in (1, 2))
    assert abs(rows[-1]["incremental"] - (treated - 2 * control)) < 40
    for row in rows:
        assert row["low"] < row["incremental"] < row["high"]
        if row["band_low"] is not None:
            assert row["band_low"] < row["low"]
            assert row["high"] < row["band_high"]
    assert {row["keys"].get("country") for row in found["lift"]} == {None, "DE", "other"}
    assert found["balance"]["counted"]
    assert not found["balance"]["is_bad"]
    assert {row["arm"] for row in found["arms"]} == {"treatment", "control"}
    frame = report.to_polars()
    told = frame.filter(frame["query"] == "incremental, all looks")
    assert told.height == len(found["lift"])
    page = report.to_html()
    assert "What the campaign caused" in page
    assert "chart-lift-0" in page
    # The page is about what is attributed, not about arms.
    assert report.measure.name == "attributed"
    assert campaign.report(measure="buyers").measure.name == "buyers"
    assert "people who converted" in campaign.report(measure="buyers").to_html()


def test_power_with_and_without_privacy(tmp_path: Path) -> None:
    people = "[lift.people]\ntreatment = 32000\ncontrol = 32000\n"
    file = write_trial(tmp_path, trial(1), KEYED + people, privacy="")
    (found,) = Campaign.load(file).power(lift=0.25, rate=0.01)
    assert found.at_the_end < found.at_the_end_without_privacy
    assert found.by_the_band < found.at_the_end
    assert 0.7 < found.at_the_end_without_privacy < 0.95
    assert found.rho_needed is not None
    assert found.slots_needed is not None
    with pytest.raises(SpecError, match="no more than everybody"):
        Campaign.load(file).power(lift=0.25, rate=0.9)
    file = write_trial(tmp_path, trial(1), KEYED, privacy="", campaign=CAMPAIGN)
    with pytest.raises(SpecError, match=r"add \[lift.people\]"):
        Campaign.load(file).power(lift=0.25, rate=0.01)
