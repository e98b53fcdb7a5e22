"""A fit costs no more than it is charged: every user of tiny instances, every pair of neighbours,
both adjacencies, no tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from adsbpc.attribution.counts import Coalitions, CountSet, Pairs, Transitions
from adsbpc.attribution.fit_reference import cells_of
from adsbpc.contributions.fit_counts import plain_counts
from adsbpc.model import Adjacency
from adsbpc.model.guarantee import PICO_RHO, Charge
from adsbpc.privacy import (
    COUNT_UNITS,
    full_weight,
    gaussian_cost,
    noisy_counts,
    weighed_squared,
)
from adsbpc.privacy.randomness import Integers
from tests.mechanisms.recording import RecordingRandomness

PLAYERS = 3
# Users who had the longest journey counting in full, and users far beyond it.
SETS = [
    Coalitions(PLAYERS),
    Coalitions(PLAYERS, holdout=True),
    Pairs(PLAYERS, False, 1),
    Pairs(PLAYERS, True, 2),
    Transitions(PLAYERS, False, 1),
    Transitions(PLAYERS, False, 3),
    Transitions(PLAYERS, False, 2, 2),
    Transitions(PLAYERS, False, 2, 3),
]
NAMES = [f"{type(s).__name__}-{s.full_squared}-{s.holdout}-{len(s.cells)}" for s in SETS]


def journeys() -> list[tuple[int, ...]]:
    """All journeys of up to four touches, and some of a robot."""
    short = [j for length in range(1, 5) for j in product(range(PLAYERS), repeat=length)]
    return [*short, (0, 1) * 500, (0, 1, 2) * 300, (2,) * 1000]


def vectors(counts: CountSet) -> list[Integers]:
    """What each possible user adds to the sums, nobody among them."""
    users = [
        cells_of(counts, journey, converted)
        for journey in journeys()
        for converted in (False, True)
    ]
    if counts.holdout:
        users += [{-2: 1}, {-1: 1}]  # type: ignore[list-item]
    return [plain_counts(counts, []), *(plain_counts(counts, [user]) for user in users)]


def largest_move(found: Sequence[Integers], adjacency: Adjacency) -> int:
    """The largest squared distance between sums of neighbours."""
    matrix = np.array(found, dtype=np.float64)
    # Entries are whole numbers up to 2^20, so that floating point holds every product and sum.
    assert matrix.max() <= 2**20
    norms = (matrix**2).sum(axis=1)
    if adjacency is Adjacency.ADD_REMOVE:
        return int(norms.max())
    return int((norms[:, None] + norms[None, :] - 2 * matrix @ matrix.T).max())


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("counts", SETS, ids=NAMES)
def test_every_pair_of_neighbours_is_within_the_charge(
    counts: CountSet, adjacency: Adjacency
) -> None:
    rho = Fraction(1, 20)
    randomness = RecordingRandomness()
    noisy = noisy_counts(plain_counts(counts, []), rho, adjacency, randomness)
    charge = Charge.for_cost("attribution fit", noisy.cost)
    (scale,) = randomness.scales("gaussian")
    moved = largest_move(vectors(counts), adjacency)
    assert moved <= weighed_squared(adjacency, COUNT_UNITS)
    assert gaussian_cost(moved, scale) <= charge.rho <= rho
    # The charge is not slack either: some user comes within a thousandth of it.
    if adjacency is Adjacency.ADD_REMOVE:
        assert gaussian_cost(moved, scale) * 1001 >= charge.rho * 1000
    assert charge.pico_rho <= rho * PICO_RHO


@pytest.mark.parametrize("counts", SETS, ids=NAMES)
def test_noise_for_add_remove_is_too_little_for_substitution(counts: CountSet) -> None:
    moved = largest_move(vectors(counts), Adjacency.SUBSTITUTE)
    assert moved > weighed_squared(Adjacency.ADD_REMOVE, COUNT_UNITS)


@pytest.mark.parametrize("counts", SETS[2:], ids=NAMES[2:])
def test_without_weighing_long_journeys_a_user_would_cost_more(counts: CountSet) -> None:
    full = full_weight(counts.full_squared)
    longest = max(
        sum((full * amount) ** 2 for amount in cells_of(counts, journey, True).values())
        for journey in journeys()
    )
    assert longest > weighed_squared(Adjacency.ADD_REMOVE, COUNT_UNITS)


@pytest.mark.parametrize("counts", SETS, ids=NAMES)
def test_sums_over_users_are_sums_of_what_each_adds(counts: CountSet) -> None:
    """Nobody's weight depends on who else is there."""
    users = [cells_of(counts, journey, len(journey) % 2 == 0) for journey in journeys()]
    whole = plain_counts(counts, users)
    apart = sum(plain_counts(counts, [user]) for user in users)
    assert np.array_equal(whole, apart)


def test_cells_do_not_depend_on_anybody() -> None:
    """The set is declared: a fit without a single user releases all of it."""
    for counts in SETS:
        noisy = noisy_counts(
            plain_counts(counts, []), Fraction(1), Adjacency.ADD_REMOVE, RecordingRandomness()
        )
        assert len(noisy.values) == len(counts.cells) == len(set(counts.cells))
