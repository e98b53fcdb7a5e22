"""Personal budgets on an engine: the filter in SQL, with books in Parquet.

The books of a slot are five files. `names` gives each new user a number. `cells` has a row for
each user and cell of the slot: slot, cell (the user's number times 4096, or 32768 where there are
more cells than that, plus the index of the cell), asked, moved. `cut` and `rest` have what the
columns after the cells counted of the users of whom something was cut, and what that cost. `users`
has a row for everybody so far: number, needs, what is fixed and spent, in halves. A slot that
renews the past writes `cells`, `cut` and `rest` of all slots so far, and those before it are out of
use. A release reads the users of the last slot and the other files since the last renewal, and
writes its own; whether they count is for the ledger to say.

Columns of views are sums of cells, and stand in no file. Every figure is an integer of at most 128
bits. `privacy.filter` says what is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adsbpc.contributions.filter_sql import expected, factors, slot_values, whole, with_parts
from adsbpc.contributions.interface import (
    LARGEST_NEED,
    LARGEST_SIZED,
    Integers,
    check_edges,
    check_slot,
)
from adsbpc.contributions.renewal_sql import CutTier, RenewalSql, needs_again
from adsbpc.engines import Engine, Relation
from adsbpc.errors import ContributionError, PrivacyError
from adsbpc.model.layout import Layout, View
from adsbpc.privacy.filter import (
    LARGEST_CELL,
    MOST_CELLS,
    PARTS,
    Gram,
    Growth,
    Renewal,
    Terms,
    largest_cell,
)

NAMES, CELLS, CUT, USERS = "names.parquet", "cells.parquet", "cut.parquet", "users.parquet"
REST = "rest.parquet"
FILES = (NAMES, CELLS, CUT, REST, USERS)
_CUT_COLUMNS = ("slot", "number", "moved", "charge_high", "charge_low")
_WIDE_COLUMNS = ("own", "across", "fixed", "spent")


@dataclass(frozen=True)
class Books:
    """Folders with the books of the slots before this one, in order, and one for this slot's.
    `renewed` is the slot that renewed the past last, 1 if none has. `are_old`: an earlier version
    has written the users of the last slot, when needs were one figure and nothing was fixed."""

    earlier: tuple[Path, ...]
    new: Path
    renewed: int = 1
    are_old: bool = False


class EngineAccounts:
    """The books of one slot, whose contributions are the rows of `relation` with its number."""

    def __init__(
        self,
        engine: Engine,
        relation: Relation,
        slots: int,
        layout: Layout,
        books: Books,
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
        self._opened = self._is_renewed = False

    def _table(self, what: str, sql: str) -> None:
        self._rows[what] = self._engine.table(what, sql)

    def open(
        self, costs: Sequence[int], sizes: Sequence[int] = (), past: Gram | None = None
    ) -> None:
        """This slot's cells with what earlier ones add to their cost, and the needs and account of
        everybody in it."""
        if len(costs) != self._slot:
            raise ContributionError(
                f"slot {len(costs)} of personal budgets: these are the books of slot {self._slot}"
            )
        if self._opened:
            return
        self._read_books()
        self._give_numbers()
        if sizes:
            # Of this slot's opening; only layouts in which no view sums cells have them.
            places = {"cell_index": list(range(len(sizes))), "size": list(sizes)}
            self._rows["sizes"] = self._engine.numbers("sizes", places)
        if past:
            again = needs_again(
                self._rows["past"],
                self._sizes_joined("past.cell"),
                self.layout,
                self._places,
                self._engine.numbers("gram", _pairs(past, past)),
                LARGEST_SIZED if sizes else LARGEST_CELL,
            )
            self._table("needs_again", again)
            self._rows["users_before"] = Relation.of(
                "SELECT before.number, again.own, again.across, seen, fixed, spent"
                f" FROM {self._rows['users_before']} AS before"
                f" JOIN {self._rows['needs_again']} AS again ON again.number = before.number"
            )
        self._make_columns(costs)
        asked = f"wide(least(asked, {LARGEST_SIZED}))" if sizes else "wide(asked)"
        own = f"{costs[-1]} * {asked} * {asked}"
        self._table(
            "active",
            f"""
