"""What one person has cost, in plain Python, straight from the rows of the strategy.

Row t of what is published holds, in every column, the sum over slots s <= t of B_ts z_s, where z_s
is how far the person moved that column at slot s. So the person shifts row t by that sum, and costs
the sum of the squares of all shifts: of all rows, those of the future too, and of all columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from adsbpc.audit.promised_plan import Rows


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
    rows: Rows, moves: Iterable[tuple[int, int, int]], cut_place: int
) -> dict[int, tuple[int, int]]:
    """From a person's moves (slot, place, moved), what it had cost after each of its slots: what
    was let in, and what was counted of the cut.

    >>> costs_by_slot([[2], [1, 3]], [(1, 0, 5), (2, 0, 1), (2, 9, 1)], cut_place=9)
    {1: (125, 0), 2: (164, 9)}
    """
    columns: dict[int, dict[int, int]] = {}
    squares: dict[int, int] = {}
    by_slot: dict[int, list[tuple[int, int]]] = {}
    for slot, place, moved in moves:
        by_slot.setdefault(slot, []).append((place, moved))
    found = {}
    for slot in sorted(by_slot):
        for place, moved in by_slot[slot]:
            column = columns.setdefault(place, {})
            column[slot] = column.get(slot, 0) + moved
        for place, _ in by_slot[slot]:
            squares[place] = sum(shift**2 for shift in shifts(rows, columns[place]))
        cut = squares.get(cut_place, 0)
        found[slot] = (sum(squares.values()) - cut, cut)
    return found
