"""Personal budgets: what of a user is admitted, so that no user ever costs more than the limit.

Let e_s be what was admitted of a user at slot s, per cell, in grid units, and m_s the public
multiplier of the slot. H holds the columns of the layout: for every view with weight w, and each of
its columns, w times the sum of its cells. With z_s = m_s H e_s and G = B^T B over all rows of the
strategy,

    cost = sum over s, s' of G_ss' <z_s, z_s'>  =  || B z ||^2

is how far the user moves everything that is ever published, squared. Adaptive or not: row t holds
sum_s B_ts z_s and fresh noise, and what is admitted depends on the user's own data and on earlier
outputs. `admit` is the definition; engines and arrays compute the same in their own way.

Must never: use a float, round up, count only the rows so far, leave out a view's columns, or look
at two users at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt

from adsbpc.errors import PrivacyError
from adsbpc.model.grid import UNITS_PER_CONVERSION
from adsbpc.model.layout import Layout, View
from adsbpc.privacy.strategies import Strategy

# What does not fit is admitted in this many parts.
PARTS = 4096
# What one user may cost over a whole campaign. Only its ratio to the noise matters; this size
# leaves multipliers room to be precise, and keeps products within 128 bits.
LIMIT = 2**88
# A user's weight in one slot and cell counts up to here, some 95,000 conversions; where views sum
# cells, less if there are many cells, so that the sums of a slot stay below LARGEST_SUM. Where
# people are counted once, somebody is one.
LARGEST_CELL = 2**36
LARGEST_SUM = 2**42
MOST_CELLS = 2**15 - 1
LARGEST_MULTIPLIER = 2**20


def largest_cell(layout: Layout) -> int:
    """What a user's weight in one slot and cell counts for at most."""
    if layout.once:
        return UNITS_PER_CONVERSION
    if all(view.stride == 1 for view in layout.views):
        return LARGEST_CELL
    return min(LARGEST_CELL, LARGEST_SUM // len(layout))


@dataclass(frozen=True)
class Terms:
    """What decides about one slot. All of it is public, and fixed before the slot's contributions
    are looked at.

    `costs` are G_t1 .. G_tt; `multiplier` is the slot's m_t for cells, `cut_multiplier` the
    one for the column that counts what was cut. Costs of columns add up, so that what is kept may
    cost `kept_limit` and what is counted as cut `cut_limit`, and neither uses up the other's.
    """

    costs: tuple[int, ...]
    multiplier: int
    cut_multiplier: int
    kept_limit: int
    cut_limit: int

    def __post_init__(self) -> None:
        if min(self.costs) < 0 or self.own < 1:
            raise PrivacyError(f"terms of slot {self.slot} with a cost below 0")
        for multiplier in (self.multiplier, self.cut_multiplier):
            if not 1 <= multiplier <= LARGEST_MULTIPLIER:
                raise PrivacyError(
                    f"terms of slot {self.slot} with a multiplier of {multiplier}: expected 1 to "
                    f"{LARGEST_MULTIPLIER}"
                )
        if min(self.kept_limit, self.cut_limit) < 0 or self.limit > LIMIT:
            raise PrivacyError(
                f"terms of slot {self.slot} with a limit of {self.limit}: expected 0 to {LIMIT}"
            )

    @property
    def slot(self) -> int:
        return len(self.costs)

    @property
    def limit(self) -> int:
        """What a user may have cost after this slot, over all rows and columns."""
        return self.kept_limit + self.cut_limit

    @property
    def own(self) -> int:
        return self.costs[-1]

    def cap(self, multiplier: int) -> int:
        """What goes above this could never fit, even alone: it is cut before anything else."""
        return isqrt(LIMIT // self.own) // multiplier + 1


@dataclass
class Account:
    """One user's books: how far the user moves each slot and cell, m_s e_s, and what that costs.
    The column after the cells counts what was cut, with a budget of its own."""

    moved: dict[tuple[int, int], int] = field(default_factory=dict)
    spent: int = 0
    spent_on_cut: int = 0

    def before(self, terms: Terms) -> dict[int, int]:
        """sum over s < t of G_ts m_s e_s, by cell: sums have every cell, asked for again or not."""
        found: dict[int, int] = {}
        for (slot, cell), move in self.moved.items():
            found[cell] = found.get(cell, 0) + terms.costs[slot - 1] * move
        return found


def admit(
    account: Account, asked: Mapping[int, int], layout: Layout, terms: Terms
) -> dict[int, int]:
    """Admit what a user contributes to a slot, cell -> weight: all of it, or the largest number
    of parts that fits. Then count what was cut, as far as that fits. Returns what was kept."""
    if min(asked.values(), default=0) < 0:
        raise PrivacyError("a contribution below 0")
    counted = {cell: min(weight, largest_cell(layout)) for cell, weight in asked.items()}
    before, cut_cell = account.before(terms), len(layout)
    before_cut = {cut_cell: before.pop(cut_cell, 0)}
    room = terms.kept_limit - account.spent
    kept, charge = _admit(before, counted, layout.views, terms, terms.multiplier, room)
    account.spent += charge
    cut = {cut_cell: sum(counted.values()) - sum(kept.values())}
    room = terms.cut_limit - account.spent_on_cut
    counted_cut, charge = _admit(before_cut, cut, _ALONE, terms, terms.cut_multiplier, room)
    account.spent_on_cut += charge
    for multiplier, part in ((terms.multiplier, kept), (terms.cut_multiplier, counted_cut)):
        account.moved |= {
            (terms.slot, cell): multiplier * weight for cell, weight in part.items() if weight
        }
    return kept | counted_cut


# What was cut is in one column, and in no sums.
_ALONE = (View(depth=0, columns=1, stride=1, weight=1),)


def _admit(
    before: Mapping[int, int],
    asked: Mapping[int, int],
    views: Sequence[View],
    terms: Terms,
    multiplier: int,
    room: int,
) -> tuple[dict[int, int], int]:
    """What is kept of some cells, and what it costs in the columns of all views."""
    capped = {cell: min(weight, terms.cap(multiplier)) for cell, weight in asked.items()}
    moved = {cell: multiplier * weight for cell, weight in capped.items()}
    parts = largest_parts(*square_and_cross(before, moved, views, terms.own), room)
    kept = {cell: weight * parts // PARTS for cell, weight in capped.items()}
    # What is charged is what was kept, rounding included.
    moved = {cell: multiplier * weight for cell, weight in kept.items()}
    square, cross = square_and_cross(before, moved, views, terms.own)
    charge = square + 2 * cross
    if charge > max(room, 0):
        raise PrivacyError(f"slot {terms.slot}: a user would cost {charge}, above {room}")
    return kept, charge


def square_and_cross(
    before: Mapping[int, int], moved: Mapping[int, int], views: Sequence[View], own: int
) -> tuple[int, int]:
    """What a user moves in a slot, by cell, adds square + 2 cross to what the user costs, where
    `before` is sum over s < t of G_ts times what was moved then."""
    square = cross = 0
    for view in views:
        now, earlier = summed(moved, view), summed(before, view)
        square += view.weight**2 * sum(move**2 for move in now.values())
        cross += view.weight**2 * sum(move * earlier.get(column, 0) for column, move in now.items())
    return own * square, cross


def summed(cells: Mapping[int, int], view: View) -> dict[int, int]:
    """Cells by column of a view, without its weight."""
    columns: dict[int, int] = {}
    for cell, weight in cells.items():
        columns[cell // view.stride] = columns.get(cell // view.stride, 0) + weight
    return columns


def largest_parts(square: int, cross: int, room: int) -> int:
    """The largest a in 0..PARTS with square a^2 + 2 cross PARTS a <= room PARTS^2, exactly.

    >>> largest_parts(square=4, cross=0, room=1) == PARTS // 2
    True
    """
    if room <= 0:
        return PARTS if square == 0 and cross == 0 else 0
    if square + 2 * cross <= room:
        return PARTS
    root = isqrt(PARTS**2 * (cross**2 + square * room))
    return (root - PARTS * cross) // square


def cost(strategy: Strategy, layout: Layout, moved: Mapping[tuple[int, int], int]) -> int:
    """|| B z ||^2 from the rows of B and the columns of all views, for m_s e_s by (slot, cell),
    what was cut last: what the filter must have kept within its limit, computed in another way."""
    columns: dict[tuple[int, int, int], int] = {}
    for (slot, cell), move in moved.items():
        views = _ALONE if cell == len(layout) else layout.views
        for number, view in enumerate(views):
            place = (-1 if cell == len(layout) else number, cell // view.stride, slot)
            columns[place] = columns.get(place, 0) + view.weight * move
    return sum(
        sum(entry * columns.get((*column, s), 0) for s, entry in enumerate(row, start=1)) ** 2
        for row in strategy.rows
        for column in {(view, column) for view, column, _ in columns}
    )