WITH more AS (
  SELECT number, sum(squared_weight * size * size * {own}) AS own,
    sum(squared_weight * size * size * (2 * {asked} * asked_before)) AS across
  FROM {self._rows["columns"]} AS columns
  {self._sizes_joined("place")} GROUP BY number
)
SELECT more.number,
  least(coalesce(before.own, wide(0)) + more.own, {whole(LARGEST_NEED)}) AS own,
  least(coalesce(before.across, wide(0)) + more.across, {whole(LARGEST_NEED)}) AS across,
  coalesce(seen, 0) + 1 AS seen,
  coalesce(before.fixed, wide(0)) AS fixed, coalesce(before.spent, wide(0)) AS spent
FROM more LEFT JOIN {self._rows["users_before"]} AS before ON before.number = more.number""",
        )
        self._opened = True

    def needs(
        self, costs: Sequence[int], edges: Sequence[int], growth: Growth | None = None
    ) -> Integers:
        check_edges(edges)
        self.open(costs)
        need, joined = "own + across", ""
        if growth is not None:
            need, joined = expected(growth), self._growth_joined("everybody", growth)
        bins = "".join(f" WHEN need <= {whole(edge)} THEN {i}" for i, edge in enumerate(edges))
        found = self._engine.rows(
            "histogram of needs",
            f"SELECT bin, count(*) FROM (SELECT CASE{bins} ELSE {len(edges)} END AS bin FROM ("
            f"SELECT {need} AS need FROM ({self._everybody('active')}) AS everybody{joined}"
            ") AS needed) AS binned GROUP BY bin",
        )
        counts = np.zeros(len(edges) + 1, dtype=np.int64)
        for position, users in found:
            counts[position] = users
        return counts

    def renew(self, renewal: Renewal) -> list[list[int]]:
        """The past let in again; what this slot asks for is then admitted beside it."""
        terms = renewal.terms
        self.open(terms.costs)
        self._weigh(terms)
        rows, pairs = self._rows, _pairs(renewal.ended, renewal.coming)
        rows["pairs"] = self._engine.numbers("pairs", pairs)
        factors_of = self._growth_joined("everybody", terms.pace.growth) if terms.pace else ""
        text = RenewalSql(renewal, self.layout, self._places, rows)
        self._table("renewing", text.quadratics())
        self._table("renewed", text.users(self._everybody("active"), factors_of))
        self._table("renewed_cells", text.cells(*self._of_cells(terms, "past.cell")))
        for number, (file, tier) in enumerate(zip((CUT, REST), terms.cuts, strict=False), start=1):
            of_tier = CutTier(number, tier, rows[_PAST_CUT[file]])
            self._table(f"left_{number}", text.left(of_tier))
            self._table(f"renewing_{number}", text.cut_users(of_tier))
            self._table(f"renewed_{number}", text.cut_rows(of_tier))
            rows[_PAST_CUT[file]] = rows[f"renewed_{number}"]
        rows["past"] = rows["renewed_cells"]
        for name in ("users_before", "active"):
            rows[name] = Relation.of(
                f"SELECT kept.number, own, across, seen, coalesce(renewed.fixed, wide(0)) AS fixed,"
                f" coalesce(renewed.spent, wide(0)) AS spent FROM {rows[name]} AS kept"
                f" LEFT JOIN {rows['renewed']} AS renewed ON renewed.number = kept.number"
            )
        self._make_columns(terms.costs)
        self._is_renewed = True
        return self._past_totals(terms)

    def _past_totals(self, terms: Terms) -> list[list[int]]:
        cells, columns = len(self.layout), len(self.layout) + len(terms.cuts)
        totals = [[0] * columns for _ in range(self._slot - 1)]
        kept = (
            f"SELECT slot, cell % {self._places} AS place, CAST(sum(kept) AS BIGINT)"
            f" FROM {self._rows['renewed_cells']} AS cells GROUP BY slot, cell % {self._places}"
        )
        for number, tier in enumerate(terms.cuts, start=1):
            kept += (
                f" UNION ALL SELECT slot, {cells + number - 1},"
                f" CAST(sum(whole_div(moved, {tier.multiplier})) AS BIGINT)"
                f" FROM {self._rows[f'renewed_{number}']} AS counted WHERE slot > 0 GROUP BY slot"
            )
        for slot, place, total in self._engine.rows("totals of the past", kept):
            totals[slot - 1][place] = int(total)
        return totals

    def admit(self, terms: Terms) -> list[int]:
        self.open(terms.costs)
        self._weigh(terms)
        self._judge(terms)
        self._cut_short(terms)
        left = f"SELECT number, cut AS left_over FROM {self._rows['charged']} AS charged"
        for number, file in enumerate((CUT, REST)[: len(terms.cuts)], start=1):
            self._count_what_was_cut(terms, number, file, left)
            left = f"SELECT number, left_over FROM {self._rows[f'counted_{number}']} AS counted"
        self._check(terms)
        self._write(terms)
        cut_column = len(self.layout)
        counted = "".join(
            f"\nUNION ALL\nSELECT {cut_column + number}, CAST(coalesce(sum(counted), 0) AS BIGINT)"
            f" FROM {self._rows[f'counted_{number + 1}']}"
            for number in range(len(terms.cuts))
        )
        found = self._engine.rows(
            "totals of what is kept",
            f"""
