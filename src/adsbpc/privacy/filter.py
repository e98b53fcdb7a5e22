"""Personal budgets: what of a user is admitted, so that no user ever costs more than the limit.

Let e_s be what was admitted of a user at slot s, per cell, in grid units, and m_s the public
multiplier of the slot. With z_s = m_s e_s and G = B^T B over all rows of the strategy,

    cost = sum over s, s' of G_ss' <z_s, z_s'>  =  || B z ||^2

is how far the user moves everything that is ever published, squared. Adaptive or not: row t holds
sum_s B_ts z_s and fresh noise, and what is admitted depends on the user's own data and on earlier
outputs. `admit` is the definition; engines and arrays compute the same in their own way.

Must never: use a float, round up, count only the rows so far, or look at two users at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isqrt

from adsbpc.errors import PrivacyError
from adsbpc.privacy.strategies import Strategy

# What does not fit is admitted in this many parts.
PARTS = 4096
# What one user may cost over a whole campaign. Only its ratio to the noise matters; this size
# leaves multipliers room to be precise, and keeps products within 128 bits.
LIMIT = 2**88
# A user's weight in one slot and cell counts up to here, some 95,000 conversions.
LARGEST_CELL = 2**36
# Publishers and the column for what was cut.
MOST_COLUMNS = 4096
LARGEST_MULTIPLIER = 2**20


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
    """One user's books: how far the user moves each slot and column, m_s e_s, and what that costs.
    The column after the cells counts what was cut, with a budget of its own."""

    moved: dict[tuple[int, int], int] = field(default_factory=dict)
    spent: int = 0
    spent_on_cut: int = 0

    def before(self, column: int, terms: Terms) -> int:
        """sum over s < t of G_ts m_s e_s, in one column."""
        return sum(
            cost * self.moved.get((s, column), 0)
            for s, cost in enumerate(terms.costs[:-1], start=1)
        )


def admit(
    account: Account, asked: Mapping[int, int], cut_column: int, terms: Terms
) -> dict[int, int]:
    """Admit what a user contributes to a slot, column -> weight: all of it, or the largest number
    of parts that fits. Then count what was cut, as far as that fits. Returns what was kept."""
    if min(asked.values(), default=0) < 0:
        raise PrivacyError("a contribution below 0")
    counted = {column: min(weight, LARGEST_CELL) for column, weight in asked.items()}
    room = terms.kept_limit - account.spent
    kept, charge = _admit(account, counted, terms, terms.multiplier, room)
    account.spent += charge
    cut = sum(counted.values()) - sum(kept.values())
    room = terms.cut_limit - account.spent_on_cut
    counted_cut, charge = _admit(account, {cut_column: cut}, terms, terms.cut_multiplier, room)
    account.spent_on_cut += charge
    return kept | counted_cut


def _admit(
    account: Account, asked: Mapping[int, int], terms: Terms, multiplier: int, room: int
) -> tuple[dict[int, int], int]:
    """What is kept, and what it costs."""
    capped = {column: min(weight, terms.cap(multiplier)) for column, weight in asked.items()}
    before = {column: account.before(column, terms) for column in capped}
    square = terms.own * sum((multiplier * weight) ** 2 for weight in capped.values())
    cross = sum(multiplier * weight * before[column] for column, weight in capped.items())
    parts = largest_parts(square, cross, room)
    kept = {column: weight * parts // PARTS for column, weight in capped.items()}
    moved = {column: multiplier * weight for column, weight in kept.items() if weight}
    # What is charged is what was kept, rounding included.
    charge = sum(move * (2 * before[column] + terms.own * move) for column, move in moved.items())
    if charge > max(room, 0):
        raise PrivacyError(f"slot {terms.slot}: a user would cost {charge}, above {room}")
    account.moved |= {(terms.slot, column): move for column, move in moved.items()}
    return kept, charge


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


def cost(strategy: Strategy, multiplied: Mapping[tuple[int, int], int]) -> int:
    """|| B z ||^2 from the rows of B, for z by (slot, column): what the filter must have kept
    within its limit, computed in another way than it does."""
    columns = {column for _, column in multiplied}
    return sum(
        sum(entry * multiplied.get((s, column), 0) for s, entry in enumerate(row, start=1)) ** 2
        for row in strategy.rows
        for column in columns
    )
