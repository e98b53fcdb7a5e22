"""Personal budgets of long campaigns on an engine: `privacy.decays` in SQL, with books in Parquet
(`long_books`).

A slot reads the running sums of its own people and writes what it changed, and now and then the
books as a whole; how many slots came before it makes no difference. Figures are integers of at
most 128 bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from adsbpc.contributions.account_books import CELLS, CUT, NAMES, USERS, Books
from adsbpc.contributions.admission_sql import AdmissionSql
from adsbpc.contributions.columns_sql import Factors, Moves, people_sql
from adsbpc.contributions.engine_accounts import EngineAccounts
from adsbpc.contributions.filter_sql import column_of, shifted
from adsbpc.contributions.interface import Costs, crossing_of, largest_needed
from adsbpc.contributions.long_books import LONG_WIDE, SUMS, LongBooks, newest, read_long_books
from adsbpc.engines import Engine, Relation
from adsbpc.errors import ContributionError
from adsbpc.model.layout import Layout, View
from adsbpc.privacy.decays import BITS, Crossing, DecayingStrategy
from adsbpc.privacy.filter import Gram, Renewal, Terms


class LongEngineAccounts(EngineAccounts):
    """The books of one slot, whose contributions are the rows of `relation` with its number."""

    def __init__(
        self,
        engine: Engine,
        relation: Relation,
        layout: Layout,
        books: LongBooks,
        strategy: DecayingStrategy,
    ) -> None:
        super().__init__(engine, relation, strategy.slots, layout, Books((), books.new))
        self._slot, self._long = books.slot, books
        self._numbers = range(1, len(strategy.rates) + 1)

    def open(self, costs: Costs, sizes: Sequence[int] = (), past: Gram | None = None) -> None:
        """This slot's cells with what earlier ones add to their cost, and the needs and account of
        everybody in it."""
        crossing = crossing_of(costs)
        if crossing.slot != self._slot or sizes or past:
            raise ContributionError(
                f"slot {crossing.slot} of personal budgets: these are the books of slot "
                f"{self._slot} of a long campaign, where cells have no sizes"
            )
        if self._opened:
            return
        self._rows |= read_long_books(
            self._engine, self._long, self._relation, len(crossing.factors)
        )
        self._give_numbers()
        self._bring_up_to_date(crossing)
        self._set_columns()
        self._own = crossing.own
        self._table("met", "\nUNION ALL\n".join(map(self._met_in, self.layout.views)))
        self._opened = True

    def renew(self, renewal: Renewal) -> list[list[int]]:
        raise ContributionError(
            f"slot {renewal.terms.slot}: a long campaign does not measure its past again"
        )

    def _bring_up_to_date(self, crossing: Crossing) -> None:
        """Running sums of the people of the slot, as of the slot, with what they add to costs;
        those of what was moved as they were, too."""
        gaps = range(self._slot + 1)
        powers = {"gap": list(gaps)} | {
            f"power_{k}": list(of_rate[: len(gaps)])
            for k, of_rate in zip(self._numbers, crossing.powers, strict=True)
        }
        table = self._engine.numbers("powers", powers)

        def sums(name: str) -> tuple[str, str]:
            decayed = {k: _decayed(f"{name}_{k}", f"of_{name}.power_{k}") for k in self._numbers}
            each = zip(self._numbers, crossing.factors, strict=True)
            before = " + ".join(f"wide({factor}) * wide({name}_now_{k})" for k, factor in each)
            return ", ".join(f"{sql} AS {name}_now_{k}" for k, sql in decayed.items()), before

        (asked, asked_before), (moved, before) = sums("asked"), sums("moved")
        raw = ", ".join(f"moved_{k}" for k in self._numbers)
        now = ", ".join(f"{name}_now_{k}" for name in ("asked", "moved") for k in self._numbers)
        self._table(
            "present",
            f"SELECT DISTINCT whole_div(cell, {self._places}) AS number"
            f" FROM {self._rows['asked']} AS asked",
        )
        whole, recent = (self._of_the_present(f"sums_{part}") for part in ("whole", "recent"))
        self._table(
            "brought",
            f"""
SELECT cell, moved_slot, {raw}, {now}, {asked_before} AS asked_before, {before} AS before FROM (
  SELECT sums.cell, moved_slot, {raw}, {asked}, {moved}
  FROM {newest(whole, recent, "cell")} AS sums
  JOIN {table} AS of_asked ON of_asked.gap = {self._slot} - asked_slot
  JOIN {table} AS of_moved ON of_moved.gap = {self._slot} - moved_slot
) AS decayed""",
        )

    def _of_the_present(self, sums: str) -> Relation:
        return Relation.of(
            f"SELECT sums.* FROM {self._rows[sums]} AS sums JOIN {self._rows['present']} AS present"
            f" ON present.number = whole_div(sums.cell, {self._places})"
        )

    @property
    def _carried(self) -> tuple[str, ...]:
        return *super()._carried, "cut_spent"

    @property
    def _largest(self) -> int:
        return largest_needed(self.layout)

    def _people(self, factors: Factors, moves: Moves | None = None) -> str:
        """Of the slot alone."""
        return people_sql(self._rows, self._own, factors, self._carried, moves, others=False)

    def _everybody(self, now: Relation) -> str:
        columns = ("number", "own", "across", "seen", "spent")
        return f"""