SELECT cell % {self._places} AS place, CAST(sum(kept) AS BIGINT)
FROM ({self._kept_cells(terms)}) AS kept GROUP BY cell % {self._places}{counted}""",
        )
        totals = [0] * (cut_column + len(terms.cuts))
        for place, total in found:
            totals[place] = int(total)
        return totals

    # ---- steps ---------------------------------------------------------------------------------

    def _weigh(self, terms: Terms) -> None:
        """Multipliers and caps of cells, where they are not alike."""
        if terms.multipliers and "weighed" not in self._rows:
            self._rows["weighed"] = self._engine.numbers(
                "weighed",
                {
                    "cell_index": list(range(len(terms.multipliers))),
                    "multiplier": list(terms.multipliers),
                    "cap": [terms.cap(each) for each in terms.multipliers],
                },
            )

    def _of_cells(self, terms: Terms, cell: str) -> tuple[str, str, str]:
        """What joins rows with a cell to its multiplier, the multiplier, and the cap."""
        if not terms.multipliers:
            return "", str(terms.multiplier), str(terms.cap(terms.multiplier))
        joined = f" JOIN {self._rows['weighed']} AS weighed"
        return f"{joined} ON weighed.cell_index = {cell} % {self._places}", "multiplier", "cap"

    def _sizes_joined(self, cell: str) -> str:
        """Rows with a cell beside its size."""
        if "sizes" not in self._rows:
            return "CROSS JOIN (SELECT CAST(1 AS BIGINT) AS size) AS sizes"
        return f"JOIN {self._rows['sizes']} AS sizes ON sizes.cell_index = {cell} % {self._places}"

    def _growth_joined(self, people: str, growth: Growth) -> str:
        table = self._engine.numbers("growth", factors(growth))
        return f" JOIN {table} AS growth ON growth.times = greatest({people}.seen, 1)"

    def _make_columns(self, costs: Sequence[int]) -> None:
        self._table("columns", "\nUNION ALL\n".join(self._columns(costs)))

    def _columns(self, costs: Sequence[int]) -> Iterator[str]:
        """For every view, the columns of those who are in the slot: what they ask for in each, and
        what earlier slots add to its cost."""
        for view in self.layout.views:
            now = str(self._rows["asked"])
            asked = f"least(past.asked, {LARGEST_SIZED})" if "sizes" in self._rows else "past.asked"
            if view.stride > 1:
                now = f"""(
  SELECT {self._column("cell", view)} AS cell, CAST(sum(asked) AS BIGINT) AS asked
  FROM {now} AS cells GROUP BY {self._column("cell", view)})"""
            yield f"""
