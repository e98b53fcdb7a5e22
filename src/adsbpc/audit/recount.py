"""The books added up again, person by person: what everybody cost, and what their accounts say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from adsbpc.audit.cost import Moves
from adsbpc.audit.stretch_costs import StretchCosts, people_within, wide
from adsbpc.engines import Engine, Relation

# People are gone through in parts of about this many rows, so that memory stays low.
ROWS_OF_A_PART = 6_000_000
# Of each part so many people are counted again in plain Python: the largest, and at random.
LARGEST, AT_RANDOM = 300, 300
# But no more than so many of their moves times rows of the strategy.
_PLAIN_STEPS = 4_000_000


@dataclass(frozen=True)
class PeopleRange:
    """People with numbers in a range, and how many were followed through slots; `largest` is what
    the largest of them cost. `faults` counts what must not be, with a first example of each."""

    people: int
    followed: int
    largest: int
    faults: dict[str, int]
    examples: dict[str, tuple[Any, ...]]


class Recount:
    """`names` and `users` are everybody's, `stretches` hold the books in order, and `limits` what
    people may have cost after the newest slot, by tier."""

    def __init__(
        self,
        engine: Engine,
        names: Relation,
        users: Relation,
        stretches: Sequence[StretchCosts],
        limits: Sequence[int],
        rows: int,
        is_long: bool = False,
    ) -> None:
        self._is_long = is_long
        self._engine, self.names, self._users = engine, names, users
        self._stretches, self._limits = stretches, limits
        self._most_steps = max(1, _PLAIN_STEPS // rows)

    def ranges(self) -> list[tuple[int | None, int | None]]:
        """Ranges of numbers that hold everybody, the outer ones without an end."""
        ((least, most),) = self._engine.rows(
            "numbers", f"SELECT min(number), max(number) FROM {self.names}"
        )
        rows = sum(stretch.count() for stretch in self._stretches)
        if least is None:
            return [(None, None)]
        count = -(-max(rows, 1) // ROWS_OF_A_PART)
        edges = [least + (most + 1 - least) * k // count for k in range(1, count)]
        return list(zip([None, *edges], [*edges, None], strict=True))

    def part(self, first: int | None, end: int | None) -> PeopleRange:
        """Count everybody with a number from `first` to before `end`."""
        engine, before, followed = self._engine, None, 0
        faults: dict[str, int] = {"repeated": 0}
        examples: dict[str, tuple[Any, ...]] = {}
        queries: list[tuple[str, str]] = []
        for stretch in self._stretches:
            stretch.open_part(first, end, before)
            faults["repeated"] += stretch.repeated()
            followed = max(followed, stretch.followed())
            queries += stretch.faults().items()
            before = stretch
        self._people = engine.table("people", self._people_sql(first, end))
        ((people, largest),) = engine.rows(
            "people", f"SELECT count(*), coalesce(max(cost), wide(0)) FROM {self._people}"
        )
        for fault, sql in [*queries, *self._faults().items()]:
            ((count,),) = engine.rows(fault, f"SELECT count(*) FROM ({sql}) AS found")
            if count:
                faults[fault] = faults.get(fault, 0) + count
                examples.setdefault(fault, engine.rows(fault, f"{sql} ORDER BY 1 LIMIT 1")[0])
        return PeopleRange(people, followed, int(largest), faults, examples)

    def _people_sql(self, first: int | None, end: int | None) -> str:
        """A row for each number that names, moves or accounts have; costs are those of the newest
        stretch."""
        within, costs = people_within("number", first, end, 1), self._stretches[-1].costs
        of_cells = ", ".join(
            f"sum(CASE WHEN tier = 0 THEN {name} ELSE wide(0) END) AS {name}"
            for name in ("fixed", "whole", "past", "past_rows")
        )
        return f"""
SELECT number, sum(named) AS named, max(has_cells) AS has_cells, sum(accounts) AS accounts,
  {of_cells}, sum(fixed + whole) AS cost, sum(told_fixed) AS told_fixed, sum(spent) AS spent
FROM (
  SELECT number, 0 AS tier, 1 AS named, 0 AS has_cells, 0 AS accounts, wide(0) AS fixed,
    wide(0) AS whole, wide(0) AS past, wide(0) AS past_rows, wide(0) AS told_fixed,
    wide(0) AS spent
  FROM {self.names} WHERE {within}
  UNION ALL
  SELECT number, 0, 0, 0, 1, wide(0), wide(0), wide(0), wide(0), fixed, spent
  FROM {self._users} AS users WHERE {within}
  UNION ALL
  SELECT number, tier, 0, CASE WHEN tier = 0 THEN has_rows ELSE 0 END, 0, fixed, whole, past,
    wide(past_rows), wide(0), wide(0)
  FROM {costs} AS costs
) AS all_of_them GROUP BY number"""

    def _faults(self) -> dict[str, str]:
        newest = self._stretches[-1]
        # What the account says that the past of the last renewal will cost; later slots are exact.
        past = "(spent - told_fixed - (whole - past))"
        most, limit = newest.rounded_up(0, "past", "past_rows"), wide(self._limits[0])
        is_other = f"""told_fixed <> fixed OR {past} < past
  OR (spent > {limit} AND fixed + whole <= {limit})
  OR {past} > CASE WHEN past_rows = 0 THEN past ELSE {most} END"""
        if self._is_long:
            is_other = f"told_fixed <> wide(0) OR {newest.is_other('spent', 'whole')}"
        return {
            "nameless": f"SELECT number FROM {self._people} WHERE named <> 1",
            "without rows": f"SELECT number FROM {self._people} WHERE has_cells = 0",
            "without account": f"SELECT number FROM {self._people} WHERE accounts <> 1",
            "other account": f"""
SELECT number, spent, fixed + whole FROM {self._people} WHERE accounts = 1 AND (
  {is_other})""",
        }

    def chosen(self) -> Iterator[tuple[list[Moves], dict[tuple[int, int], int]]]:
        """Of the last part, the largest people and some at random: their moves by stretch, and what
        SQL found that they had cost after each slot, by tier and slot."""
        by_chance = f"fingerprint(number, '{uuid4().hex}')"
        chosen: dict[int, None] = {}
        for by, most in (("cost DESC", LARGEST), (by_chance, AT_RANDOM)):
            found = self._engine.rows(
                "chosen people", f"SELECT number FROM {self._people} ORDER BY {by} LIMIT {most}"
            )
            picked = self._engine.numbers("picked", {"number": [number for (number,) in found]})
            moves = dict(self._stretches[-1].rows_of(picked))
            steps = 0
            for (number,) in found:
                steps += moves.get(number, 0)
                if steps <= self._most_steps or steps == moves.get(number, 0):
                    chosen[number] = None
        picked = self._engine.numbers("chosen", {"number": list(chosen)})
        costs: dict[int, dict[tuple[int, int], int]] = {number: {} for number in chosen}
        moves_of = []
        for stretch in self._stretches:
            moves_of.append(stretch.moves_of(picked))
            for number, found_costs in stretch.costs_of(picked).items():
                costs[number] |= found_costs
        for number in chosen:
            yield [own.get(number, []) for own in moves_of], costs[number]
