"""Personal budgets on an engine: the filter in SQL, with books in Parquet.

The books of a slot are four files. `names` gives each new user a number. `cells` has a row for
each user and cell of the slot: slot, cell (the user's number times 4096, or 32768 where there are
more cells than that, plus the index of the cell), asked, moved. `cut` has what was counted of the
users of whom something was cut, and what that cost. `users` has a row for everybody so far: number,
need, spent, the latter two in halves. A release reads the users of the last slot and the rest of
all earlier ones, and writes its own; whether they count is for the ledger to say.

Columns of views are sums of cells, and stand in no file. Where people are counted once, a cell that
`cells` has of an earlier slot is not asked for again, whether or not it was kept. Figures are
integers of at most 128 bits. `privacy.filter` says what is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adsbpc.contributions.filter_sql import PARTS_THAT_FIT, guessed, slot_values, whole
from adsbpc.contributions.interface import LARGEST_NEED, Integers, check_edges, check_slot
from adsbpc.engines import Engine, Relation
from adsbpc.errors import ContributionError, PrivacyError
from adsbpc.model.layout import Layout, View
from adsbpc.privacy.filter import MOST_CELLS, PARTS, Terms, largest_cell

NAMES, CELLS, CUT, USERS = "names.parquet", "cells.parquet", "cut.parquet", "users.parquet"
FILES = (NAMES, CELLS, CUT, USERS)
_LIMBS = ("need_high", "need_low", "spent_high", "spent_low")


@dataclass(frozen=True)
class Books:
    """Folders with the books of the slots before this one, in order, and one for this slot's."""

    earlier: tuple[Path, ...]
    new: Path


