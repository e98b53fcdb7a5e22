"""Claims about the books of personal budgets: who is in them, what everybody cost, what adds up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from adsbpc.audit.book_files import BookFiles, BookRows
from adsbpc.audit.claims import BrokenClaimError, Claim, claim, claims, listed, require
from adsbpc.audit.cost import costs_by_slot
from adsbpc.audit.promised_plan import PromisedPlan
from adsbpc.audit.record import Record
from adsbpc.audit.recount import AT_RANDOM, LARGEST, ROWS_OF_A_PART, PeopleRange, Recount
from adsbpc.audit.slot_sums import SlotAudit, counted_once, in_two_arms
from adsbpc.audit.stretch_costs import DEARER, StretchCosts
from adsbpc.audit.stretches import ReleasedRow, Stretch, released_rows, stretches_of
from adsbpc.engines import Engine
from adsbpc.storage import Place

# Called with how many steps are done, and how many there are as far as is known.
Told = Callable[[int, int], None]
Judged = dict[str, str | BrokenClaimError]
# In a long campaign, costs of people are added up for so many slots.
MOST_PAIRED = 1_000

CELLS, TOTALS, NAMES, PEOPLE, COSTS, PLAIN, ACCOUNTS, ONCE, ARMS = (
    "cells", "kept totals", "names", "people in the books", "costs of people", "plain recount",
    "accounts", "people counted once", "one arm each",
)  # fmt: skip
_CHECKED = {
    CELLS: "every row: its slot, publisher and multiplier, at most what was asked, none below 0",
    TOTALS: "sums of the rows by slot and publisher against the secret totals",
    NAMES: "every user id has one number, every number one user id, over all slots",
    PEOPLE: "every row stands there once, belongs to a named person with one account, and is let "
    "in again for what was asked",
    COSTS: "everybody's cost from all rows and the strategy, after every slot, against the limit",
    PLAIN: "the same for some people, in plain Python from the rows of the strategy",
    ACCOUNTS: "what accounts, and charges for what was cut, say against those costs",
    ARMS: "nobody has rows in two arms of the trial, over all slots",
    ONCE: "every row is one person, no sum has anybody on two slots, or without the sums above it",
}


class BookAudit:
    """Goes through the files, slot by slot, then person by person. `newcomers` counts the people
    who were new on each slot, once the slots were gone through."""

    def __init__(
        self, record: Record, plan: PromisedPlan, folder: Place, engine: Engine, told: Told
    ) -> None:
        self.newcomers: list[int] | None = None
        self._record, self._plan, self._engine = record, plan, engine
        self._files = BookFiles(record, folder, engine, plan.is_long)
        self._told, self._done, self._steps = told, 0, 2 * len(record.slots)

    def claims(self) -> list[Claim]:
        return [
            self._files.hashes(self._advance),
            *claims(_of(CELLS, TOTALS), self._slots),
            claim(NAMES, _CHECKED[NAMES], self._names),
            *self._of_everybody(),
            *([claim(ONCE, _CHECKED[ONCE], self._once)] if self._plan.columns.once else []),
            *(
                [claim(ARMS, _CHECKED[ARMS], self._arms)]
                if self._plan.arms_list is not None
                else []
            ),
        ]

    def _of_everybody(self) -> list[Claim]:
        slots = len(self._record.slots)
        if self._plan.is_long and slots > MOST_PAIRED:
            # Costs are sums over pairs of slots.
            return [claim("limits of this audit", "how many slots there are to pair", _too_many)]
        return claims(_of(PEOPLE, COSTS, PLAIN, ACCOUNTS), self._everybody)

    def _advance(self) -> None:
        self._done += 1
        self._told(self._done, self._steps)

    @cached_property
    def _rows(self) -> list[ReleasedRow]:
        return released_rows(self._record, self._plan)

    @cached_property
    def _stretches(self) -> list[Stretch]:
        return stretches_of(self._rows, self._plan.rows)

    @cached_property
    def _recount(self) -> Recount:
        """If the files cannot be opened, every claim that needs them says why."""
        names, users = self._files.names(self._files.all_slots), self._files.users()
        plan, limits = self._plan, self._plan.limits(self._record)
        stretches = [
            StretchCosts(
                self._engine, each, self._files.rows(each.slots), plan.columns, limits, plan.is_long
            )
            for each in self._stretches
        ]
        return Recount(
            self._engine, names, users, stretches, limits[-1], len(plan.rows), plan.is_long
        )

    def _slots(self) -> Judged:
        faults, differing, rows, newcomers, last = [], [], 0, [], 0
        columns, all_slots = self._plan.columns, self._files.all_slots
        for number, row in zip(all_slots, self._rows, strict=True):
            with self._engine.scratch():
                books = self._files.rows([number])
                sums = SlotAudit(self._engine, books, row, columns, self._plan.cuts).sums()
                new, last = self._new_people(number, books, last)
            faults += [f"slot {number}: {rows:,} rows {what}" for what, rows in sums.faults.items()]
            for slot, found, told in zip(row.slots, sums.moved, row.moved(), strict=True):
                differing += [
                    f"slot {slot}, place {place}, as slot {number} has it: rows add up to {one}, "
                    f"and the total in the ledger means {other}"
                    for place, (one, other) in enumerate(zip(found, told, strict=True))
                    if one != other
                ]
            rows += sums.rows
            newcomers.append(new)
            self._advance()
        self.newcomers = newcomers
        totals = sum(len(row.slots) for row in self._rows) * (columns.cells + self._plan.cuts)
        return {
            CELLS: _judged(faults, f"{rows:,} rows of {len(newcomers):,} slots"),
            TOTALS: _judged(differing, f"{totals:,} sums, what was cut included"),
        }

    def _new_people(self, slot: int, books: BookRows, last: int) -> tuple[int, int]:
        """How many people were new on a slot, and the last number of them; before it, that was
        `last`. Files may have the names of other slots too: numbers, which only grow, tell them
        apart."""
        names = f"{self._files.names([slot])} AS names WHERE number > {last}"
        if self._files.is_gathered(slot):
            number = f"whole_div(cell, {self._plan.columns.books_places})"
            newest = f"SELECT coalesce(max({number}), {last}) FROM {books.cells} AS cells"
            names += f" AND number <= ({newest})"
        ((new, newest),) = self._engine.rows(
            "newcomers", f"SELECT count(*), coalesce(max(number), {last}) FROM {names}"
        )
        return int(new), int(newest)

    def _rounded_up(self) -> str:
        if self._plan.is_long:
            return f", but for what running sums have rounded up, at most {DEARER:.0%}"
        return "" if len(self._stretches) == 1 else ", but for what renewals have rounded up"

    def _names(self) -> str:
        names = self._recount.names
        ((rows, ids, numbers, empty),) = self._engine.rows(
            "names",
            "SELECT count(*), count(DISTINCT user_id), count(DISTINCT number),"
            f" count(*) FILTER (WHERE user_id IS NULL OR number IS NULL) FROM {names}",
        )
        require(not empty, f"{empty:,} user ids or numbers are empty")
        require(ids == rows, f"{rows - ids:,} user ids have a second number, and a second budget")
        require(numbers == rows, f"{rows - numbers:,} numbers stand for a second user id")
        return f"{rows:,} people"

    def _once(self) -> str:
        with self._engine.scratch():
            cells = self._files.rows(self._stretches[-1].slots).cells
            rows, faults = counted_once(self._engine, self._plan.columns, cells)
        problems = [f"{count:,} {what}" for what, count in faults.items() if count]
        require(not problems, listed(problems))
        return f"{rows:,} rows"

    def _arms(self) -> str:
        arms_list = self._plan.arms_list
        assert arms_list is not None
        with self._engine.scratch():
            cells = self._files.rows(self._stretches[-1].slots).cells
            people, several = in_two_arms(self._engine, self._plan.columns, arms_list, cells)
        require(not several, f"{several:,} people have rows in two arms")
        return f"{people:,} people"

    def _everybody(self) -> Judged:
        recount, rows = self._recount, self._plan.rows
        limits, plain = self._plan.limits(self._record), _Plain()
        parts, ranges = [], recount.ranges()
        self._steps += len(ranges)
        for first, end in ranges:
            with self._engine.scratch():
                parts.append(recount.part(first, end))
                for moves, costs in recount.chosen():
                    found = costs_by_slot(rows, self._stretches, moves, self._plan.columns.count)
                    plain.people += 1
                    plain.differing += found != costs
                    plain.above += any(
                        cost > limits[slot - 1][tier] for (tier, slot), cost in found.items()
                    )
            self._advance()
        people, followed = sum(part.people for part in parts), sum(part.followed for part in parts)
        return {
            PEOPLE: _judged(_problems_of_people(parts), f"{people:,} people"),
            COSTS: _judged(
                _problems_of_costs(parts),
                f"{people:,} people, {followed:,} of them followed through slots, "
                f"{len(self._stretches) - 1:,} renewals; the largest has spent "
                f"{_share(parts, limits[-1])} of today's limit",
            ),
            PLAIN: _judged(
                plain.problems(),
                f"{plain.people:,} people, alike to the last unit: {LARGEST} of the largest and "
                f"{AT_RANDOM} at random, if there are so many, of every {ROWS_OF_A_PART:,} rows",
            ),
            ACCOUNTS: _judged(
                _problems_of_accounts(parts),
                f"{people:,} accounts, exactly" + self._rounded_up(),
            ),
        }


def _too_many() -> str:
    return (
        f"NOT CHECKED, because more than {MOST_PAIRED:,} slots were released: what each person "
        "cost, what accounts say of it, that everybody in the books has one. Rows, totals, names, "
        "noise and charges were"
    )


@dataclass
class _Plain:
    """People that were counted in plain Python."""

    people: int = 0
    differing: int = 0
    above: int = 0

    def problems(self) -> list[str]:
        found = []
        if self.differing:
            found.append(f"{self.differing:,} of {self.people:,} people cost other than SQL found")
        if self.above:
            found.append(f"{self.above:,} of {self.people:,} people cost more than the limit")
        return found


def _of(*names: str) -> dict[str, str]:
    return {name: _CHECKED[name] for name in names}


def _judged(problems: list[str], figures: str) -> str | BrokenClaimError:
    return BrokenClaimError(listed(problems)) if problems else figures


def _share(parts: list[PeopleRange], limits: Sequence[int]) -> str:
    return f"{100 * max(part.largest for part in parts) / sum(limits):.4g}%"


def _count(parts: list[PeopleRange], fault: str) -> int:
    return sum(part.faults.get(fault, 0) for part in parts)


def _problems_of_people(parts: list[PeopleRange]) -> list[str]:
    counted = {
        "pairs of rows for the same person, slot and publisher": _count(parts, "repeated"),
        "numbers without one name": _count(parts, "nameless"),
        "numbers without any row": _count(parts, "without rows"),
        "numbers without one account": _count(parts, "without account"),
        "rows let in again for something else than was asked": _count(parts, "other past"),
    }
    return [f"{count:,} {what}" for what, count in counted.items() if count]


def _problems_of_costs(parts: list[PeopleRange]) -> list[str]:
    count = _count(parts, "above")
    if not count:
        return []
    number, tier, slot, cost, limit = _example(parts, "above")
    where = "what was let in" if tier == 0 else "what was counted of the cut"
    return [
        f"{count:,} times somebody is above the limit, first number {number} after slot {slot}, "
        f"with {where}: cost {cost}, limit {limit}"
    ]


def _problems_of_accounts(parts: list[PeopleRange]) -> list[str]:
    problems = []
    if count := _count(parts, "other account"):
        number, told, cost = _example(parts, "other account")
        problems.append(
            f"{count:,} accounts differ, first that of number {number}: it says {told}, and the "
            f"rows cost {cost}"
        )
    if count := _count(parts, "other cut"):
        number, slot, told, cost = _example(parts, "other cut")
        problems.append(
            f"{count:,} charges for what was cut differ, first that of number {number} on slot "
            f"{slot}: charged {told}, costs {cost}"
        )
    return problems


def _example(parts: list[PeopleRange], fault: str) -> tuple[int, ...]:
    return next(part.examples[fault] for part in parts if fault in part.examples)
