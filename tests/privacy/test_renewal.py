"""The past let in again: no user of a small campaign ever moves all rows by more than the limit,
and each of the usual mistakes is found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product

import pytest

from adsbpc.errors import PrivacyError
from adsbpc.model import Layout
from adsbpc.privacy import LIMIT, Account, Renewal, Strategy, Terms, Tier, admit, cost, renew
from adsbpc.privacy.filter import Gram, Moves, Need

LAYOUT = Layout.of_publishers(("P", "other"))
# Small whole numbers, so that every user can be gone through: 2^43 moves a row by half of its part.
STRATEGY = Strategy(((4,), (2, 3), (1, 2, 5)))
SLOTS = STRATEGY.slots
WEIGHTS = (0, 2**30, 2**36)
# Multipliers of the rows; where they change, the past is renewed.
SCRIPTS = ((2**9, 2**7, 2**11), (2**7, 2**11, 2**11), (2**11, 2**11, 2**5))

Renew = Callable[[Account, Moves, Layout, Renewal], Moves]


def gram(first_row: int, last_row: int, slots: int) -> Gram:
    rows = STRATEGY.matrix[first_row - 1 : last_row, :slots]
    return tuple(tuple(map(int, row)) for row in rows.T @ rows)


def terms_of(slot: int, multiplier: int) -> Terms:
    limit = LIMIT * slot // SLOTS
    costs = tuple(map(int, STRATEGY.gram[slot - 1, :slot]))
    return Terms(
        costs, multiplier, max(1, multiplier // 4), limit * 8 // 10, limit // 10,
        Tier(max(1, multiplier // 32), limit // 10), (multiplier, max(1, multiplier // 2)),
    )  # fmt: skip


def users() -> Iterator[dict[tuple[int, int], int]]:
    """Every user with one of the weights in each of two cells on each of the slots."""
    places = list(product(range(1, SLOTS + 1), range(2)))
    for weights in product(WEIGHTS, repeat=len(places)):
        yield {place: weight for place, weight in zip(places, weights, strict=True) if weight}


def moved_by(asked: Moves, multipliers: tuple[int, ...], again: Renew) -> tuple[int, Account]:
    """How far a user moves all rows, squared, and the books."""
    account, total, begun = Account(), 0, 1
    for slot, multiplier in enumerate(multipliers, start=1):
        terms = terms_of(slot, multiplier)
        past = {place: weight for place, weight in asked.items() if place[0] < slot}
        if slot > 1 and multiplier != multipliers[slot - 2]:
            total += cost(STRATEGY, LAYOUT, account.moved, slice(begun - 1, slot - 1))
            ended, coming = gram(begun, slot - 1, slot - 1), gram(slot, SLOTS, slot - 1)
            again(account, past, LAYOUT, Renewal(terms, ended, coming))
            begun = slot
        now = {cell: weight for (at, cell), weight in asked.items() if at == slot}
        admit(account, now, LAYOUT, terms)
    return total + cost(STRATEGY, LAYOUT, account.moved, slice(begun - 1, None)), account


def test_no_user_moves_all_rows_by_more_than_the_limit() -> None:
    largest = 0
    for multipliers in SCRIPTS:
        for asked in users():
            found, account = moved_by(asked, multipliers, renew)
            assert found <= sum(account.spent) <= LIMIT
            largest = max(largest, found)
    # The limit is used: a looser one would have been passed.
    assert largest > LIMIT * 0.9


def forgets_released_rows(
    account: Account, asked: Moves, layout: Layout, renewal: Renewal
) -> Moves:
    nothing = tuple(tuple(0 for _ in row) for row in renewal.ended)
    return renew(account, asked, layout, replace(renewal, ended=nothing))


def forgets_coming_rows(account: Account, asked: Moves, layout: Layout, renewal: Renewal) -> Moves:
    """Only the next row is counted."""
    slots = renewal.terms.slot - 1
    next_row = gram(renewal.terms.slot, renewal.terms.slot, slots)
    return renew(account, asked, layout, replace(renewal, coming=next_row))


def keeps_old_multipliers(
    account: Account, asked: Moves, layout: Layout, renewal: Renewal
) -> Moves:
    """Rows hold the past with new multipliers, books with multipliers of 1."""
    terms = replace(renewal.terms, multiplier=1, multipliers=(1, 1))
    kept = renew(account, asked, layout, replace(renewal, terms=terms))
    for (slot, cell), weight in kept.items():
        if cell < len(layout):
            account.moved[slot, cell] = renewal.terms.multiplier_of(cell) * weight
    return kept


@pytest.mark.parametrize(
    "mistake", [forgets_released_rows, forgets_coming_rows, keeps_old_multipliers]
)
def test_mistakes_are_found(mistake: Renew) -> None:
    def is_passed() -> bool:
        for multipliers in SCRIPTS:
            for asked in users():
                try:
                    found, _ = moved_by(asked, multipliers, mistake)
                except PrivacyError:
                    return True
                if found > LIMIT:
                    return True
        return False

    assert is_passed()


def test_renewals_are_of_the_slots_before() -> None:
    terms = terms_of(3, 8)
    with pytest.raises(PrivacyError, match="a renewal at slot 3 for 1 slots"):
        Renewal(terms, ((1,),), ((1,),))


def test_who_asked_for_too_much_is_let_in_for_nothing_of_the_past() -> None:
    account = Account(need=Need(own=1, seen=1))
    terms = replace(terms_of(2, 2**20), multipliers=())
    asked = {(1, cell): 2**36 for cell in range(2)}
    kept = renew(account, asked, LAYOUT, Renewal(terms, gram(1, 1, 1), gram(2, SLOTS, 1)))
    assert [kept[place] for place in asked] == [0, 0]
    assert account.spent[0] <= terms.kept_limit
