"""Personal budgets: what of a user is admitted, so that no user ever costs more than the limit.

Let e_s be what is admitted of a user at slot s, per cell, in grid units, and m_s the public
multipliers. H holds the columns of the layout: for every view with weight w, and each of its
columns, w times the sum of its cells. With z_s = H m_s e_s, row t of the strategy holds
sum_s B_ts z_s and fresh noise, so that

    cost = sum over rows t of || sum over s of B_ts z_s ||^2

is how far the user moves everything that is ever published, squared: adaptive or not, because what
is admitted depends on the user's own data and on earlier outputs. Rows that were released have
moved as they have. Those to come may hold the same slots in another way: `renew` takes new
multipliers for everything so far and admits it anew, as far as the coming rows fit what is left.
Between renewals, cost grows by sums over G = B^T B. `admit` and `renew` are the definition; engines
and arrays compute the same in their own way.

Must never: use a float, round up, count only the rows so far, forget what released rows have cost,
leave out a view's columns, or look at two users at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isqrt

from adsbpc.errors import PrivacyError
from adsbpc.model.grid import UNITS_PER_CONVERSION
from adsbpc.model.layout import Layout, View
from adsbpc.privacy.decays import Crossing
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
# Who asked for so much that the past would cost more than this is let in for nothing of it when it
# is renewed: at most 64 parts would fit, and products would leave 126 bits.
LARGEST_COST = 2**100
_LARGEST_PRODUCT = 2**123
# Forecasts drop so many bits of needs before they multiply.
FORECAST_BITS = 20


def largest_cell(layout: Layout) -> int:
    """What a user's weight in one slot and cell counts for at most."""
    if layout.once:
        return UNITS_PER_CONVERSION
    if all(view.stride == 1 for view in layout.views):
        return LARGEST_CELL
    return min(LARGEST_CELL, LARGEST_SUM // len(layout))


@dataclass(frozen=True)
class Growth:
    """Expected needs: own needs and those across slots times public factors, in parts of
    2^FORECAST_BITS, by the number of slots on which a user was seen. Whatever the factors, it is
    about one user."""

    own: tuple[int, ...]
    across: tuple[int, ...]

    @property
    def largest(self) -> int:
        """Larger needs, without their last bits, are forecast as if they were this one."""
        return _LARGEST_PRODUCT // max(*self.own, *self.across, 1)

    def of(self, need: Need) -> int:
        own, across = (min(n >> FORECAST_BITS, self.largest) for n in (need.own, need.across))
        return own * self.own[need.seen - 1] + across * self.across[need.seen - 1]


@dataclass
class Need:
    """What everything that a user asked for so far would cost with multipliers as `sizes` of cells,
    or of 1: within slots, and across them. `seen` is on how many slots there was any."""

    own: int = 0
    across: int = 0
    seen: int = 0


@dataclass(frozen=True)
class Tier:
    """Columns with a budget of their own: what they are multiplied with, and may have cost."""

    multiplier: int
    limit: int


@dataclass(frozen=True)
class Pace:
    """Above `free`, a user is let in only in the part in which everything would fit until the end
    if it went on as `growth` expects, rather than whole until the budget is gone."""

    free: int
    growth: Growth


@dataclass(frozen=True)
class Terms:
    """What decides about one slot. All of it is public, and fixed before the slot's contributions
    are looked at.

    `costs` are G_t1 .. G_tt, or what stands for them in a long campaign; `multiplier` is that of
    all cells, or `multipliers` has one for each, where no view sums cells. `cut_multiplier` is the
    one of the column that counts what was cut, and `rest`, if there is one, is for what that one
    cannot count. Costs of columns add up, so that what is kept may cost `kept_limit` and what is
    counted as cut `cut_limit`, and none uses up another's.
    """

    costs: tuple[int, ...] | Crossing
    multiplier: int
    cut_multiplier: int
    kept_limit: int
    cut_limit: int
    rest: Tier | None = None
    multipliers: tuple[int, ...] = ()
    pace: Pace | None = None

    def __post_init__(self) -> None:
        if self.own < 1 or (not isinstance(self.costs, Crossing) and min(self.costs) < 0):
            raise PrivacyError(f"terms of slot {self.slot} with a cost below 0")
        for multiplier in (self.multiplier, *self.multipliers, *(t.multiplier for t in self.cuts)):
            if not 1 <= multiplier <= LARGEST_MULTIPLIER:
                raise PrivacyError(
                    f"terms of slot {self.slot} with a multiplier of {multiplier}: expected 1 to "
                    f"{LARGEST_MULTIPLIER}"
                )
        if min(self.kept_limit, *(tier.limit for tier in self.cuts)) < 0 or self.limit > LIMIT:
            raise PrivacyError(
                f"terms of slot {self.slot} with a limit of {self.limit}: expected 0 to {LIMIT}"
            )

    @property
    def slot(self) -> int:
        return self.costs.slot if isinstance(self.costs, Crossing) else len(self.costs)

    @property
    def cuts(self) -> tuple[Tier, ...]:
        """Columns after the cells, each of which counts what those before it leave."""
        first = Tier(self.cut_multiplier, self.cut_limit)
        return (first,) if self.rest is None else (first, self.rest)

    @property
    def limit(self) -> int:
        """What a user may have cost after this slot, over all rows and columns."""
        return self.kept_limit + sum(tier.limit for tier in self.cuts)

    @property
    def own(self) -> int:
        return self.costs.own if isinstance(self.costs, Crossing) else self.costs[-1]

    @property
    def listed(self) -> tuple[int, ...]:
        """G_t1 .. G_tt."""
        if isinstance(self.costs, Crossing):
            raise PrivacyError(f"terms of slot {self.slot} are those of a long campaign")
        return self.costs

    def cap(self, multiplier: int) -> int:
        """What goes above this could never fit, even alone: it is cut before anything else."""
        return isqrt(LIMIT // self.own) // multiplier + 1

    def multiplier_of(self, cell: int) -> int:
        return self.multipliers[cell] if self.multipliers else self.multiplier


Gram = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Renewal:
    """New multipliers for everything before a slot, public and fixed as its terms are. `ended` are
    sums over the rows that were released since the last renewal of B_ts B_ts', for the slots before
    this one; `coming` over the rows of this slot and later ones."""

    terms: Terms
    ended: Gram
    coming: Gram

    def __post_init__(self) -> None:
        for gram in (self.ended, self.coming):
            if len(gram) != self.terms.slot - 1 or any(len(row) != len(gram) for row in gram):
                raise PrivacyError(f"a renewal at slot {self.terms.slot} for {len(gram)} slots")

    def largest_sum(self, views: Sequence[View]) -> int:
        """Sums of what somebody moves that are not above this have costs within 128 bits."""
        entry = max((max(row) for row in self.coming), default=0)
        unit = sum(view.weight**2 for view in views)
        return isqrt(_LARGEST_PRODUCT // (max(entry, 1) * unit))


@dataclass
class Account:
    """One user's books: how far the user moves each slot and cell, m_s e_s, and what that costs by
    tier: cells first, then the columns after them, which count what was cut, with budgets of their
    own. `fixed` is what of it rows have cost that were released before the last renewal."""

    moved: dict[tuple[int, int], int] = field(default_factory=dict)
    spent: list[int] = field(default_factory=lambda: [0, 0, 0])
    fixed: list[int] = field(default_factory=lambda: [0, 0, 0])
    need: Need = field(default_factory=Need)

    def before(self, terms: Terms) -> dict[int, int]:
        """sum over s < t of G_ts m_s e_s, by cell: sums have every cell, asked for again or not."""
        found, costs = dict[int, int](), terms.listed
        for (slot, cell), move in self.moved.items():
            found[cell] = found.get(cell, 0) + costs[slot - 1] * move
        return found

    def add(self, terms: Terms, moved: Mapping[int, int]) -> None:
        """What the user moves at the slot, by cell, none of it 0."""
        self.moved |= {(terms.slot, cell): move for cell, move in moved.items()}

    def tier(self, number: int, layout: Layout) -> Moves:
        """What is moved by slot and cell of one tier."""
        first = len(layout) + number - 1
        return {
            place: move
            for place, move in self.moved.items()
            if (place[1] < len(layout) if number == 0 else place[1] == first)
        }


def admit(
    account: Account, asked: Mapping[int, int], layout: Layout, terms: Terms
) -> dict[int, int]:
    """Admit what a user contributes to a slot, cell -> weight: all of it, or the largest number
    of parts that fits. Then count what was cut, as far as that fits. Returns what was kept."""
    if min(asked.values(), default=0) < 0:
        raise PrivacyError("a contribution below 0")
    counted = {cell: min(weight, largest_cell(layout)) for cell, weight in asked.items()}
    before = account.before(terms)
    of_cells = {cell: move for cell, move in before.items() if cell < len(layout)}
    kept = _admit(account, 0, of_cells, counted, layout.views, terms)
    left, found = sum(counted.values()) - sum(kept.values()), dict(kept)
    for number, tier in enumerate(terms.cuts, start=1):
        cell = len(layout) + number - 1
        of_cut = {cell: before.get(cell, 0)}
        alone = replace(
            terms, multiplier=tier.multiplier, multipliers=(), kept_limit=tier.limit, pace=None
        )
        part = _admit(account, number, of_cut, {cell: left}, ALONE, alone)
        found |= part
        left -= part[cell]
    return found


# What was cut is in one column, and in no sums.
ALONE = (View(depth=0, columns=1, stride=1, weight=1),)


def _admit(
    account: Account,
    tier: int,
    before: Mapping[int, int],
    asked: Mapping[int, int],
    views: Sequence[View],
    terms: Terms,
) -> dict[int, int]:
    """What is kept of some cells, charged for the columns of all views."""
    multipliers = {cell: terms.multiplier_of(cell) for cell in asked}
    capped = {cell: min(weight, terms.cap(multipliers[cell])) for cell, weight in asked.items()}
    moved = {cell: multipliers[cell] * weight for cell, weight in capped.items()}
    spent, square_cross = account.spent[tier], square_and_cross(before, moved, views, terms.own)
    parts = _parts(*square_cross, terms.kept_limit, spent, account.need, terms.pace)
    kept = {cell: weight * parts // PARTS for cell, weight in capped.items()}
    # What is charged is what was kept, rounding included.
    moved = {cell: multipliers[cell] * weight for cell, weight in kept.items()}
    square, cross = square_and_cross(before, moved, views, terms.own)
    charge = square + 2 * cross
    if charge > max(terms.kept_limit - spent, 0):
        raise PrivacyError(f"slot {terms.slot}: a user would cost {spent + charge}: too much")
    account.spent[tier] += charge
    account.add(terms, {cell: move for cell, move in moved.items() if move})
    return kept


def _parts(square: int, cross: int, limit: int, spent: int, need: Need, pace: Pace | None) -> int:
    """How many parts are kept: as many as fit, and above what is free no more than the pace has."""
    parts = largest_parts(square, cross, limit - spent)
    if pace is None or spent + square + 2 * cross <= pace.free:
        return parts
    until_the_end = min(square + 2 * cross + pace.growth.of(need), LARGEST_COST)
    paced = largest_parts(until_the_end, 0, limit - spent)
    return min(parts, max(paced, largest_parts(square, cross, pace.free - spent)))


Moves = Mapping[tuple[int, int], int]


def renew(account: Account, asked: Moves, layout: Layout, renewal: Renewal) -> Moves:
    """Admit again what a user asked for before a slot, (slot, cell) -> weight, with new multipliers
    and as far as the coming rows fit what released ones have left. Returns what is kept."""
    terms, cells = renewal.terms, len(layout)
    for number in range(1 + len(terms.cuts)):
        views = layout.views if number == 0 else ALONE
        ended = quadratic(account.tier(number, layout), renewal.ended, views)
        account.fixed[number] += ended
    account.moved = {}
    wished = {
        (slot, cell): min(weight, largest_cell(layout)) for (slot, cell), weight in asked.items()
    }
    kept = _renew(account, 0, wished, layout.views, terms, renewal)
    found, left = dict(kept), dict[tuple[int, int], int]()
    for (slot, cell), weight in wished.items():
        left[slot, cells] = left.get((slot, cells), 0) + weight - kept[slot, cell]
    for number, tier in enumerate(terms.cuts, start=1):
        alone = replace(
            terms, multiplier=tier.multiplier, multipliers=(), kept_limit=tier.limit, pace=None
        )
        part = _renew(account, number, left, ALONE, alone, renewal)
        found |= part
        left = {(slot, cell + 1): left[slot, cell] - part[slot, cell] for slot, cell in left}
    return found


def _renew(
    account: Account, tier: int, asked: Moves, views: Sequence[View], terms: Terms, renewal: Renewal
) -> dict[tuple[int, int], int]:
    moved = {place: terms.multiplier_of(place[1]) * asked[place] for place in asked}
    fixed, parts, square = account.fixed[tier], 0, 0
    if sum(moved.values()) <= renewal.largest_sum(views):
        square = quadratic(moved, renewal.coming, views)
        if square <= LARGEST_COST:
            parts = _parts(square, 0, terms.kept_limit, fixed, account.need, terms.pace)
    # Rounded against the user, so that nobody has to be summed up again.
    cost = square if parts == PARTS else square * parts**2 // PARTS**2 + 1
    account.spent[tier] = min(fixed + cost, terms.kept_limit)
    kept = {place: weight * parts // PARTS for place, weight in asked.items()}
    account.moved |= {
        place: terms.multiplier_of(place[1]) * weight for place, weight in kept.items() if weight
    }
    return kept


def quadratic(moved: Moves, gram: Gram, views: Sequence[View]) -> int:
    """sum over slots s, s' of gram_ss' times products of what is moved, in the columns of views."""
    total = 0
    for view in views:
        columns: dict[int, dict[int, int]] = {}
        for (slot, cell), move in moved.items():
            column = columns.setdefault(cell // view.stride, {})
            column[slot] = column.get(slot, 0) + move
        total += view.weight**2 * sum(
            gram[s - 1][r - 1] * a * b
            for column in columns.values()
            for s, a in column.items()
            for r, b in column.items()
        )
    return total


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


def cost(strategy: Strategy, layout: Layout, moved: Moves, rows: slice = slice(None)) -> int:
    """|| B z ||^2 from the rows of B and the columns of all views, for m_s e_s by (slot, cell),
    what was cut after the cells: what the filter must have kept within its limit, computed in
    another way. Between renewals, only over the rows that were released with these."""
    columns: dict[tuple[int, int, int], int] = {}
    for (slot, cell), move in moved.items():
        is_cut = cell >= len(layout)
        for number, view in enumerate(ALONE if is_cut else layout.views):
            place = (-1 if is_cut else number, cell // view.stride, slot)
            columns[place] = columns.get(place, 0) + view.weight * move
    return sum(
        sum(entry * columns.get((*column, s), 0) for s, entry in enumerate(row, start=1)) ** 2
        for row in strategy.rows[rows]
        for column in {(view, column) for view, column, _ in columns}
    )
