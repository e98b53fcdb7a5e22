"""Cells: what is counted in them, and how often their intervals hold the truth."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, timedelta
from math import sqrt

import numpy as np
import pytest

from adsbpc.errors import SourceError, SpecError
from adsbpc.model import ALL_PUBLISHERS
from adsbpc.report.standings import Standings, clear_leader
from tests.report.releases import MadeUp


def test_a_cell_for_each_estimate_and_one_for_all_publishers() -> None:
    made = MadeUp(queries=("prefix", "slot", "prefix"), released=3)
    rows = made.report().rows()
    # Two workloads may ask the same; each keeps its own total.
    assert len(rows) == 3 * 3 * (6 + 1)
    for first in range(0, len(rows), 7):
        *publishers, everything = rows[first : first + 7]
        assert everything.publisher == ALL_PUBLISHERS
        assert everything.query == publishers[0].query
        assert everything.estimate == pytest.approx(sum(cell.estimate for cell in publishers))
        spread = sqrt(sum(cell.standard_error**2 for cell in publishers))
        assert everything.standard_error == pytest.approx(spread)


def test_noisy_means_that_the_interval_reaches_zero() -> None:
    rows = MadeUp(volume=8, scale=6, queries=("prefix", "matrix")).report().rows()
    sums = [row for row in rows if row.query.startswith("prefix")]
    changes = [row for row in rows if row.query.startswith("change")]
    assert {row.noisy for row in sums} == {True, False}
    assert all(row.noisy == (row.low <= 0) for row in sums)
    # A change may well be below zero.
    assert all(row.noisy == (row.low <= 0 <= row.high) for row in changes)
    assert any(row.high < 0 and not row.noisy for row in changes)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("adjusted", [False, True])
def test_intervals_hold_the_truth_as_often_as_they_say(level: float, adjusted: bool) -> None:
    held = []
    for seed in range(250):
        made = MadeUp(slots=4, released=4, volume=20, scale=12, seed=seed, queries=("slot",))
        truth = np.column_stack([made.truth, made.truth.sum(axis=1)]).ravel()
        rows = made.report(level=level, adjusted=adjusted).rows()
        held += [row.low <= true <= row.high for row, true in zip(rows, truth, strict=True)]
    # 7,000 cells: three standard errors are below 0.02; rounded noise adds as much again.
    assert np.mean(held) > level - 0.04
    if not adjusted:
        assert np.mean(held) < level + 0.04


def test_a_higher_level_is_wider() -> None:
    narrow, wide = (MadeUp().report(level=level).rows()[0] for level in (0.5, 0.9999))
    assert wide.low < narrow.low < narrow.estimate < narrow.high < wide.high


@pytest.mark.parametrize("level", [0.4, 0.49999, 0.99995, 1.0, 95.0, -1.0, float("nan")])
def test_a_level_that_is_none_is_refused(level: float) -> None:
    with pytest.raises(SpecError, match=r"level = .*expected a number from 0.5 to 0.9999"):
        MadeUp().report(level=level)


def test_nothing_released_yet_says_what_to_do() -> None:
    report = MadeUp(released=1).report()
    with pytest.raises(SourceError, match="Nothing is released yet: run adsbpc release FILE first"):
        replace(report, releases=())


def test_a_gap_between_releases_is_refused() -> None:
    report = MadeUp(released=3).report()
    with pytest.raises(SourceError, match=r"slots \[1, 3\]"):
        replace(report, releases=(report.releases[0], report.releases[2]))


def test_hours_of_a_day_with_a_clock_change() -> None:
    made = MadeUp(slot="1h", slots=48, released=48, start=date(2026, 10, 24), queries=("slot",))
    rows = [row for row in made.report().rows() if row.publisher == ALL_PUBLISHERS]
    lengths = {row.ends_at.astimezone(UTC) - row.starts_at.astimezone(UTC) for row in rows}
    assert lengths == {timedelta(hours=1)}
    clocks = [row.starts_at.isoformat() for row in rows[25:29]]
    assert clocks == [
        "2026-10-25T01:00:00+02:00",
        "2026-10-25T02:00:00+02:00",
        "2026-10-25T02:00:00+01:00",
        "2026-10-25T03:00:00+01:00",
    ]


def test_shares_follow_the_delta_method() -> None:
    """Against a simulation of the same noise."""
    report = MadeUp().report()
    random = np.random.default_rng(3)
    cells = [standing.total for standing in report.standings.publishers]
    draws = random.normal(
        [cell.estimate for cell in cells], [cell.standard_error for cell in cells], (20_000, 6)
    )
    spread = (draws / draws.sum(axis=1, keepdims=True)).std(axis=0)
    for standing, simulated in zip(report.standings.publishers, spread, strict=True):
        assert standing.share is not None
        width = (standing.share.high - standing.share.low) / 2
        assert width == pytest.approx(report.lens.reach * simulated, rel=0.03)


def test_shares_stay_between_nothing_and_everything() -> None:
    for seed in range(20):
        standings = MadeUp(volume=3, released=3, seed=seed).report().standings
        for share in (each.share for each in standings.publishers if each.share):
            assert 0 <= share.low <= share.value <= share.high <= 1


def test_no_share_of_what_may_be_nothing() -> None:
    standings = MadeUp(volume=0.1, scale=20).report().standings
    assert standings.everything.noisy
    assert all(each.share is None for each in standings.publishers)


def test_a_lead_within_the_noise_is_no_lead() -> None:
    report = MadeUp().report()
    first, second, *_ = report.standings.publishers
    assert clear_leader(report.standings.publishers, report.lens.reach)
    level = replace(first.total, estimate=second.total.estimate + first.total.standard_error)
    close = Standings.of((level, second.total, report.standings.everything), report.lens.reach)
    assert not clear_leader(close.publishers, report.lens.reach)
