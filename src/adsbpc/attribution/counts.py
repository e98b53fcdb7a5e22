"""The sets of counts that fits are made from. Each is declared before any data is seen: its cells
follow from the number of publishers alone, and one that nobody is in is released like all others.

A user has one journey (`fit_journeys`), which either converted or did not. Publishers are places in
the public list, the last of which is everything else.

    coalitions   one cell: the set of publishers of the journey
    pairs        a cell for every pair of publishers of the journey, for every publisher, for any
    transitions  a cell for every step from one state of the journey to the next
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice, pairwise, product
from math import comb
from typing import ClassVar

from adsbpc.errors import SpecError
from adsbpc.model.toml import place

# A fit may release so many cells: exactly what all coalitions of twelve publishers and the rest
# need, for converting users and for others.
MOST_COALITIONS = 2**13
MOST_CELLS = 2**20
# Coalitions are bits of a 64-bit integer.
_MOST_PLAYERS = 62
# The code under which users of a holdout group are counted, whatever they saw.
HOLDOUT = -1


@dataclass(frozen=True)
class CountSet(ABC):
    """What all three have. A cell of the engine is twice its code, plus one if it converted."""

    name: ClassVar[str]
    players: int
    holdout: bool = False

    @cached_property
    def cells(self) -> tuple[int, ...]:
        """All cells in the order in which they are released."""
        found = tuple(islice(self._cells(), MOST_CELLS + 1))
        if self.holdout:
            found = (*found, 2 * HOLDOUT, 2 * HOLDOUT + 1)
        if len(found) > MOST_CELLS:
            raise SpecError(
                f"a fit for {self.players - 1} publishers would have more than {MOST_CELLS:,} "
                "counts",
                place("attribution", "model"),
                to_do="List fewer publishers, or lower the order if it is above 1",
            )
        return found

    @cached_property
    def positions(self) -> dict[int, int]:
        return {cell: position for position, cell in enumerate(self.cells)}

    @abstractmethod
    def _cells(self) -> Iterator[int]:
        """The same, but for those of a holdout group."""

    @property
    @abstractmethod
    def full_squared(self) -> int:
        """Users whose vector has at most this squared norm count in full."""

    @abstractmethod
    def steps_sql(self) -> str:
        """Named steps from `fit_touches` to `fit_cells` (user_key, cell, amount)."""


def _both(codes: Iterator[int]) -> Iterator[int]:
    for code in codes:
        yield 2 * code
        yield 2 * code + 1


def mask_of(members: Sequence[int]) -> int:
    """A coalition as bits."""
    return sum(1 << member for member in members)


@dataclass(frozen=True)
class Coalitions(CountSet):
    """Codes are bit masks of publishers. With more than twelve publishers and the rest only
    coalitions of up to `largest` are counted, and a longer journey counts for its latest ones."""

    name: ClassVar[str] = "coalitions"

    def __post_init__(self) -> None:
        if self.players > _MOST_PLAYERS:
            raise SpecError(
                f"lists {self.players - 1}, and a model of coalitions can tell "
                f"{_MOST_PLAYERS - 1} apart",
                place("campaign", "publishers"),
                to_do='List fewer, or take model = "incremental_value", "probabilistic" or '
                '"markov"',
            )

    @cached_property
    def largest(self) -> int:
        """The size of the largest coalitions that are counted."""
        count, size = 0, 0
        while size < self.players and count + comb(self.players, size + 1) < MOST_COALITIONS:
            size += 1
            count += comb(self.players, size)
        return size

    def of_size(self, size: int) -> list[tuple[int, ...]]:
        """The members of all coalitions of a size."""
        return list(combinations(range(self.players), size))

    @cached_property
    def members(self) -> tuple[tuple[int, ...], ...]:
        """Those of every coalition that is counted, small ones first."""
        sizes = range(1, self.largest + 1)
        return tuple(members for size in sizes for members in self.of_size(size))

    def _cells(self) -> Iterator[int]:
        return _both(mask_of(members) for members in self.members)

    @property
    def full_squared(self) -> int:
        return 1

    def steps_sql(self) -> str:
        latest = ""
        if self.largest < self.players:
            latest = f"WHERE recency <= {self.largest}"
        return f"""fit_members AS (
  SELECT user_key, converted, publisher_index, row_number() OVER (
      PARTITION BY user_key ORDER BY max(touch_order) DESC) AS recency
  FROM fit_touches GROUP BY user_key, converted, publisher_index
),
fit_cells AS (
  SELECT user_key,
    2 * CAST(sum(CAST(1 AS BIGINT) << publisher_index) AS BIGINT) + converted AS cell, 1 AS amount
  FROM fit_members {latest}
  GROUP BY user_key, converted
)"""


@dataclass(frozen=True)
class Pairs(CountSet):
    """Codes: 0 for any publisher, then 1 + i players + j for publishers i <= j."""

    name: ClassVar[str] = "pairs"

    full_journey: int = 6

    def code(self, one: int, other: int) -> int:
        return 1 + min(one, other) * self.players + max(one, other)

    def _cells(self) -> Iterator[int]:
        yield from _both(iter([0]))
        yield from _both(
            self.code(one, other)
            for one in range(self.players)
            for other in range(one, self.players)
        )

    @property
    def full_squared(self) -> int:
        members = min(self.full_journey, self.players)
        return 1 + members * (members + 1) // 2

    def steps_sql(self) -> str:
        return f"""fit_members AS (
  SELECT DISTINCT user_key, converted, publisher_index FROM fit_touches
),
fit_cells AS (
  SELECT one.user_key,
    2 * (1 + CAST(one.publisher_index AS BIGINT) * {self.players} + other.publisher_index)
      + one.converted AS cell,
    1 AS amount
  FROM fit_members AS one
  JOIN fit_members AS other
    ON other.user_key = one.user_key AND other.publisher_index >= one.publisher_index
  UNION ALL
  SELECT DISTINCT user_key, CAST(converted AS BIGINT) AS cell, 1 AS amount FROM fit_touches
)"""


@dataclass(frozen=True)
class Transitions(CountSet):
    """Steps between states, which are the latest `order` stages of a journey; a stage is a run of
    touches of one publisher. Before a journey has as many, its state is all of it so far.

    A state is a number whose digits to the base of players + 1 are its stages, the latest last. A
    code is the state before, 0 for the start, times the number of states, plus the state after, 0
    for the end. Only the end tells converting users from others.
    """

    name: ClassVar[str] = "transitions"

    full_journey: int = 6
    order: int = 1

    @property
    def base(self) -> int:
        return self.players + 1

    @property
    def states(self) -> int:
        return int(self.base**self.order)

    def state(self, stages: tuple[int, ...]) -> int:
        number = 0
        for stage in stages:
            number = number * self.base + stage + 1
        return number

    def stages(self, length: int) -> Iterator[tuple[int, ...]]:
        """All runs of publishers of a length: none follows itself."""
        for found in product(range(self.players), repeat=length):
            if all(one != other for one, other in pairwise(found)):
                yield found

    def _cells(self) -> Iterator[int]:
        if self.states > MOST_CELLS:
            raise SpecError(
                f"has too many states with {self.players - 1} publishers",
                place("attribution", "order"),
                str(self.order),
                "Lower it, or list fewer publishers",
            )
        for length in range(1, self.order + 2):
            for stages in self.stages(length):
                before, after = self.state(stages[:-1]), self.state(stages[-self.order :])
                yield 2 * (before * self.states + after)
                if length <= self.order:
                    yield from _both(iter([after * self.states]))

    @property
    def full_squared(self) -> int:
        return self.full_journey + 1

    def steps_sql(self) -> str:
        def earlier(back: int) -> str:
            if back == 0:
                return "publisher_index + 1"
            return (
                f"coalesce(lag(publisher_index, {back}) OVER "
                "(PARTITION BY user_key ORDER BY touch_order) + 1, 0)"
            )

        def state(first: int) -> str:
            digits = [
                f"CAST({earlier(first + back)} AS BIGINT) * {self.base**back}"
                for back in range(self.order)
            ]
            return "\n      + ".join(digits)

        return f"""fit_runs AS (
  SELECT user_key, converted, publisher_index, touch_order,
    lag(publisher_index) OVER (PARTITION BY user_key ORDER BY touch_order) AS before
  FROM fit_touches
),
fit_stages AS (
  SELECT user_key, converted, publisher_index, touch_order FROM fit_runs
  WHERE before IS NULL OR before <> publisher_index
),
fit_states AS (
  SELECT user_key, converted,
    lead(touch_order) OVER (PARTITION BY user_key ORDER BY touch_order) IS NULL AS is_last,
    {state(0)} AS state,
    {state(1)} AS state_before
  FROM fit_stages
),
fit_steps AS (
  SELECT user_key, 2 * (state_before * {self.states} + state) AS cell FROM fit_states
  UNION ALL
  SELECT user_key, 2 * state * {self.states} + converted AS cell FROM fit_states WHERE is_last
),
fit_cells AS (
  SELECT user_key, cell, count(*) AS amount FROM fit_steps GROUP BY user_key, cell
)"""


def set_name(model: str) -> str:
    """The name of the set that a model is fitted from."""
    return count_set(model, 1, 1).name


def count_set(
    model: str, order: int, players: int, full_journey: int = 6, holdout: bool = False
) -> CountSet:
    """The set that a model is fitted from."""
    if model == "markov":
        return Transitions(players, False, full_journey, order)
    if model in ("incremental_value", "probabilistic"):
        return Pairs(players, holdout, full_journey)
    return Coalitions(players, holdout)
