"""Mistakes that would break the promise, each a small change of one text, and the tests that must
fail.

Most couple people: they drop the user from a key, of a window, a join or a group, or what a user
has cost. The last ones charge rows of personal budgets for other rows than there are, or choose by
what was not released. Snapshots of SQL are no such tests, because they fail for every change.
"""

from __future__ import annotations

from dataclasses import dataclass

_LATE = ("tests/attribution/test_late_touches.py",)
_EVENTS = ("tests/events/test_bad_rows.py", "tests/attribution/test_isolation.py")
_ATTRIBUTION = ("tests/attribution/test_isolation.py", "tests/attribution/test_engines_agree.py")
_FITS = ("tests/attribution/test_fit_engines.py", "tests/contributions/test_fit_counts.py")
_CAPS = ("tests/contributions/test_agreement.py",)
_PEOPLE = ("tests/campaign/test_metrics.py", "tests/contributions/test_views.py")
_BOOKS = ("tests/contributions/test_accounts.py",)
_RENEWALS = ("tests/contributions/test_renewals.py",)
_LONG = ("tests/contributions/test_long_accounts.py",)
_TERMS = ("tests/mechanisms/test_personal_budget.py",)
_CHOICES = ("tests/mechanisms/test_choices.py",)


@dataclass(frozen=True)
class Mutant:
    """`before` stands once in `file`, which is below src/adsbpc, and becomes `after`."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]


MUTANTS = (
    Mutant(
        "repeated event ids of all users together", "events/validation.py",
        '("user_id", sender, "event_id")', '(sender, "event_id")', _EVENTS,
    ),
    Mutant(
        "conversions numbered across users", "events/placement.py",
        "PARTITION BY user_id, slot", "PARTITION BY slot", _EVENTS,
    ),
    Mutant(
        "waiting for the first touch of anybody", "events/placement.py",
        "PARTITION BY user_id ORDER BY time_us", "ORDER BY time_us", _LATE,
    ),
    Mutant(
        "late impressions of busy users ranked together", "attribution/journeys.py",
        "PARTITION BY impressions.user_id, slot, impressions.is_click",
        "PARTITION BY slot, impressions.is_click", _LATE,
    ),
    Mutant(
        "touches of anybody", "attribution/journeys.py",
        "ON impressions.user_id = light_conversions.user_id",
        "ON light_conversions.user_id IS NOT NULL", _ATTRIBUTION,
    ),
    Mutant(
        "impressions of busy users ranked together", "attribution/journeys.py",
        "PARTITION BY impressions.user_id, impressions.is_click",
        "PARTITION BY impressions.is_click", _ATTRIBUTION,
    ),
    Mutant(
        "earlier clicks of all busy users", "attribution/journeys.py",
        """    CAST(sum(clicks) OVER (
      PARTITION BY user_id{slot} ORDER BY time_us, is_touch""",
        """    CAST(sum(clicks) OVER (
      ORDER BY time_us, is_touch""", _ATTRIBUTION,
    ),
    Mutant(
        "earlier views of all busy users", "attribution/journeys.py",
        """    CAST(sum(views) OVER (
      PARTITION BY user_id{slot} ORDER BY time_us, is_touch""",
        """    CAST(sum(views) OVER (
      ORDER BY time_us, is_touch""", _ATTRIBUTION,
    ),
    Mutant(
        "blocks of another busy user", "attribution/journeys.py",
        """    ON busy_impressions.user_id = busy_blocks.user_id{same_slot}
    AND busy_impressions""",
        """    ON busy_impressions""", _ATTRIBUTION,
    ),
    Mutant(
        "somebody is busy, so everybody is", "attribution/journeys.py",
        """  LEFT JOIN busy_users ON busy_users.user_id = conversions.user_id
),""",
        """  LEFT JOIN busy_users ON TRUE
),""", _ATTRIBUTION,
    ),
    Mutant(
        "journeys of a fit with anybody's touches", "attribution/fit_journeys.py",
        "JOIN {users} AS fit_users ON fit_users.user_id = impressions.user_id",
        "JOIN {users} AS fit_users ON TRUE", _FITS,
    ),
    Mutant(
        "touches of a fit ranked across users", "attribution/fit_journeys.py",
        "row_number() OVER (PARTITION BY user_key ORDER BY touch_order DESC)",
        "row_number() OVER (ORDER BY touch_order DESC)", _FITS,
    ),
    Mutant(
        "pairs of publishers of two users", "attribution/counts.py",
        "ON other.user_key = one.user_key AND other.publisher_index",
        "ON other.publisher_index", _FITS,
    ),
    Mutant(
        "steps of a chain from one user to the next", "attribution/counts.py",
        "lag(publisher_index) OVER (PARTITION BY user_key ORDER BY touch_order)",
        "lag(publisher_index) OVER (ORDER BY touch_order)", _FITS,
    ),
    Mutant(
        "counts weighed with everybody's weights", "contributions/fit_counts.py",
        "JOIN weights ON weights.user_key = all_cells.user_key",
        "JOIN weights ON TRUE", _FITS,
    ),
    Mutant(
        "one cap for everybody in a slot", "contributions/engine.py",
        "PARTITION BY slot_rows.user_id ORDER BY", "ORDER BY", _CAPS,
    ),
    Mutant(
        "a user's past is everybody's", "contributions/columns_sql.py",
        'ON now.place = {column_of("past.cell", view, places)}',
        'ON now.place % 4096 = {column_of("past.cell", view, places)} % 4096', _BOOKS,
    ),
    Mutant(
        "accounts of another user", "contributions/columns_sql.py",
        "AS users ON users.number = now.number", "AS users ON users.number = now.number + 1",
        _BOOKS,
    ),
    Mutant(
        "what another user's cells add to a charge", "contributions/columns_sql.py",
        "ON met.number = now.number", "ON met.number = now.number + 1", _BOOKS,
    ),
    Mutant(
        "people near their limit are let in whole", "contributions/admission_sql.py",
        "spent + charge > {whole(most)}", "spent > {whole(most)}", _BOOKS,
    ),
    Mutant(
        "a slot before gathered ones is forgotten", "contributions/account_books.py",
        "before = firsts[slot - 1] - 1", "before = firsts[slot - 1] - 2", _RENEWALS,
    ),
    Mutant(
        "a renewed past is gathered and stays", "contributions/account_books.py",
        "first = max(first, self.renewed + 1)", "first = max(first, self.renewed)", _RENEWALS,
    ),
    Mutant(
        "what was cut of another user in a long campaign", "contributions/long_accounts.py",
        "ON past.cell = people.number * {self._places} + {len(self.layout)}",
        "ON past.cell % {self._places} = {len(self.layout)}", _LONG,
    ),
    Mutant(
        "running sums of everybody", "contributions/long_accounts.py",
        ") AS earlier ON earlier.place = now.place",
        ") AS earlier ON earlier.place % 4096 = now.place % 4096", _LONG,
    ),
    Mutant(
        "running sums that are rounded down", "contributions/long_accounts.py",
        "+ {2**BITS - 1})", "+ 0)", _LONG,
    ),
    Mutant(
        "a decay that is applied once too often", "contributions/long_accounts.py",
        "of_moved.gap = {self._slot} - moved_slot", "of_moved.gap = {self._slot} + 1 - moved_slot",
        _LONG,
    ),
    Mutant(
        "what fits of one user decides for another", "contributions/admission_sql.py",
        "JOIN judged ON judged.number = whole_div(cells.cell, {self.places})",
        "JOIN judged ON TRUE", _BOOKS,
    ),
    Mutant(
        "released rows are forgotten when the past is renewed", "contributions/renewal_sql.py",
        "everybody.fixed + ended AS new_fixed", "everybody.fixed AS new_fixed", _RENEWALS,
    ),
    Mutant(
        "what fits of one user's past decides for another", "contributions/renewal_sql.py",
        """    ON renewed.number = whole_div(cell, {self.places})""", "    ON TRUE", _RENEWALS,
    ),
    Mutant(
        "who was counted counts for everybody", "contributions/engine_accounts.py",
        "AS past ON past.cell = now.cell WHERE past.cell IS NULL",
        "AS past ON past.cell % 4096 = now.cell % 4096 WHERE past.cell IS NULL", _PEOPLE,
    ),
    Mutant(
        "one person for everybody in a sum", "contributions/engine.py",
        """  SELECT user_id, slot, {cell} AS finest, min(time_us) AS time_us
  FROM {rows} AS met GROUP BY user_id, slot, {cell}""",
        """  SELECT min(user_id) AS user_id, slot, {cell} AS finest, min(time_us) AS time_us
  FROM {rows} AS met GROUP BY slot, {cell}""", _PEOPLE,
    ),
    Mutant(
        "newcomers under anybody's name", "contributions/numbering_sql.py",
        "AS names ON names.user_id = named.newcomer", "AS names ON named.newcomer IS NOT NULL",
        _BOOKS,
    ),
    Mutant(
        "the past is charged for one of the rows to come", "mechanisms/by_rows/measurement.py",
        "self.gram(terms.slot, self.strategy.slots, before)",
        "self.gram(terms.slot, terms.slot, before)", _TERMS,
    ),
    Mutant(
        "the past is charged with the Gram matrix of released rows",
        "contributions/renewal_sql.py",
        "THEN {weight} * second_sum * wide(a.wish)", "THEN {weight} * first_sum * wide(a.wish)",
        _RENEWALS,
    ),
    Mutant(
        "released rows are charged again at every renewal", "mechanisms/by_rows/measurement.py",
        "self.gram(begun, before, before)", "self.gram(1, before, before)", _TERMS,
    ),
    Mutant(
        "multipliers follow exact totals", "mechanisms/by_rows/mechanism.py",
        "        totals = estimates.totals.sum(axis=0)\n",
        "        kept = np.array(state.kept, dtype=np.float64)[:, : len(self.layout)]\n"
        "        totals = kept.sum(axis=0) * self.unit_value\n", _CHOICES,
    ),
    Mutant(
        "sizes follow exact totals", "mechanisms/by_rows/mechanism.py",
        "sizes = sizes_of(*estimates.so_far(), sizes, counted)",
        "kept = np.array(state.kept, dtype=np.float64)[:, : len(counted)].sum(axis=0)\n"
        "            sizes = sizes_of(kept, estimates.so_far()[1], sizes, counted)", _CHOICES,
    ),
)  # fmt: skip
