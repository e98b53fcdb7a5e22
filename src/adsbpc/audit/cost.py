"""What one person has cost, in plain Python, straight from the rows of the strategy.

Row t of what is published holds, in every column, the sum over slots s <= t of B_ts z_s, where z_s
is how far the person moved that column at slot s. So the person shifts row t by that sum, and costs
the sum of the squares of all shifts: of all rows, those of the future too, and of all columns. A
renewal changes what coming rows hold of the slots before it; what the rows until then have cost
stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adsbpc.audit.promised_plan import Rows
from adsbpc.audit.stretches import Stretch

# (slot, column, moved) of one person.
Moves = Sequence[tuple[int, int, int]]


def shifts(rows: Rows, moves: Mapping[int, int]) -> list[int]:
    """How far moves by slot, all of one column, shift each row.

    >>> shifts([[2], [1, 3]], {1: 5, 2: 1})
    [10, 8]
    """
    return [
        sum(row[slot - 1] * moved for slot, moved in moves.items() if slot <= len(row))
        for row in rows
    ]


def costs_by_slot(
    rows: Rows, stretches: Sequence[Stretch], moves: Sequence[Moves], columns: int
) -> dict[tuple[int, int], int]:
    """From a person's moves in every stretch, what it had cost after its slots: (tier, slot) to
    cost. Tier 0 is what was let in, in so many columns; each column after those is one more."""
    found: dict[tuple[int, int], int] = {}
    fixed: dict[int, int] = {}
    for stretch, own in zip(stretches, moves, strict=True):
        tiers: dict[int, list[tuple[int, int, int]]] = {tier: [] for tier in fixed}
        for slot, column, moved in own:
            tiers.setdefault(max(column - columns + 1, 0), []).append((slot, column, moved))
        for tier, of_tier in tiers.items():
            before = fixed.get(tier, 0)
            for slot, cost in _costs(rows, stretch, of_tier, bool(before)).items():
                found[tier, slot] = before + cost
            ended = _squares(rows[stretch.first - 1 : stretch.end], _by_column(of_tier))
            fixed[tier] = before + sum(ended.values())
    return found


def _costs(rows: Rows, stretch: Stretch, moves: Moves, from_first: bool) -> dict[int, int]:
    """What all rows from the stretch's first one cost after each of its slots on which there was
    something, or from the first one on."""
    at: dict[int, list[tuple[int, int, int]]] = {stretch.first: []} if from_first else {}
    for slot, column, moved in moves:
        at.setdefault(max(slot, stretch.first), []).append((slot, column, moved))
    so_far: list[tuple[int, int, int]] = []
    squares: dict[int, int] = {}
    found = {}
    for slot in sorted(at):
        so_far += at[slot]
        touched = {column for _, column, _ in at[slot]}
        changed = [move for move in so_far if move[1] in touched]
        squares |= _squares(rows[stretch.first - 1 :], _by_column(changed))
        found[slot] = sum(squares.values())
    return found


def _by_column(moves: Moves) -> dict[int, dict[int, int]]:
    found: dict[int, dict[int, int]] = {}
    for slot, column, moved in moves:
        own = found.setdefault(column, {})
        own[slot] = own.get(slot, 0) + moved
    return found


def _squares(rows: Rows, columns: Mapping[int, Mapping[int, int]]) -> dict[int, int]:
    """Of all shifts, by column."""
    return {column: sum(shift**2 for shift in shifts(rows, own)) for column, own in columns.items()}
