"""What personal budgets cut: where it is in intervals, and how its errors add up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from math import hypot

import numpy as np
import pytest

from adsbpc.model import ALL_PUBLISHERS, Answers, Release
from adsbpc.model.cut import UNEVEN
from adsbpc.report import Cell
from adsbpc.report.reach import Reach
from tests.estimates import by_cell
from tests.report.releases import MadeUp, answers_of, with_totals

_REACH = 1.959963984540054


def _shared(room: float, error: float) -> float:
    """What both ends leave."""
    return Reach.of(0.95).with_room(room, error)


def _cells(*answers: Answers, totals: Sequence[float] = (1.0, 0.0)) -> list[Cell]:
    """Of publishers with so much so far each."""
    report = MadeUp(publishers=tuple(f"p{k}" for k in range(len(totals) - 1)), released=1).report()
    report = with_totals(report, answers_of("prefix 1..1", totals, 1.0, (1, 1)))
    return list(report.lens.cells(report.measured[-1], answers))


def test_the_interval_by_hand() -> None:
    cell, *_ = _cells(*answers_of("slot 1", [100.0, 0.0], 3.0, (1, 1), cut=20.0, cut_error=4.0))
    assert cell.estimate == 100
    assert cell.cut == 20
    assert cell.standard_error == 3
    # Of (all) that was released, so that the room is certain: four of the larger errors.
    assert cell.room == cell.cut
    assert 1.64 < _shared(20, 5) < 1.65
    assert cell.low == pytest.approx(100 - 3 * _shared(20, 5))
    assert cell.high == pytest.approx(100 + 20 + 5 * _shared(20, 5))


def test_errors_of_what_was_cut_add_up_as_they_are() -> None:
    answers = answers_of("slot 1", [100.0, 50.0], 5 / 2**0.5, (1, 1), cut=30.0, cut_error=12.0)
    first, _, everything = _cells(*answers, totals=(200.0, 100.0))
    assert first.cut == pytest.approx(20)
    assert everything.publisher == ALL_PUBLISHERS
    assert everything.cut == 30
    # The noise of both makes 5, in squares; 8 and 4 make 12; 5 and 12 make 13, in squares.
    assert everything.standard_error == pytest.approx(5)
    assert everything.low == pytest.approx(150 - 5 * _shared(30, 13))
    assert everything.high == pytest.approx(150 + 30 + 13 * _shared(30, 13))
    # Two thirds of what was released have two thirds of the cut, of which a quarter is uncertain.
    assert first.room == pytest.approx(20 * (1 - UNEVEN / 3))
    first_error = hypot(first.standard_error, 8)
    assert first.low == pytest.approx(100 - first.standard_error * _shared(first.room, first_error))


def test_what_was_cut_is_no_reason_to_be_above_nothing() -> None:
    """An end that shares the noise is still 1.64 standard errors away."""
    cell, *_ = _cells(*answers_of("slot 1", [4.9, 0.0], 3.0, (1, 1), cut=90.0, cut_error=1.0))
    assert cell.noisy
    assert cell.low < 0


def test_an_adjusted_interval_holds_what_was_cut_and_the_adjusted_number() -> None:
    report = MadeUp(publishers=("p",), released=1).report(adjusted=True)

    def cell(value: float) -> Cell:
        """Nothing is above zero, so that both have the same of what was cut."""
        totals = answers_of("prefix 1..1", [value] * 2, 2.0, (1, 1), cut=6.0, cut_error=3.0)
        return with_totals(report, totals).running_totals([1])[0]

    # -10 + 3 and two errors of 2.5 are below zero, where the adjusted number is.
    below = cell(-10.0)
    assert (below.estimate, below.low, below.high) == (0, 0, 0)
    wider = cell(-2.0)
    assert (wider.estimate, wider.low) == (0, 0)
    assert 0 < wider.room < wider.cut == 3
    assert wider.high == pytest.approx(-2 + 3 + 2.5 * _shared(wider.room, 2.5))


def test_bounds_keep_their_intervals_to_the_last_digit() -> None:
    report = MadeUp(queries=("prefix", "matrix")).report()
    reach = report.lens.reach
    for cell in report.rows():
        assert cell.cut == 0
        assert cell.low == cell.estimate - reach * cell.standard_error
        assert cell.high == cell.estimate + reach * cell.standard_error


def test_releases_of_earlier_formats_read_the_same() -> None:
    """Format 1 and 2 had one measure by publisher, in one object, with answers one by one."""
    report = MadeUp(released=3, queries=("prefix", "matrix")).report()
    again = replace(report, releases=tuple(map(_as_before, report.releases)))
    assert again.to_csv() == report.to_csv()
    assert again.to_html() == report.to_html()


def _as_before(release: Release) -> Release:
    stored = json.loads(release.to_text())
    (measured,) = stored.pop("measures")
    for name in ("multipliers", "sizes", "is_renewal", "spread"):
        del measured[name]
    del stored["fit_charge"], measured["measure"], measured["dimensions"], measured["weights"]
    fine = release.measures[0]
    for old, new in (("estimates", "answers"), ("slot_totals",) * 2, ("running_totals",) * 2):
        measured.pop(new)
        stored[old] = [
            {
                "publisher": each.keys[0], "query": each.query, "value": each.value,
                "standard_error": each.standard_error, "span": each.span,
            }
            for each in by_cell(fine, getattr(fine, new))
        ]  # fmt: skip
    # The first version knew nothing of budgets.
    for name in ("mechanism", "allowance", "histogram"):
        del measured[name]
    del stored["format"]
    return Release.from_text(json.dumps(stored | measured))


def test_personal_budgets_are_stored_and_read_again() -> None:
    report = MadeUp(released=3, mechanism="personal-budget").report()
    stored = tuple(Release.from_text(release.to_text()) for release in report.releases)
    assert replace(report, releases=stored).rows() == report.rows()


def _missed(cells: list[Cell], truth: np.ndarray) -> float:
    pairs = zip(cells, truth, strict=True)
    return float(np.mean([not cell.low <= true <= cell.high for cell, true in pairs]))


def test_intervals_hold_the_truth_before_cutting() -> None:
    """4,000 questions about six publishers; a noisy figure of what was cut for each question."""
    random = np.random.default_rng(20)
    questions, shares, noise, cut_noise = 4_000, np.array([0.4, 0.2, 0.2, 0.1, 0.06, 0.04]), 2, 30
    kept = np.outer(random.uniform(200, 900, questions), shares)
    cut = random.exponential(200, questions)
    values = kept + random.normal(0, noise, kept.shape)
    counted = np.maximum(cut + random.normal(0, cut_noise, questions), 0)
    asked = [
        answers_of(f"q{q}", values[q], noise, (1, 1), counted[q], cut_noise)
        for q in range(questions)
    ]
    truth = kept + np.outer(cut, shares)
    cells = _cells(*(each for answers in asked for each in answers), totals=list(shares))
    single = [cell for cell in cells if cell.publisher != ALL_PUBLISHERS]
    together = [cell for cell in cells if cell.publisher == ALL_PUBLISHERS]
    # The standard error of a rate of 5% among 4,000 is 0.35%.
    assert 0.01 < _missed(single, truth.ravel()) <= 0.055
    assert 0.01 < _missed(together, truth.sum(axis=1)) <= 0.055

    # Without the cut, and with errors as if they were independent, they miss clearly more.
    blind = _cells(
        *(replace(each, cut=0.0, cut_error=0.0) for answers in asked for each in answers),
        totals=list(shares),
    )
    assert _missed([c for c in blind if c.publisher != ALL_PUBLISHERS], truth.ravel()) > 0.3
    independent = cut_noise * float(np.linalg.norm(shares))
    wrong = _cells(
        *(replace(total, cut_error=independent) for total, _ in asked), totals=list(shares)
    )
    assert _missed(wrong, truth.sum(axis=1)) > 0.08


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_reports_hold_the_truth_before_cutting(level: float) -> None:
    held, held_without = [], []
    for seed in range(120):
        made = MadeUp(
            slots=4,
            released=4,
            volume=120,
            scale=6,
            seed=seed,
            queries=("prefix",),
            mechanism="personal-budget",
        )
        running = made.truth.cumsum(axis=0)
        truth = np.column_stack([running, running.sum(axis=1)]).ravel()
        report = made.report(level=level)
        parts = [[*each.spread, 1.0] for each in report.measured]
        added = [each.running_totals[0].added for each in report.measured]
        without = np.array(
            [part * own for own, each in zip(added, parts, strict=True) for part in each]
        )
        for cell, true, own in zip(report.rows(), truth, without, strict=True):
            held.append(cell.low <= true <= cell.high)
            reach = report.lens.reach * cell.standard_error
            held_without.append(abs(true - (cell.estimate - own)) <= reach)
    assert np.mean(held) > level - 0.04
    assert np.mean(held_without) < np.mean(held) - 0.1