SELECT {", ".join(columns)} FROM {now} AS now
UNION ALL
SELECT {", ".join(f"before.{name}" for name in columns)}
FROM {self._rows["users_before"]} AS before
LEFT JOIN {now} AS now ON now.number = before.number
WHERE now.number IS NULL"""

    def _met_in(self, view: View) -> str:
        """Columns of a view that have running sums."""
        place = column_of("cell", view, self._places)
        return f"""
SELECT now.place, number, asked, needed, depth, squared_weight, asked_before, before
FROM {self._rows["columns"]} AS now JOIN (
  SELECT {place} AS place, sum(asked_before) AS asked_before, sum(before) AS before
  FROM {self._rows["brought"]} AS cells
  WHERE cell % {self._places} < {len(self.layout)} GROUP BY {place}
) AS earlier ON earlier.place = now.place
WHERE depth = {view.depth}"""

    def _earlier_cut(self, text: AdmissionSql, file: str, left: str) -> str:
        return f"""
  SELECT people.number, coalesce(past.before, wide(0)) AS before, cut_spent AS spent
  FROM {self._rows["people"]} AS people LEFT JOIN {self._rows["brought"]} AS past
    ON past.cell = people.number * {self._places} + {len(self.layout)}"""

    def _write(self, terms: Terms) -> None:
        slot = f"CAST({terms.slot} AS BIGINT) AS slot"
        self._table("sums_touched", self._touched())
        self._table("users_touched", self._users_touched())
        parts = {
            NAMES: f"SELECT user_id, number FROM {self._rows['names_new']}",
            CELLS: f"SELECT {slot}, cell, asked, moved FROM {self._rows['kept']} AS kept",
            CUT: self._counted(slot, 1),
            SUMS: self._brought_together("sums", "cell"),
            USERS: self._brought_together("users", "number"),
        }
        self._engine.write_all({self._books.new / file: sql for file, sql in parts.items()})

    def _brought_together(self, file: str, key: str) -> str:
        """Rows as they are after the slot: all of them, or those that changed since all were
        written."""
        earlier, touched = self._rows[f"{file}_recent"], self._rows[f"{file}_touched"]
        if self._long.merges:
            earlier = newest(self._rows[f"{file}_whole"], earlier, key)
        return f"SELECT * FROM {newest(earlier, touched, key)} AS {file}"

    def _touched(self) -> str:
        """Running sums of the cells that were asked for, and of what was counted as cut."""
        most, cut = largest_needed(self.layout), len(self.layout)
        asked = ", ".join(
            f"CASE WHEN needed > 0 THEN coalesce(asked_now_{k}, 0) + needed ELSE 0 END AS asked_{k}"
            for k in self._numbers
        )
        moved = ", ".join(
            f"CASE WHEN now.moved > 0 THEN coalesce(moved_now_{k}, 0) + now.moved"
            f" ELSE coalesce(moved_{k}, 0) END AS moved_{k}"
            for k in self._numbers
        )
        slot = f"CAST({self._slot} AS BIGINT)"
        return f"""
SELECT now.cell, CASE WHEN needed > 0 THEN {slot} ELSE 0 END AS asked_slot, {asked},
  CASE WHEN now.moved > 0 THEN {slot} ELSE coalesce(moved_slot, 0) END AS moved_slot, {moved}
FROM (
  SELECT cell, least(asked, {most}) AS needed, moved FROM {self._rows["kept"]} AS kept
  UNION ALL
  SELECT number * {self._places} + {cut} AS cell, CAST(0 AS BIGINT) AS needed, moved
  FROM {self._rows["counted_1"]} AS counted WHERE moved > 0
) AS now LEFT JOIN {self._rows["brought"]} AS brought ON brought.cell = now.cell"""

    def _users_touched(self) -> str:
        """Accounts of the slot's people, by name too: the next slot reads no other names."""
        halves = ", ".join(
            f"{half}({name}) AS {name}_{half}" for name in LONG_WIDE for half in ("high", "low")
        )
        after = f"""
SELECT after.number, CAST(after.seen AS BIGINT) AS seen, after.own, after.across, wide(0) AS fixed,
  after.spent, after.cut_spent + coalesce(counted.charge, wide(0)) AS cut_spent
FROM {self._rows["after"]} AS after
LEFT JOIN {self._rows["counted_1"]} AS counted ON counted.number = after.number"""
        names = f"""
SELECT user_id, number FROM {self._rows["names_before"]} AS names_before
UNION ALL
SELECT user_id, number FROM {self._rows["names_new"]} AS names_new"""
        return f"""
SELECT names.user_id, names.number, seen, {halves} FROM ({after}) AS accounts
JOIN ({names}) AS names ON names.number = accounts.number"""


def _decayed(total: str, power: str) -> str:
    """total times power in parts of 2^BITS, rounded up."""
    product = f"(wide({total}) * wide({power}) + {2**BITS - 1})"
    return f"CAST({shifted(product, BITS)} AS BIGINT)"
