"""Personal budgets on an engine: the filter in SQL, with books in Parquet (`account_books`).

Where people are counted once, a cell that `cells` has of an earlier slot is not asked for again,
whether or not it was kept. Figures are integers of at most 128 bits. `privacy.filter` says what is
computed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adsbpc.contributions.account_books import (
    CELLS,
    CUT,
    CUT_COLUMNS,
    NAMES,
    REST,
    USERS,
    WIDE_COLUMNS,
    Books,
    gathered_rows,
    read_books,
)
from adsbpc.contributions.admission_sql import AdmissionSql, weights_of
from adsbpc.contributions.columns_sql import Factors, Moves, columns_sql, met_sql, people_sql
from adsbpc.contributions.filter_sql import expected, factors, whole
from adsbpc.contributions.interface import (
    LARGEST_SIZED,
    Costs,
    Integers,
    check_edges,
    check_slot,
    listed,
)
from adsbpc.contributions.numbering_sql import asked_sql, named_sql, new_names_sql
from adsbpc.contributions.people_sql import OF_NAMES, hash_by_name, hash_of_names, sums_by_place
from adsbpc.contributions.renewal_sql import CutTier, RenewalSql, needs_again
from adsbpc.engines import Engine, Relation
from adsbpc.errors import ContributionError, PrivacyError
from adsbpc.model.layout import Layout
from adsbpc.privacy.filter import (
    LARGEST_CELL,
    MOST_CELLS,
    Gram,
    Growth,
    Renewal,
    Terms,
)


class EngineAccounts:
    """The books of one slot, whose contributions are the rows of `relation` with its number, in the
    finest cells of the layout."""

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
        self._sizes: tuple[int, ...] = ()
        self._costs: tuple[int, ...] = ()
        self._own = 0
        # SECRET: sums that say of whom the slot's rows are, once it is admitted.
        self.people: tuple[int, ...] = ()

    def _table(self, what: str, sql: str) -> None:
        self._rows[what] = self._engine.table(what, sql)

    def open(self, costs: Costs, sizes: Sequence[int] = (), past: Gram | None = None) -> None:
        """This slot's cells with what earlier ones add to their cost, and the needs and account of
        everybody in it."""
        costs = tuple(listed(costs))
        if len(costs) != self._slot:
            raise ContributionError(
                f"slot {len(costs)} of personal budgets: these are the books of slot {self._slot}"
            )
        if self._opened:
            if costs != self._costs:
                raise ContributionError(f"slot {self._slot}: opened with other costs of slots")
            return
        self._costs = costs
        self._rows |= read_books(self._engine, self._books, self._relation)
        self._give_numbers()
        # Of this slot's opening; only layouts in which no view sums cells have them.
        self._sizes = tuple(sizes)
        if sizes:
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
        self._set_columns()
        self._own = costs[-1]
        by_slot = {"slot": list(range(1, self._slot + 1)), "cost": list(costs)}
        self._rows["costs"] = self._engine.numbers("costs", by_slot)
        self._meet_the_past()
        self._opened = True

    def needs(self, costs: Costs, edges: Sequence[int], growth: Growth | None = None) -> Integers:
        check_edges(edges)
        self.open(costs)
        need, joined = "own + across", ""
        if growth is not None:
            need, joined = expected(growth), self._growth_joined("everybody", growth)
        bins = "".join(f" WHEN need <= {whole(edge)} THEN {i}" for i, edge in enumerate(edges))
        found = self._engine.rows(
            "histogram of needs",
            f"SELECT bin, count(*) FROM (SELECT CASE{bins} ELSE {len(edges)} END AS bin FROM ("
            f"SELECT {need} AS need FROM ({self._everybody(self._in_need())}) AS everybody{joined}"
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
        admission = self._admission(terms)
        rows, pairs = self._rows, _pairs(renewal.ended, renewal.coming)
        rows["pairs"] = self._engine.numbers("pairs", pairs)
        factors_of = self._growth_joined("everybody", terms.pace.growth) if terms.pace else ""
        text = RenewalSql(renewal, self.layout, self._places, rows)
        self._table("renewing", text.quadratics())
        self._table("renewed", text.users(self._everybody(self._in_need()), factors_of))
        self._table("renewed_cells", text.cells(*admission.of_cells("past.cell")))
        for number, (file, tier) in enumerate(zip((CUT, REST), terms.cuts, strict=False), start=1):
            of_tier = CutTier(number, tier, rows[_PAST_CUT[file]])
            self._table(f"left_{number}", text.left(of_tier))
            self._table(f"renewing_{number}", text.cut_users(of_tier))
            self._table(f"renewed_{number}", text.cut_rows(of_tier))
            rows[_PAST_CUT[file]] = rows[f"renewed_{number}"]
        rows["past"] = rows["renewed_cells"]
        rows["users_before"] = Relation.of(
            f"SELECT kept.number, own, across, seen, coalesce(renewed.fixed, wide(0)) AS fixed,"
            f" coalesce(renewed.spent, wide(0)) AS spent FROM {rows['users_before']} AS kept"
            f" LEFT JOIN {rows['renewed']} AS renewed ON renewed.number = kept.number"
        )
        self._meet_the_past()
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
        text = self._admission(terms)
        self._table("people", self._people(text.factors(), text.moves()))
        self._table("close", text.close())
        self._table("short", text.short())
        self._table("charged", text.charged())
        left = f"SELECT number, cut AS left_over FROM {self._rows['charged']} AS charged"
        for number, file in enumerate((CUT, REST)[: len(terms.cuts)], start=1):
            earlier = self._earlier_cut(text, file, left)
            self._table(f"counted_{number}", text.counted(number, earlier, left))
            left = f"SELECT number, left_over FROM {self._rows[f'counted_{number}']} AS counted"
        self._rows["after"] = Relation.of(text.after(self._carried))
        self._rows["kept"] = Relation.of(text.kept_cells())
        self._write(terms)
        return self._totals(terms)

    def _totals(self, terms: Terms) -> list[int]:
        """What is kept in each cell and in each column that counts what was cut, and in the same
        look whose it is. Refuse to go on if anybody's books show more than the limits, whatever the
        reason: they do not count yet."""
        kept, names, cut_column = self._rows["kept"], self._rows["names_new"], len(self.layout)
        cuts = len(terms.cuts)
        counted = "".join(
            f"\nUNION ALL\nSELECT {cut_column + number}, CAST(coalesce(sum(counted), 0) AS BIGINT),"
            f" wide(0), wide(0) FROM {self._rows[f'counted_{number + 1}']}"
            for number in range(cuts)
        )
        found = self._engine.rows(
            "totals of what is kept",
            f"{sums_by_place(kept, self._places)}{counted}\nUNION ALL{hash_of_names(names)}"
            f"\nUNION ALL\n{self._above_limits(terms)}",
        )
        by_place = {place: row for place, *row in found}
        if by_place.pop(_ABOVE_LIMITS)[0] != 0:
            raise PrivacyError(f"slot {terms.slot}: accounts would pass what users may spend")
        of_names = int(by_place.pop(OF_NAMES)[1])
        totals = [0] * (cut_column + cuts)
        for place, (total, *_) in by_place.items():
            totals[place] = int(total)
        self.people = of_names, *(sum(int(row[k]) for row in by_place.values()) for k in (1, 2))
        return totals

    def people_by_name(self) -> int:
        """What stood for `people` in what earlier versions have committed to."""
        known, newcomers = self._rows["names_before"], self._rows["names_new"]
        names = (
            f"SELECT user_id, number FROM {known} AS known"
            f" UNION ALL SELECT user_id, number FROM {newcomers} AS newcomers"
        )
        text = hash_by_name(self._rows["kept"], names, self._places)
        return int(self._engine.rows("people by name", text)[0][0])

    # ---- steps ---------------------------------------------------------------------------------

    def _admission(self, terms: Terms) -> AdmissionSql:
        """Texts of a slot's terms, with multipliers and caps of cells where they are not alike."""
        if (terms.multipliers or self._sizes) and "weighed" not in self._rows:
            multipliers = [terms.multiplier_of(cell) for cell in range(len(self.layout))]
            self._rows["weighed"] = self._engine.numbers(
                "weighed",
                {
                    "cell_index": list(range(len(multipliers))),
                    "multiplier": multipliers,
                    "cap": [terms.cap(each) for each in multipliers],
                    "size": list(self._sizes or (1,) * len(multipliers)),
                },
            )
        growth = self._growth_joined("rooms", terms.pace.growth) if terms.pace else ""
        return AdmissionSql(terms, self.layout, self._places, self._rows, growth)

    def _sizes_joined(self, cell: str) -> str:
        """Rows with a cell beside its size."""
        if not self._sizes:
            return ""
        return f"JOIN {self._rows['sizes']} AS sizes ON sizes.cell_index = {cell} % {self._places}"

    def _growth_joined(self, people: str, growth: Growth) -> str:
        table = self._engine.numbers("growth", factors(growth))
        return f" JOIN {table} AS growth ON growth.times = greatest({people}.seen, 1)"

    @property
    def _carried(self) -> tuple[str, ...]:
        """What accounts say besides needs. Nothing is fixed until the past is renewed."""
        return ("fixed", "spent") if self._is_renewed or self._books.renewed > 1 else ("spent",)

    @property
    def _largest(self) -> int | None:
        """What a cell counts for at most in needs, if there is a limit."""
        return LARGEST_SIZED if self._sizes else None

    def _set_columns(self) -> None:
        columns = columns_sql(self.layout, self._places, self._rows["asked"], self._largest)
        if [view.stride for view in self.layout.views] == [1]:
            # Cells as they are: there is nothing to compute.
            self._rows["columns"] = Relation.of(columns)
        else:
            self._table("columns", columns)

    def _meet_the_past(self) -> None:
        self._table("met", met_sql(self.layout, self._places, self._rows, self._largest))

    def _people(self, factors: Factors, moves: Moves | None = None) -> str:
        return people_sql(self._rows, self._own, factors, self._carried, moves)

    def _in_need(self) -> Relation:
        """Everybody in the slot, before it is known what of it is let in."""
        sizes = ("size",) if self._sizes else ()
        joined = f" {self._sizes_joined('columns.place')}" if sizes else ""
        return Relation.of(self._people(Factors(joined, weights_of(self.layout), sizes)))

    def _give_numbers(self) -> None:
        """This slot's cells by number."""
        rows = self._rows
        self._table("named", named_sql(self._relation, self._slot, rows["names_before"]))
        # Rows of one query: another one within it would be a job of its own on a cluster.
        found = self._engine.rows(
            "places",
            f"SELECT 0 AS part, count(*), min(number), max(number)"
            f" FROM {rows['names_before']} AS names UNION ALL"
            f" SELECT 1, count(*), min(cell_index), max(cell_index) FROM {rows['named']} AS named",
        )
        (_, known, *_), (_, _, least, most) = sorted(found)
        last = (self.layout.sizes[-1] if self.layout.apart else len(self.layout)) - 1
        if most is not None and not 0 <= least <= most <= last:
            raise ContributionError(
                f"cell_index = {least if least < 0 else most}: the layout has cells 0 to {last}"
            )
        self._table("names_new", new_names_sql(rows["named"], int(known)))
        asked = asked_sql(self.layout, self._places, rows["named"], rows["names_new"])
        if self.layout.once:
            # Who was counted, the books say: the same on every retry, whatever comes late.
            asked = f"""
SELECT now.cell, now.asked FROM ({asked}) AS now
LEFT JOIN {rows["past"]} AS past ON past.cell = now.cell WHERE past.cell IS NULL"""
        self._table("asked", asked)

    def _everybody(self, now: Relation) -> str:
        """Needs and account of all users so far, those of the slot as they are now."""
        fixed = "fixed" if "fixed" in self._carried else "wide(0) AS fixed"
        return f"SELECT number, own, across, seen, {fixed}, spent FROM {now} AS now"

    def _above_limits(self, terms: Terms) -> str:
        """How many accounts are, as one that is not known is, too; a row like those of totals."""
        limits = {"after": ("spent", terms.kept_limit)} | {
            f"counted_{number}": ("spent + charge", tier.limit)
            for number, tier in enumerate(terms.cuts, start=1)
        }
        above = " UNION ALL ".join(
            f"SELECT number FROM {self._rows[name]} AS accounts"
            f" WHERE NOT coalesce({spent} <= {whole(limit)}, FALSE)"
            for name, (spent, limit) in limits.items()
        )
        return f"SELECT {_ABOVE_LIMITS}, count(*), wide(0), wide(0) FROM ({above}) AS above"

    def _write(self, terms: Terms) -> None:
        slot = f"CAST({terms.slot} AS BIGINT) AS slot"
        halves = ", ".join(
            f"high({name}) AS {name}_high, low({name}) AS {name}_low" for name in WIDE_COLUMNS
        )
        parts = {
            NAMES: f"SELECT user_id, number FROM {self._rows['names_new']}",
            CELLS: f"SELECT {slot}, cell, asked, moved FROM {self._rows['kept']} AS kept",
            CUT: self._counted(slot, 1),
            REST: self._counted(slot, 2) if terms.rest else f"{self._counted(slot, 1)} AND 1 = 0",
            USERS: f"SELECT number, CAST(seen AS BIGINT) AS seen, {halves}"
            f" FROM ({self._everybody(self._rows['after'])}) AS everybody",
        }
        if self._is_renewed:
            columns = ", ".join(CUT_COLUMNS)
            past = f"SELECT slot, cell, asked, moved FROM {self._rows['past']} AS past"
            parts[CELLS] += f" UNION ALL {past}"
            for number, file in enumerate((CUT, REST)[: len(terms.cuts)], start=1):
                renewed = self._rows[f"renewed_{number}"]
                parts[file] += f" UNION ALL SELECT {columns} FROM {renewed} AS renewed"
        for file in parts:
            # Where the past was let in again, its rows are there already.
            if file == NAMES or not self._is_renewed:
                parts[file] += gathered_rows(self._engine, self._books, file)
        self._engine.write_all({self._books.new / file: sql for file, sql in parts.items()})

    def _earlier_cut(self, text: AdmissionSql, file: str, left: str) -> str:
        return text.earlier_cut(self._rows[_PAST_CUT[file]], left)

    def _counted(self, slot: str, number: int) -> str:
        return (
            f"SELECT {slot}, number, moved, high(charge) AS charge_high, low(charge) AS charge_low"
            f" FROM {self._rows[f'counted_{number}']} AS counted WHERE moved > 0"
        )


# A row of the look at totals that is of no cell.
_ABOVE_LIMITS = OF_NAMES - 1
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
