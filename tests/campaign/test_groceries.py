"""The story of a shop that guesses nothing: what it is told at the end of the month holds."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from adsbpc import Campaign
from adsbpc.contributions import ArrayAccounts, CellIndex
from adsbpc.lab.datasets.dataset import dataset_of
from adsbpc.mechanisms import BudgetByRows, RowsState, plan_measures
from adsbpc.mechanisms.by_rows.planning import starting_from
from adsbpc.model import Measured, load_spec
from adsbpc.model.slots import SlotGrid
from adsbpc.privacy import SeededRandomness
from adsbpc.report.cells import Lens
from adsbpc.report.timeline import Timeline
from tests.groceries import DAYS, DEPARTMENTS, PEOPLE, Purchases, purchases, write_groceries

LEDGERS = 50
PROMISED = 0.93
LENS = Lens(Timeline(SlotGrid(date(2026, 3, 1), DAYS, "1d", "UTC")), 0.95, None)


def covered(bought: Purchases, last: Measured) -> list[bool]:
    """Whether each department's total lies in the interval that a report shows for it."""
    shown = {cell.publisher: cell for cell in LENS.cells(last, last.running_totals)}
    return [
        shown[name].low <= total <= shown[name].high
        for name, total in zip(DEPARTMENTS, bought.totals, strict=True)
    ]


def month(mechanism: BudgetByRows, bought: Purchases, seed: int) -> list[Measured]:
    """Every slot's release, without files."""
    data = dataset_of(
        "groceries", "", PEOPLE, DAYS, mechanism.layout.dimensions[0].values, 1,
        user=bought.person, day=bought.day, publisher=bought.department,
    )  # fmt: skip
    accounts, state = ArrayAccounts(CellIndex.of(data.contributions)), RowsState()
    randomness, found = SeededRandomness(seed), []
    for _ in range(DAYS):
        drawn, state = mechanism.release(state, accounts, randomness)
        found.append(Measured(**dict(drawn), measure="conversions", metric="conversions"))
    return found


@pytest.fixture
def mechanism(tmp_path: Path) -> BudgetByRows:
    planned = plan_measures(load_spec(write_groceries(tmp_path, purchases(1)))).runs[0][1]
    assert isinstance(planned, BudgetByRows)
    return planned


@pytest.mark.slow
def test_totals_are_covered_without_a_guess(mechanism: BudgetByRows) -> None:
    found = []
    for seed in range(LEDGERS):
        bought = purchases(seed)
        found.append(covered(bought, month(mechanism, bought, seed)[-1]))
    assert np.mean(found) >= PROMISED
    # Nor is the largest department the one that pays for it.
    assert np.mean(found, axis=0).min() >= PROMISED - 0.07


@pytest.mark.slow
def test_an_earlier_month_repairs_the_first_days(mechanism: BudgetByRows) -> None:
    """The allowance that the earlier campaign ended with holds from the first slot on."""
    earlier = month(mechanism, purchases(100), 100)
    started = starting_from(mechanism, tuple(earlier))
    assert started.allowance is not None
    assert earlier[-1].allowance is not None
    # That of the last day is for publishers by size.
    assert 0.5 < started.allowance / earlier[-1].allowance < 2
    found = []
    for seed in range(20):
        bought = purchases(seed)
        released = month(started, bought, seed)
        assert released[0].allowance == pytest.approx(started.allowance, rel=0.01)
        found.append(covered(bought, released[-1]))
    assert np.mean(found) >= PROMISED


@pytest.mark.slow
def test_totals_are_covered_in_fifty_ledgers(tmp_path: Path) -> None:
    """The same from files to the report, with noise that nobody has seeded."""
    found = []
    for seed in range(LEDGERS):
        bought = purchases(seed)
        campaign = Campaign.load(write_groceries(tmp_path / str(seed), bought))
        campaign.release()
        assert campaign.status().campaign_budget.spent <= Fraction(1)
        found.append(covered(bought, campaign.report().measured[-1]))
    assert np.mean(found) >= PROMISED
