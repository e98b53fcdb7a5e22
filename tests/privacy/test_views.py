"""Views in the filter: every user of tiny campaigns, with no tolerance; and what happens if a rule
about views is broken."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from adsbpc.model import Dimension, Layout
from adsbpc.privacy import (
    LIMIT,
    PARTS,
    Account,
    Strategy,
    Terms,
    admit,
    cost,
    largest_cell,
    square_and_cross,
    square_root,
    toeplitz,
)
from adsbpc.privacy.filter import LARGEST_CELL, LARGEST_SUM

PUBLISHER = Dimension("publisher", ("P-1", "other"))
COUNTRY = Dimension("country", ("DE", "other"))
# The sum of everything and cells; publishers and cells.
TWO_VIEWS = [Layout((PUBLISHER,), (1, 3)), Layout((PUBLISHER, COUNTRY), (0, 2, 1))]
SLOTS = 2
STRATEGIES = {"toeplitz": toeplitz(SLOTS, 0.3), "square-root": square_root(SLOTS)}
# A few of these weights fill a budget, one does not.
LARGE = 2**34 // 6_000
WEIGHTS = (0, LARGE, 5 * LARGE)


def users(layout: Layout) -> list[dict[tuple[int, int], int]]:
    places = tuple(product(range(1, SLOTS + 1), range(len(layout))))
    choices = product(WEIGHTS, repeat=len(places))
    return [dict(zip(places, chosen, strict=True)) for chosen in choices]


def terms_of(strategy: Strategy, slot: int) -> Terms:
    limit, multiplier = LIMIT * slot // SLOTS, 400 - 50 * slot
    return Terms(
        tuple(map(int, strategy.gram[slot - 1, :slot])),
        multiplier, multiplier // 4, limit * 19 // 20, limit - limit * 19 // 20,
    )  # fmt: skip


def run(
    user: dict[tuple[int, int], int], strategy: Strategy, layout: Layout
) -> tuple[Account, list[dict[int, int]]]:
    account, kept = Account(), []
    for slot in range(1, SLOTS + 1):
        asked = {cell: weight for (s, cell), weight in user.items() if s == slot and weight}
        kept.append(admit(account, asked, layout, terms_of(strategy, slot)))
    return account, kept


@pytest.mark.parametrize("layout", TWO_VIEWS, ids=lambda layout: str(layout.weights))
@pytest.mark.parametrize("name", STRATEGIES)
def test_no_user_moves_all_columns_by_more_than_the_limit(name: str, layout: Layout) -> None:
    """With columns written out and the cost from the rows of B, not from G."""
    strategy, worst = STRATEGIES[name], 0
    for user in users(layout):
        account, kept = run(user, strategy, layout)
        exact = cost(strategy, layout, account.moved)
        assert exact == sum(account.spent) <= LIMIT
        worst = max(worst, exact)
        for slot, part in enumerate(kept, start=1):
            for cell in range(len(layout)):
                assert part.get(cell, 0) <= user[(slot, cell)]
    assert worst > LIMIT * 9 // 10, "nobody came near the limit: this tests nothing"


# ---- rules that must not be broken ---------------------------------------------------------------


def worst_of(layout: Layout, admitted_as: Layout, strategy: Strategy) -> int:
    """The largest cost in the columns of one layout of users who were admitted for another."""
    return max(
        cost(strategy, layout, run(user, strategy, admitted_as)[0].moved)
        for user in users(layout)[::3]
    )


def test_a_view_whose_columns_are_not_charged_fails() -> None:
    layout, cells_alone = Layout((PUBLISHER,), (3, 3)), Layout((PUBLISHER,), (0, 3))
    assert worst_of(layout, layout, STRATEGIES["toeplitz"]) <= LIMIT
    assert worst_of(layout, cells_alone, STRATEGIES["toeplitz"]) > LIMIT


def test_weights_that_change_after_admission_fail() -> None:
    """Weights chosen from data would be others for neighbours: what fits one does not fit the
    other."""
    light, heavy = Layout((PUBLISHER,), (1, 3)), Layout((PUBLISHER,), (3, 3))
    assert worst_of(heavy, light, STRATEGIES["toeplitz"]) > LIMIT


def test_parts_cut_by_view_fail() -> None:
    """If every view took the largest part that fits it alone, their sum would not fit."""
    layout, strategy = Layout((PUBLISHER,), (1, 1)), STRATEGIES["toeplitz"]
    terms = terms_of(strategy, 1)
    asked = {0: 40 * LARGE, 1: 40 * LARGE}
    apart = 0
    for view in layout.views:
        alone = Layout((PUBLISHER,), (1, 1) if view.stride > 1 else (0, 1))
        kept = admit(Account(), asked, alone, terms)
        moved = {cell: terms.multiplier * kept[cell] for cell in asked}
        apart += square_and_cross({}, moved, (view,), terms.own)[0]
    kept = admit(Account(), asked, layout, terms)
    moved = {cell: terms.multiplier * kept[cell] for cell in asked}
    together = square_and_cross({}, moved, layout.views, terms.own)[0]
    assert together <= terms.kept_limit < apart
    # And what was kept is nearly all that fits.
    assert together > terms.kept_limit * (1 - 8 / PARTS)


@pytest.mark.parametrize(
    ("weights", "words"),
    [((1,), "2 of them"), ((0, 9), "from 0 to 8"), ((1, 0), "the last"), ((1.0, 1), "whole")],
)
def test_weights_that_no_layout_has(weights: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Layout((PUBLISHER,), weights)


def test_what_a_cell_counts_for_where_sums_could_grow() -> None:
    many = Dimension("publisher", tuple(map(str, range(20_000))))
    assert largest_cell(Layout((many,), (0, 1))) == LARGEST_CELL
    assert largest_cell(Layout((PUBLISHER,), (1, 1))) == LARGEST_CELL
    widest = Layout((many,), (1, 1))
    assert largest_cell(widest) * len(widest) <= LARGEST_SUM