SELECT now.cell AS place, whole_div(now.cell, {self._places}) AS number, asked,
  {view.depth} AS depth, CAST({view.weight**2} AS BIGINT) AS squared_weight,
  coalesce(asked_before, wide(0)) AS asked_before, coalesce(before, wide(0)) AS before
FROM {now} AS now LEFT JOIN (
  SELECT now.cell, sum(wide({asked} * cost)) AS asked_before,
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
        """Of names everything, of users the last slot, of the rest what is in use."""
        earlier, since = self._books.earlier, self._books.renewed - 1
        halves = [f"{name}_{half}" for name in _WIDE_COLUMNS for half in ("high", "low")]
        old_halves = ["need_high", "need_low", "spent_high", "spent_low"]
        users = old_halves if self._books.are_old else ["seen", *halves]
        columns = {
            NAMES: ("names_before", ("user_id", "number"), earlier),
            CELLS: ("past", ("slot", "cell", "asked", "moved"), earlier[since:]),
            CUT: ("past_cut", _CUT_COLUMNS, earlier[since:]),
            REST: ("past_rest", _CUT_COLUMNS, () if self._books.are_old else earlier[since:]),
            USERS: ("users_stored", ("number", *users), earlier[-1:]),
        }
        for file, (view, names, folders) in columns.items():
            if folders:
                paths = [str(each / file) for each in folders]
                self._rows[view] = self._engine.read_files(view, "parquet", paths, None, names)
            else:
                nothing = ", ".join(f"weight AS {name}" for name in names if name != "user_id")
                self._rows[view] = Relation.of(
                    f"SELECT CAST(user_id AS STRING) AS user_id, {nothing}"
                    f" FROM {self._relation} WHERE 1 = 0",
                )
        wide = ", ".join(f"wide_of({n}_high, {n}_low) AS {n}" for n in _WIDE_COLUMNS)
        if self._books.are_old:
            wide = (
                "wide_of(need_high, need_low) AS own, wide(0) AS across, wide(0) AS fixed,"
                " wide_of(spent_high, spent_low) AS spent, CAST(0 AS BIGINT) AS seen"
            )
        else:
            wide += ", seen"
        self._rows["users_before"] = Relation.of(
            f"SELECT number, {wide} FROM {self._rows['users_stored']}"
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
        self._table(
            "asked",
            f"""
SELECT number * {self._places} + cell_index AS cell, asked
FROM {self._rows["asked_by_name"]} WHERE number IS NOT NULL
UNION ALL
SELECT names.number * {self._places} + cell_index AS cell, asked
FROM {self._rows["asked_by_name"]} AS asked
JOIN {self._rows["names_new"]} AS names ON names.user_id = asked.newcomer""",
        )

    def _everybody(self, active: str) -> str:
        """Needs and account of all users so far, those of the slot as they are in `active`."""
        columns = ("number", "own", "across", "seen", "fixed", "spent")
        return f"""
SELECT {", ".join(columns)} FROM {self._rows[active]} AS now
UNION ALL
SELECT {", ".join(f"before.{name}" for name in columns)}
FROM {self._rows["users_before"]} AS before
LEFT JOIN {self._rows[active]} AS active ON active.number = before.number
WHERE active.number IS NULL"""

    def _judge(self, terms: Terms) -> None:
        """How many parts of each user's cells fit, and what they cost if all do."""
        joined, multiplier, cap = self._of_cells(terms, "cells.cell")
        # Hardly anybody has a cell above the cap, so that columns hold what was asked for.
        above = "\nUNION ALL\n".join(
            f"SELECT {view.depth} AS depth, {self._column('cell', view)} AS place,"
            f" CAST(sum(asked - {cap}) AS BIGINT) AS excess FROM {self._rows['asked']} AS cells"
            f"{joined} WHERE asked > {cap} GROUP BY {self._column('cell', view)}"
            for view in self.layout.views
        )
        self._rows["above"] = Relation.of(above)
        joined, multiplier, _ = self._of_cells(terms, "columns.place")
        people = "number, own, across, seen, fixed, spent, square, cross_term, excess"
        growth = self._growth_joined("rooms", terms.pace.growth) if terms.pace else ""
        self._table(
            "judged",
            f"""
WITH capped AS (
  SELECT number, squared_weight, before, excess,
    wide((asked - coalesce(excess, 0)) * {multiplier}) AS moved
  FROM {self._rows["columns"]} AS columns{joined} LEFT JOIN {self._rows["above"]} AS above
    ON above.depth = columns.depth AND above.place = columns.place
),
sums AS (
  SELECT number, {terms.own} * sum(squared_weight * moved * moved) AS square,
    sum(squared_weight * moved * before) AS cross_term, max(excess) AS excess
  FROM capped GROUP BY number
),
rooms AS (
  SELECT sums.number, own, across, seen, fixed, spent, square, cross_term, excess,
    {whole(terms.kept_limit)} - spent AS room
  FROM sums JOIN {self._rows["active"]} AS active ON active.number = sums.number
),
paced AS (SELECT * FROM rooms{growth})
SELECT number, own, across, seen, fixed, spent, square + 2 * cross_term AS charge,
  CASE WHEN excess IS NULL THEN 0 ELSE 1 END AS is_capped, parts
FROM ({with_parts("paced", people, terms.pace)}) AS judged""",
        )

    def _cut_short(self, terms: Terms) -> None:
        """Cells of the few users of whom not everything is kept, and what the rest costs them."""
        joined, multiplier, cap = self._of_cells(terms, "cells.cell")
        self._table(
            "short",
            f"""
SELECT cell, number, asked, kept, kept * multiplier AS moved FROM (
  SELECT cell, judged.number, asked, CAST({multiplier} AS BIGINT) AS multiplier,
    whole_div(least(asked, {cap}) * parts, {PARTS}) AS kept
  FROM {self._rows["asked"]} AS cells{joined}
  JOIN {self._rows["judged"]} AS judged ON judged.number = whole_div(cell, {self._places})
  WHERE parts < {PARTS} OR is_capped = 1
) AS parted""",
        )
        kept_of = "\nUNION ALL\n".join(
            f"SELECT {view.depth} AS depth, {self._column('cell', view)} AS place,"
            f" wide(CAST(sum(moved) AS BIGINT)) AS moved"
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

    def _count_what_was_cut(self, terms: Terms, number: int, file: str, left: str) -> None:
        """How much of what is left of each of them a column counts, as far as its budget goes."""
        tier = terms.cuts[number - 1]
        self._table(
            f"counted_{number}",
            f"""
WITH cost_with (slot, cost) AS (VALUES {slot_values(terms.costs)}),
earlier AS (
  SELECT past.number, sum(wide(past.moved * coalesce(cost, 0))) AS before,
    sum(wide_of(charge_high, charge_low)) AS spent
  FROM {self._rows[_PAST_CUT[file]]} AS past
  JOIN ({left}) AS cut_now ON cut_now.number = past.number
  LEFT JOIN cost_with ON cost_with.slot = past.slot
  GROUP BY past.number
),
rooms AS (
  SELECT cut_now.number, left_over, coalesce(before, wide(0)) AS before,
    coalesce(spent, wide(0)) AS spent, least(left_over, {terms.cap(tier.multiplier)}) AS capped
  FROM ({left}) AS cut_now LEFT JOIN earlier ON earlier.number = cut_now.number
),
sums AS (
  SELECT number, left_over, spent, before, capped,
    {terms.own} * wide(capped * {tier.multiplier}) * wide(capped * {tier.multiplier}) AS square,
    wide(capped * {tier.multiplier}) * before AS cross_term, {whole(tier.limit)} - spent AS room
  FROM rooms
),
counted AS (
  SELECT number, left_over, spent, before, whole_div(capped * parts, {PARTS}) AS counted
  FROM ({with_parts("sums", "number, left_over, spent, before, capped")}) AS parted
)
SELECT number, counted, left_over - counted AS left_over, counted * {tier.multiplier} AS moved,
  spent, wide(counted * {tier.multiplier})
    * (2 * before + {terms.own} * wide(counted * {tier.multiplier})) AS charge
FROM counted""",
        )

    def _kept_cells(self, terms: Terms) -> str:
        """Cells of everybody: the few that were cut short, and all others whole."""
        joined, multiplier, _ = self._of_cells(terms, "cells.cell")
        return f"""
SELECT cell, asked, kept, moved FROM {self._rows["short"]} AS short
UNION ALL
SELECT cell, asked, asked AS kept, asked * {multiplier} AS moved
FROM {self._rows["asked"]} AS cells{joined}
LEFT JOIN (SELECT DISTINCT number FROM {self._rows["short"]} AS short) AS cut_short
  ON cut_short.number = whole_div(cells.cell, {self._places})
WHERE cut_short.number IS NULL"""

    def _check(self, terms: Terms) -> None:
        """Refuse to go on if anybody's books show more than the limits, whatever the reason."""
        self._rows["after"] = Relation.of(
            f"""
SELECT judged.number, own, across, seen, fixed,
  judged.spent + coalesce(charged.charge, judged.charge) AS spent
FROM {self._rows["judged"]} AS judged
LEFT JOIN {self._rows["charged"]} AS charged ON charged.number = judged.number""",
        )
        cuts = "".join(
            f" + (SELECT count(*) FROM {self._rows[f'counted_{number}']}"
            f" WHERE spent + charge > {whole(tier.limit)})"
            for number, tier in enumerate(terms.cuts, start=1)
        )
        ((beyond,),) = self._engine.rows(
            "largest accounts",
            f"SELECT (SELECT count(*) FROM {self._rows['after']}"
            f" WHERE spent > {whole(terms.kept_limit)}){cuts}",
        )
        if beyond:
            raise PrivacyError(f"slot {terms.slot}: accounts would pass what users may spend")

    def _write(self, terms: Terms) -> None:
        slot = f"CAST({terms.slot} AS BIGINT) AS slot"
        halves = ", ".join(
            f"high({name}) AS {name}_high, low({name}) AS {name}_low" for name in _WIDE_COLUMNS
        )
        parts = {
            NAMES: f"SELECT user_id, number FROM {self._rows['names_new']}",
            CELLS: f"SELECT {slot}, cell, asked, moved FROM ({self._kept_cells(terms)}) AS kept",
            CUT: self._counted(slot, 1),
            REST: self._counted(slot, 2) if terms.rest else f"{self._counted(slot, 1)} AND 1 = 0",
            USERS: f"SELECT number, CAST(seen AS BIGINT) AS seen, {halves}"
            f" FROM ({self._everybody('after')}) AS everybody",
        }
        if self._is_renewed:
            columns = ", ".join(_CUT_COLUMNS)
            past = f"SELECT slot, cell, asked, moved FROM {self._rows['past']} AS past"
            parts[CELLS] += f" UNION ALL {past}"
            for number, file in enumerate((CUT, REST)[: len(terms.cuts)], start=1):
                renewed = self._rows[f"renewed_{number}"]
                parts[file] += f" UNION ALL SELECT {columns} FROM {renewed} AS renewed"
        for file, sql in parts.items():
            self._engine.write_parquet(f"write {file}", sql, self._books.new / file)

    def _counted(self, slot: str, number: int) -> str:
        return (
            f"SELECT {slot}, number, moved, high(charge) AS charge_high, low(charge) AS charge_low"
            f" FROM {self._rows[f'counted_{number}']} AS counted WHERE moved > 0"
        )


_PAST_CUT = {CUT: "past_cut", REST: "past_rest"}


def _pairs(first: Gram, second: Gram) -> dict[str, list[int]]:
    """Pairs of slots with what they add of two sums; both orders of a pair are one row."""
    pairs = [(s, r) for s in range(len(first)) for r in range(s, len(first))]
    return {
        "slot": [s + 1 for s, _ in pairs],
        "later": [r + 1 for _, r in pairs],
        "first_sum": [first[s][r] * (1 if s == r else 2) for s, r in pairs],
        "second_sum": [second[s][r] * (1 if s == r else 2) for s, r in pairs],
    }
