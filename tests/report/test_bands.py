"""Bands that hold for all slots at once: in every form of a report, and by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from adsbpc.model.running_noise import RunningNoise, Stretch
from adsbpc.report import Report
from adsbpc.report.bands import Bands
from adsbpc.report.looks import critical_value
from tests.report.releases import MadeUp


def of_slots(slots: int, times: tuple[float, ...] = (1.0,)) -> RunningNoise:
    """Slots with noise of their own, so that totals are a random walk."""
    weights = np.tril(np.ones((slots + 1, slots + 1)))
    weights[:, 0] = 0
    stretch = Stretch(0, (times[:1], times), sum(times))
    variances = (0.0, *[1.0] * slots)
    return RunningNoise(tuple(range(slots + 1)), weights.tolist(), variances, (stretch,))


def test_a_band_leaves_what_all_slots_need() -> None:
    """Drawn with other numbers: walks stay within the band of all slots as often as it says."""
    bands = Bands(of_slots(31), 31, 0.95)
    reach = bands.reach(0, 0)
    assert 2.5 < reach < 2.9
    walks = np.random.default_rng(1).normal(size=(20_000, 31)).cumsum(axis=1)
    held = (np.abs(walks) <= reach * np.sqrt(np.arange(1, 32))).all(axis=1).mean()
    assert held == pytest.approx(0.95, abs=0.006)


def test_one_slot_needs_no_more_than_an_interval() -> None:
    assert Bands(of_slots(1), 1, 0.95).reach(0, 0) == pytest.approx(1.96, abs=0.02)


def test_sums_that_are_measured_alike_have_the_same_band() -> None:
    """And those whose rows differ have their own: where only the first row is noisy, all slots are
    off together, so that one look is as good as all."""
    noise = of_slots(8, (1.0, 4.0))
    bands = Bands(noise, 8, 0.95)
    assert bands.reach(1, 0) == bands.reach(1, 1)
    first = noise.stretches[0]
    later = Stretch(2, ((1.0,), (1.0, 1e-9)), 1.0)
    unlike = Bands(replace(noise, stretches=(first, later)), 8, 0.95)
    assert unlike.reach(1, 1) == pytest.approx(1.96, abs=0.03)
    assert unlike.reach(1, 0) > 2.2


def test_long_campaigns_have_bands_at_looks() -> None:
    bands = Bands(of_slots(4), 1_000, 0.95)
    assert [slot for slot in range(1, 10) if bands.holds_at(slot)] == [3, 6, 9]
    assert bands.holds_at(1_000)


@pytest.fixture(scope="module", params=["adsbpc", "personal-budget"])
def report(request: pytest.FixtureRequest) -> Report:
    return MadeUp(mechanism=request.param, slots=20, released=12).report(band=True)


def test_a_band_by_hand(report: Report) -> None:
    """Around the released number, with what may be missing above it."""
    walk = np.minimum.outer(np.arange(1.0, 21), np.arange(1.0, 21))
    reach = critical_value(walk, 0.95)
    for cell in report.running_totals([12]):
        assert cell.band_low == pytest.approx(cell.estimate - reach * cell.standard_error)
        top = cell.estimate + cell.cut + reach * sqrt(cell.standard_error**2 + cell.cut_error**2)
        assert cell.band_high == pytest.approx(top)
        assert cell.band_low is not None
        assert cell.band_high is not None
        assert cell.band_low < cell.low < cell.high < cell.band_high


def test_only_running_totals_have_bands(report: Report) -> None:
    assert all(cell.band_low is None for cell in report.slot_totals(range(2, 13)))
    both = MadeUp(queries=("slot", "prefix"), released=5).report(band=True)
    for cell in both.rows():
        assert (cell.band_low is not None) == (cell.first_slot == 1), cell


def test_adjusted_bands_hold_the_adjusted_number() -> None:
    cells = MadeUp(volume=3, released=12).report(band=True, adjusted=True).running_totals([3, 12])
    for cell in cells:
        assert cell.band_low is not None
        assert cell.band_high is not None
        assert 0 <= cell.band_low <= cell.estimate <= cell.band_high


def test_files_have_bands_if_asked(report: Report) -> None:
    columns = report.columns()
    assert list(columns)[-2:] == ["band_low", "band_high"]
    assert "band_low" in report.to_csv().splitlines()[0]
    (cell, *_) = json.loads(report.to_json())["cells"]
    assert cell["band_low"] < cell["low"]
    assert report.to_arrow().schema.field("band_high").type == "double"
    assert "band_low" not in replace(report, band=False).columns()


def test_the_page_and_the_table_say_so(report: Report) -> None:
    html = report.to_html()
    assert "for all days of the campaign at once" in html
    assert '"band_low"' in html
    assert "all at once" in [str(column.header) for column in report.table().columns]
    plain = replace(report, band=False).to_html()
    assert "band_low" not in plain.partition('id="data"')[2]
    assert "at once" not in plain.partition("<script")[0]
