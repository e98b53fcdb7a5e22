"""Histograms of needs: at which slots, what each costs, and what is read from them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from adsbpc.mechanisms.by_rows.allowance import EDGES, NORMS, crowds_of
from adsbpc.mechanisms.by_rows.planning import look_slots, plan_by_rows, split_personal
from adsbpc.mechanisms.interface import Question
from adsbpc.model import UNITS_PER_CONVERSION, Adjacency, Guarantee
from adsbpc.model.release_spec import PersonalBudgetSection
from adsbpc.workloads import WeightedSquaredError, prefix_sums
from tests.mechanisms.campaigns import LAYOUT
from tests.mechanisms.personal_campaigns import planned

SLOTS = 31


def asked_for(last: float) -> Question:
    return Question(
        Guarantee(Fraction(1), Adjacency.ADD_REMOVE, "acme"),
        LAYOUT,
        (prefix_sums(SLOTS),),
        WeightedSquaredError((*[1.0] * (SLOTS - 1), last)),
        1 / UNITS_PER_CONVERSION,
    )


@pytest.mark.parametrize("slots", [1, 2, 3, 8, 17, 31, 365])
def test_everything_is_looked_at_once_more_at_the_end(slots: int) -> None:
    found = look_slots(slots)
    assert found == sorted(set(found))
    assert found[0] == 1
    assert found[-1] == slots


def test_the_last_look_has_what_its_row_decides_about() -> None:
    shares = []
    for last in (1.0, 7.0, 60.0, 1000.0):
        looks = plan_by_rows(asked_for(last), PersonalBudgetSection()).looks
        whole = sum(looks.values(), Fraction(0))
        assert whole <= Fraction(5, 100)
        assert whole > Fraction(5, 100) - Fraction(len(looks), 10**9)
        shares.append(float(looks[SLOTS] / whole))
        assert len({rho for slot, rho in looks.items() if slot < SLOTS}) == 1
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(1 / 7, abs=0.001)
    assert 0.7 < shares[-1] <= 0.9


@pytest.mark.parametrize(
    ("cells", "expected"), [(1, "0.05"), (30, "0.05"), (40, "0.0375"), (50, "0.03"), (999, "0.03")]
)
def test_histograms_have_less_where_there_are_many_cells(cells: int, expected: str) -> None:
    left_open, rho = PersonalBudgetSection(), Fraction(2)
    for slots, share in ((31, Fraction(expected)), (8_784, Fraction(5, 100))):
        split = split_personal(rho, left_open, slots, cells)
        assert split == {"measurement": rho * (1 - share), "histogram": rho * share}
    stated = PersonalBudgetSection(histogram_share=0.07)
    assert split_personal(rho, stated, 31, cells)["histogram"] == rho * Fraction(7, 100)
    assert split_personal(rho, PersonalBudgetSection(allowance=3.0), 31, cells) == {
        "measurement": rho
    }


def test_a_campaign_goes_on_with_the_looks_that_it_began_with() -> None:
    asked, section = asked_for(7.0), PersonalBudgetSection()
    new = plan_by_rows(asked, section)
    stored = new.stored_plan()
    assert dict(stored.looks).keys() == new.looks.keys()
    moved = replace(stored, looks=((3, 10**9), (30, 10**9)))
    assert plan_by_rows(asked, section, moved).looks == {
        3: Fraction(1, 1000),
        30: Fraction(1, 1000),
    }
    assert plan_by_rows(asked, section, stored).fingerprint == new.fingerprint
    # Early versions stored none, and had them by a rule; they go on to store none.
    old = plan_by_rows(asked, section, replace(stored, looks=()))
    assert list(old.looks) == [1, 2, 4, 8, 12, 16, 24]
    assert old.stored_plan().looks == ()


def test_people_far_beyond_everybody_else_are_seen_if_they_are_alike() -> None:
    """Twenty in one bin, four octaves out, where the noise is 3: no octave of bins stands out."""
    counts, far = _noise(3.0), 57
    counts[12] += 9_000.0
    for crowd in crowds_of(counts, 3.0):
        assert crowd.counts[crowd.norms > NORMS[40]].sum() < 1
    counts[far] += 20.0
    for crowd in crowds_of(counts, 3.0):
        there = (crowd.norms > NORMS[far - 3]) & (crowd.norms < NORMS[far + 2])
        assert crowd.counts[there].sum() == pytest.approx(20, abs=8)
        assert crowd.counts[crowd.norms > NORMS[far + 2]].sum() < 1


def test_noise_is_seldom_taken_for_people() -> None:
    rng, mistaken = np.random.default_rng(3), 0
    for _ in range(400):
        counts = rng.normal(0, 5.0, len(EDGES) + 1)
        counts[12] += 9_000.0
        crowds = crowds_of(counts, 5.0)
        mistaken += any(crowd.counts[crowd.norms > NORMS[40]].sum() > 5 for crowd in crowds)
    assert mistaken <= 2


def _noise(deviation: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.random.default_rng(8).normal(0, deviation, len(EDGES) + 1).clip(-6, 6)


def test_what_released_rows_can_have_used_up() -> None:
    own = planned(SLOTS).measurement
    for doubt in (0.0, 0.5, 1.0):
        used = own.used_at_ceiling(doubt)
        assert used[0] == 0
        assert (np.diff(used) >= 0).all()
        assert (used <= np.array([float(each) for each in own.spendable]) + 1e-12).all()
        # Coming rows have something left until the last.
        assert used[SLOTS // 2] < 0.95
        assert used[-1] == pytest.approx(1)