class EngineAccounts:
    """The books of one slot, whose contributions are the rows of `relation` with its number."""

    def __init__(
        self, engine: Engine, relation: Relation, slots: int, layout: Layout, books: Books
    ) -> None:
        self.slots = slots
        self.layout = layout
        self._engine = engine
        self._relation = relation
        self._books = books
        self._slot = len(books.earlier) + 1
        check_slot(self._slot, slots)
        if len(layout) > MOST_CELLS:
            raise ContributionError(
                f"{len(layout)} cells: personal budgets take at most {MOST_CELLS}. "
                'Count small ones under "other", or take mechanism = "adsbpc"'
            )
        # Numbers of a user's cells; what was cut has one too.
        self._places = 4096 if len(layout) < 4096 else MOST_CELLS + 1
        # What the steps below have made so far, by its name.
        self._rows: dict[str, Relation] = {}
        self._opened = False

    def _table(self, what: str, sql: str) -> None:
        self._rows[what] = self._engine.table(what, sql)

    def needs(self, costs: Sequence[int], edges: Sequence[int]) -> Integers:
        check_edges(edges)
        self._open(costs)
        bins = "".join(f" WHEN need <= {whole(edge)} THEN {i}" for i, edge in enumerate(edges))
        found = self._engine.rows(
            "histogram of needs",
            f"SELECT bin, count(*) FROM (SELECT CASE{bins} ELSE {len(edges)} END AS bin"
            f" FROM ({self._everybody('active')}) AS everybody) AS binned GROUP BY bin",
        )
        counts = np.zeros(len(edges) + 1, dtype=np.int64)
        for position, users in found:
            counts[position] = users
        return counts

    def admit(self, terms: Terms) -> list[int]:
        self._open(terms.costs)
        self._judge(terms, terms.multiplier, terms.kept_limit)
        self._cut_short(terms, terms.multiplier)
        self._count_what_was_cut(terms, terms.cut_multiplier)
        self._check(terms)
        self._write(terms)
        cut_column = len(self.layout)
        found = self._engine.rows(
            "totals of what is kept",
            f"""
SELECT cell % {self._places} AS place, CAST(sum(kept) AS BIGINT)
FROM ({self._kept_cells()}) AS kept GROUP BY cell % {self._places}
UNION ALL
SELECT {cut_column}, CAST(coalesce(sum(counted), 0) AS BIGINT) FROM {self._rows["counted"]}""",
        )
        totals = [0] * (cut_column + 1)
        for place, total in found:
            totals[place] = int(total)
        return totals

    # ---- steps ---------------------------------------------------------------------------------

    def _open(self, costs: Sequence[int]) -> None:
        """This slot's cells with what earlier ones add to their cost, and the need and account of
        everybody in it."""
        if len(costs) != self._slot:
            raise ContributionError(
                f"slot {len(costs)} of personal budgets: these are the books of slot {self._slot}"
            )
        if self._opened:
            return
        self._read_books()
        self._give_numbers()
        self._table("columns", "\nUNION ALL\n".join(self._columns(costs)))
        self._table(
            "active",
            f"""
WITH more AS (
  SELECT number, sum(squared_weight
    * (2 * wide(asked) * asked_before + {costs[-1]} * wide(asked) * wide(asked))) AS need
  FROM {self._rows["columns"]} GROUP BY number
)
SELECT more.number,
  least(coalesce(before.need, wide(0)) + more.need, {whole(LARGEST_NEED)}) AS need,
  coalesce(before.spent, wide(0)) AS spent
FROM more LEFT JOIN {self._rows["users_before"]} AS before ON before.number = more.number""",
        )
        self._opened = True

    def _columns(self, costs: Sequence[int]) -> Iterator[str]:
        """For every view, the columns of those who are in the slot: what they ask for in each, and
        what earlier slots add to its cost."""
        for view in self.layout.views:
            now = str(self._rows["asked"])
            if view.stride > 1:
                now = f"""(
  SELECT {self._column("cell", view)} AS cell, CAST(sum(asked) AS BIGINT) AS asked
  FROM {now} AS cells GROUP BY {self._column("cell", view)})"""
            yield f"""
SELECT now.cell AS place, whole_div(now.cell, {self._places}) AS number, asked,
  {view.depth} AS depth, CAST({view.weight**2} AS BIGINT) AS squared_weight,
  coalesce(asked_before, wide(0)) AS asked_before, coalesce(before, wide(0)) AS before
FROM {now} AS now LEFT JOIN (
  SELECT now.cell, sum(wide(past.asked * cost)) AS asked_before,
    sum(wide(past.moved * cost)) AS before
  FROM {self._rows["past"]} AS past
  JOIN {now} AS now ON now.cell = {self._column("past.cell", view)}
  JOIN (VALUES {slot_values(costs)}) AS cost_with (slot, cost) ON cost_with.slot = past.slot
  GROUP BY now.cell
) AS earlier ON earlier.cell = now.cell"""

    def _column(self, cell: str, view: View) -> str:
        """The user's column of a view that a cell is in."""
        if view.stride == 1:
            return cell
        within = f"{cell} % {self._places}"
        return f"({cell} - {within} + whole_div({within}, {view.stride}))"

    def _read_books(self) -> None:
        columns = {
            NAMES: ("names_before", ("user_id", "number")),
            CELLS: ("past", ("slot", "cell", "asked", "moved")),
            CUT: ("past_cut", ("slot", "number", "moved", "charge_high", "charge_low")),
            USERS: ("users_stored", ("number", *_LIMBS)),
        }
        earlier = self._books.earlier
        for file, (view, names) in columns.items():
            folders = earlier[-1:] if file == USERS else earlier
            if folders:
                paths = [str(each / file) for each in folders]
                self._rows[view] = self._engine.read_files(view, "parquet", paths, None, names)
            else:
                nothing = ", ".join(f"weight AS {name}" for name in names if name != "user_id")
                self._rows[view] = Relation.of(
                    f"SELECT CAST(user_id AS STRING) AS user_id, {nothing}"
                    f" FROM {self._relation} WHERE 1 = 0",
                )
        self._rows["users_before"] = Relation.of(
            "SELECT number, wide_of(need_high, need_low) AS need,"
            " wide_of(spent_high, spent_low) AS spent"
            f" FROM {self._rows['users_stored']}",
        )

    def _give_numbers(self) -> None:
        """This slot's cells by number. Users that were never seen get the next numbers; only for
        them do rows keep the long name. Names are texts: compared with numbers, an engine might
        take two of them for one."""
        self._table(
            "asked_by_name",
            f"""
SELECT number, newcomer, cell_index,
  CAST(least(sum(weight), {largest_cell(self.layout)}) AS BIGINT) AS asked
FROM (
  SELECT number, CASE WHEN number IS NULL THEN now.user_id END AS newcomer, cell_index, weight
  FROM (
    SELECT CAST(user_id AS STRING) AS user_id, cell_index, weight
    FROM {self._relation} WHERE slot = {self._slot} AND weight > 0
  ) AS now
  LEFT JOIN {self._rows["names_before"]} AS names ON names.user_id = now.user_id
) AS named
GROUP BY number, newcomer, cell_index""",
        )
        ((least, most),) = self._engine.rows(
            "places",
            f"SELECT min(cell_index), max(cell_index) FROM {self._rows['asked_by_name']}",
        )
        if most is not None and not 0 <= least <= most < len(self.layout):
            raise ContributionError(
                f"cell_index = {least if least < 0 else most}: the layout has cells 0 "
                f"to {len(self.layout) - 1}"
            )
        ((known,),) = self._engine.rows(
            "count names", f"SELECT count(*) FROM {self._rows['names_before']}"
        )
        self._table(
            "names_new",
            f"""
SELECT user_id, CAST({int(known)} + row_number() OVER (ORDER BY user_id) AS BIGINT) AS number
FROM (
  SELECT DISTINCT newcomer AS user_id
  FROM {self._rows["asked_by_name"]} WHERE newcomer IS NOT NULL
) AS newcomers""",
        )
        of_known = f"""
SELECT number * {self._places} + cell_index AS cell, asked
FROM {self._rows["asked_by_name"]} WHERE number IS NOT NULL"""
        if self.layout.once:
            # Who was counted, the books say: the same on every retry, whatever comes late.
            of_known = f"""
SELECT now.cell, now.asked FROM ({of_known}) AS now
LEFT JOIN {self._rows["past"]} AS past ON past.cell = now.cell WHERE past.cell IS NULL"""
        self._table(
            "asked",
            f"""{of_known}
UNION ALL
SELECT names.number * {self._places} + cell_index AS cell, asked
FROM {self._rows["asked_by_name"]} AS asked
JOIN {self._rows["names_new"]} AS names ON names.user_id = asked.newcomer""",
        )

    def _everybody(self, active: str) -> str:
        """Need and account of all users so far, those of the slot as they are in `active`."""
        return f"""
SELECT number, need, spent FROM {self._rows[active]}
UNION ALL
SELECT before.number, before.need, before.spent FROM {self._rows["users_before"]} AS before
LEFT JOIN {self._rows[active]} AS active ON active.number = before.number
WHERE active.number IS NULL"""

    def _judge(self, terms: Terms, multiplier: int, limit: int) -> None:
        """How many parts of each user's cells fit, and what they cost if all do."""
        cap = terms.cap(multiplier)
        # Hardly anybody has a cell above the cap, so that columns hold what was asked for.
        above = "\nUNION ALL\n".join(
            f"SELECT {view.depth} AS depth, {self._column('cell', view)} AS place,"
            f" CAST(sum(asked - {cap}) AS BIGINT) AS excess FROM {self._rows['asked']}"
            f" WHERE asked > {cap} GROUP BY {self._column('cell', view)}"
            for view in self.layout.views
        )
        self._rows["above"] = Relation.of(above)
        self._table(
            "judged",
            f"""
WITH capped AS (
  SELECT number, squared_weight, before, excess,
    wide((asked - coalesce(excess, 0)) * {multiplier}) AS moved
  FROM {self._rows["columns"]} AS columns LEFT JOIN {self._rows["above"]} AS above
    ON above.depth = columns.depth AND above.place = columns.place
),
sums AS (
  SELECT number, {terms.own} * sum(squared_weight * moved * moved) AS square,
    sum(squared_weight * moved * before) AS cross_term, max(excess) AS excess
  FROM capped GROUP BY number
),
rooms AS (
  SELECT sums.number, need, spent, square, cross_term, excess, {whole(limit)} - spent AS room
  FROM sums JOIN {self._rows["active"]} AS active ON active.number = sums.number
)
SELECT number, need, spent, square + 2 * cross_term AS charge,
  CASE WHEN excess IS NULL THEN 0 ELSE 1 END AS is_capped,
  {PARTS_THAT_FIT} AS parts
FROM ({guessed("rooms", "number, need, spent, excess")}) AS guessed""",
        )

    def _cut_short(self, terms: Terms, multiplier: int) -> None:
        """Cells of the few users of whom not everything is kept, and what the rest costs them."""
        self._table(
            "short",
            f"""
SELECT cell, judged.number, asked, whole_div(
  least(asked, {terms.cap(multiplier)}) * parts, {PARTS}) AS kept
FROM {self._rows["asked"]} AS cells
JOIN {self._rows["judged"]} AS judged ON judged.number = whole_div(cell, {self._places})
WHERE parts < {PARTS} OR is_capped = 1""",
        )
        kept_of = "\nUNION ALL\n".join(
            f"SELECT {view.depth} AS depth, {self._column('cell', view)} AS place,"
            f" wide(CAST(sum(kept) AS BIGINT) * {multiplier}) AS moved"
            f" FROM {self._rows['short']} GROUP BY {self._column('cell', view)}"
            for view in self.layout.views
        )
        self._rows["charged"] = Relation.of(
            f"""
WITH kept AS ({kept_of}),
charges AS (
  SELECT number, sum(squared_weight * moved * (2 * before + {terms.own} * moved)) AS charge
  FROM kept JOIN {self._rows["columns"]} AS columns
    ON columns.depth = kept.depth AND columns.place = kept.place
  GROUP BY number
)
SELECT cut.number, cut, charge FROM (
  SELECT number, CAST(sum(asked - kept) AS BIGINT) AS cut FROM {self._rows["short"]} GROUP BY number
) AS cut JOIN charges ON charges.number = cut.number""",
        )

    def _count_what_was_cut(self, terms: Terms, multiplier: int) -> None:
        """How much was cut of each of them, as far as their budget lets it be counted."""
        self._table(
            "counted",
            f"""
WITH cost_with (slot, cost) AS (VALUES {slot_values(terms.costs)}),
earlier AS (
  SELECT past.number, sum(wide(past.moved * cost)) AS before,
    sum(wide_of(charge_high, charge_low)) AS spent
  FROM {self._rows["past_cut"]} AS past
  JOIN {self._rows["charged"]} AS charged ON charged.number = past.number
  JOIN cost_with ON cost_with.slot = past.slot
  GROUP BY past.number
),
rooms AS (
  SELECT charged.number, charged.charge AS kept_charge, coalesce(before, wide(0)) AS before,
    coalesce(spent, wide(0)) AS spent, least(cut, {terms.cap(multiplier)}) AS capped
  FROM {self._rows["charged"]} AS charged LEFT JOIN earlier ON earlier.number = charged.number
),
sums AS (
  SELECT number, kept_charge, spent, before, capped,
    {terms.own} * wide(capped * {multiplier}) * wide(capped * {multiplier}) AS square,
    wide(capped * {multiplier}) * before AS cross_term, {whole(terms.cut_limit)} - spent AS room
  FROM rooms
),
counted AS (
  SELECT number, kept_charge, spent, before,
    whole_div(capped * {PARTS_THAT_FIT}, {PARTS}) AS counted
  FROM ({guessed("sums", "number, kept_charge, spent, before, capped")}) AS guessed
)
SELECT number, kept_charge, counted, counted * {multiplier} AS moved, spent,
  wide(counted * {multiplier}) * (2 * before + {terms.own} * wide(counted * {multiplier}))
    AS charge
FROM counted""",
        )

    def _kept_cells(self) -> str:
        """Cells of everybody: the few that were cut short, and all others whole."""
        return f"""
SELECT cell, asked, kept FROM {self._rows["short"]}
UNION ALL
SELECT cell, asked, asked AS kept FROM {self._rows["asked"]} AS cells
LEFT JOIN {self._rows["counted"]} AS counted
  ON counted.number = whole_div(cells.cell, {self._places})
WHERE counted.number IS NULL"""

    def _check(self, terms: Terms) -> None:
        """Refuse to go on if anybody's books show more than the limits, whatever the reason."""
        self._rows["after"] = Relation.of(
            f"""
SELECT judged.number, need, judged.spent + coalesce(kept_charge, judged.charge) AS spent
FROM {self._rows["judged"]} AS judged
LEFT JOIN {self._rows["counted"]} AS counted ON counted.number = judged.number""",
        )
        ((kept, cut),) = self._engine.rows(
            "largest accounts",
            f"""
SELECT (SELECT count(*) FROM {self._rows["after"]} WHERE spent > {whole(terms.kept_limit)}),
  (SELECT count(*) FROM {self._rows["counted"]} WHERE spent + charge > {whole(terms.cut_limit)})""",
        )
        if kept or cut:
            raise PrivacyError(f"slot {terms.slot}: accounts would pass what users may spend")

    def _write(self, terms: Terms) -> None:
        slot = f"CAST({terms.slot} AS BIGINT) AS slot"
        parts = {
            NAMES: f"SELECT user_id, number FROM {self._rows['names_new']}",
            CELLS: f"SELECT {slot}, cell, asked, kept * {terms.multiplier} AS moved"
            f" FROM ({self._kept_cells()}) AS kept",
            CUT: f"SELECT {slot}, number, moved, high(charge) AS charge_high,"
            f" low(charge) AS charge_low FROM {self._rows['counted']} WHERE moved > 0",
            USERS: "SELECT number, high(need) AS need_high, low(need) AS need_low,"
            " high(spent) AS spent_high, low(spent) AS spent_low"
            f" FROM ({self._everybody('after')}) AS everybody",
        }
        for file, sql in parts.items():
            self._engine.write_parquet(f"write {file}", sql, self._books.new / file)
