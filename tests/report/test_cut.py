"""What personal budgets cut: where it is in intervals, and how its errors add up."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from adsbpc.model import ALL_PUBLISHERS, Estimate, Release
from adsbpc.report import Cell
from tests.report.releases import MadeUp

_REACH = 1.959963984540054
_NEW_FIELDS = ("mechanism", "allowance", "histogram")


def _cells(*estimates: Estimate) -> list[Cell]:
    report = MadeUp(released=1).report()
    return list(report.lens.cells(report.newest, estimates))


def test_the_interval_by_hand() -> None:
    cell, _ = _cells(Estimate("search", "slot 1", 100.0, 3.0, (1, 1), cut=20.0, cut_error=4.0))
    assert cell.estimate == 100
    assert cell.cut == 20
    assert cell.standard_error == 3
    assert cell.low == pytest.approx(100 - 3 * _REACH)
    assert cell.high == pytest.approx(100 + 20 + 5 * _REACH)


def test_errors_of_what_was_cut_add_up_as_they_are() -> None:
    *_, everything = _cells(
        Estimate("search", "slot 1", 100.0, 3.0, (1, 1), cut=20.0, cut_error=8.0),
        Estimate("social", "slot 1", 50.0, 4.0, (1, 1), cut=10.0, cut_error=4.0),
    )
    assert everything.publisher == ALL_PUBLISHERS
    assert everything.cut == 30
    # 3 and 4 make 5, in squares; 8 and 4 make 12; 5 and 12 make 13, in squares.
    assert everything.standard_error == pytest.approx(5)
    assert everything.low == pytest.approx(150 - 5 * _REACH)
    assert everything.high == pytest.approx(150 + 30 + 13 * _REACH)


def test_what_was_cut_makes_nothing_less_noisy() -> None:
    cell, _ = _cells(Estimate("search", "slot 1", 5.0, 3.0, (1, 1), cut=90.0, cut_error=1.0))
    assert cell.noisy
    assert cell.low < 0


def test_an_adjusted_interval_holds_what_was_cut_and_the_adjusted_number() -> None:
    report = MadeUp(released=1).report()
    *rest, last = report.newest.running_totals
    below = replace(last, value=-10.0, standard_error=2.0, cut=3.0, cut_error=1.5)
    newest = report.newest.model_copy(update={"running_totals": (*rest, below)})
    report = replace(report, releases=(newest,), adjusted=True)
    *_, cell, _ = report.running_totals([1])
    # -10 + 3 + 1.96 * 2.5 is below zero, where the adjusted number is.
    assert (cell.estimate, cell.low, cell.high) == (0, 0, 0)
    wider = replace(below, value=-2.0)
    newest = newest.model_copy(update={"running_totals": (*rest, wider)})
    *_, cell, _ = replace(report, releases=(newest,)).running_totals([1])
    assert (cell.estimate, cell.low) == (0, 0)
    assert cell.high == pytest.approx(-2 + 3 + 2.5 * _REACH)


def test_bounds_keep_their_intervals_to_the_last_digit() -> None:
    report = MadeUp(queries=("prefix", "matrix")).report()
    reach = report.lens.reach
    for cell in report.rows():
        assert cell.cut == 0
        assert cell.low == cell.estimate - reach * cell.standard_error
        assert cell.high == cell.estimate + reach * cell.standard_error


def test_releases_from_before_there_were_budgets_read_the_same() -> None:
    report = MadeUp(released=3, queries=("prefix", "matrix")).report()
    old = []
    for release in report.releases:
        stored = json.loads(release.to_text())
        for name in _NEW_FIELDS:
            del stored[name]
        for name in ("estimates", "slot_totals", "running_totals"):
            for estimate in stored[name]:
                del estimate["cut"], estimate["cut_error"]
        old.append(Release.from_text(json.dumps(stored)))
    again = replace(report, releases=tuple(old))
    assert again.to_csv() == report.to_csv()
    assert again.to_html() == report.to_html()


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
    estimates = [
        Estimate(
            f"p{p}", f"q{q}", values[q, p], noise, (1, 1), share * counted[q], share * cut_noise
        )
        for q in range(questions)
        for p, share in enumerate(shares)
    ]
    truth = kept + np.outer(cut, shares)
    cells = _cells(*estimates)
    single = [cell for cell in cells if cell.publisher != ALL_PUBLISHERS]
    together = [cell for cell in cells if cell.publisher == ALL_PUBLISHERS]
    # The standard error of a rate of 5% among 4,000 is 0.35%.
    assert 0.01 < _missed(single, truth.ravel()) <= 0.055
    assert 0.01 < _missed(together, truth.sum(axis=1)) <= 0.055

    # Without the cut, and with errors as if they were independent, they miss clearly more.
    blind = _cells(*(replace(each, cut=0.0, cut_error=0.0) for each in estimates))
    assert _missed([c for c in blind if c.publisher != ALL_PUBLISHERS], truth.ravel()) > 0.3
    independent = replace(
        Estimate("p", "q", 0.0, noise * len(shares) ** 0.5, (1, 1)),
        cut_error=cut_noise * float(np.linalg.norm(shares)),
    )
    wrong = [
        replace(independent, query=f"q{q}", value=values[q].sum(), cut=counted[q])
        for q in range(questions)
    ]
    assert _missed(_cells(*wrong)[::2], truth.sum(axis=1)) > 0.08


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_reports_hold_the_truth_before_cutting(level: float) -> None:
    held, held_by_noise_alone = [], []
    for seed in range(120):
        made = MadeUp(
            slots=4,
            released=4,
            volume=120,
            scale=6,
            seed=seed,
            queries=("slot",),
            mechanism="personal-budget",
        )
        truth = np.column_stack([made.truth, made.truth.sum(axis=1)]).ravel()
        report = made.report(level=level)
        for cell, true in zip(report.rows(), truth, strict=True):
            held.append(cell.low <= true <= cell.high)
            reach = report.lens.reach * cell.standard_error
            held_by_noise_alone.append(abs(true - cell.estimate) <= reach)
    assert np.mean(held) > level - 0.04
    assert np.mean(held_by_noise_alone) < level - 0.1
