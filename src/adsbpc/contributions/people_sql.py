"""Whose the rows of a slot are, as sums that a release commits to: in SQL.

Other people, or the same with other rows, give other sums. Rows name people by number, and what
gives a number to a name is hashed once, on the slot on which somebody is new. Sums do not depend on
the order of rows, and engines agree on them to the last unit. They are SECRET: what is published is
an HMAC over them (`ledger.provenance`).
"""

from __future__ import annotations

from adsbpc.engines import Relation

# In place of a cell, where names are counted.
OF_NAMES = -1
# Two primes, so that what is mixed is no polynomial of either field, and factors of cell, asked and
# moved for each of two sums: products stay below 2^63.
_FIRST_PRIME, _SECOND_PRIME = 2_147_483_647, 2_147_483_629
_FACTORS = ((373_587_883, 48_271, 69_621), (271_828_183, 40_692, 314_159_269))


def sums_by_place(kept: Relation, places: int) -> str:
    """By cell what is kept, and two sums over rows of a number that is mixed from the user's
    number, the cell, and what was asked for and moved."""
    numbers = range(1, len(_FACTORS) + 1)
    lines = ", ".join(
        f"(cell % {_FIRST_PRIME} * {of_cell} + asked % {_FIRST_PRIME} * {of_asked}"
        f" + moved % {_FIRST_PRIME} * {of_moved}) % {_FIRST_PRIME} AS line_{number}"
        for number, (of_cell, of_asked, of_moved) in zip(numbers, _FACTORS, strict=True)
    )
    mixed = ", ".join(
        f"line_{n} * line_{n} % {_SECOND_PRIME} * line_{n} % {_FIRST_PRIME} AS mixed_{n}"
        for n in numbers
    )
    sums = ", ".join(f"wide(CAST(sum(mixed_{n}) AS BIGINT)) AS sum_{n}" for n in numbers)
    return f"""
SELECT cell % {places} AS place, CAST(sum(kept) AS BIGINT) AS kept, {sums}
FROM (
  SELECT cell, kept, {mixed} FROM (SELECT cell, kept, {lines} FROM {kept} AS kept_cells) AS lines
) AS mixed GROUP BY cell % {places}"""


def hash_of_names(new_names: Relation) -> str:
    """A row like those above that is of no cell: the sum of SHA-256 over the names of newcomers and
    their numbers."""
    named = "concat(CAST(number AS STRING), ':', user_id)"
    return f"""
SELECT {OF_NAMES}, CAST(0 AS BIGINT), coalesce(sum(wide(sha256_number({named}))), wide(0)), wide(0)
FROM {new_names} AS names"""


def hash_by_name(kept: Relation, names: str, places: int) -> str:
    """What earlier versions have committed to instead: the sum of SHA-256 over each row, with the
    name that stands behind its number in `names`."""
    row = ", ':', ".join(
        f"CAST({column} AS STRING)" for column in (f"cell % {places}", "asked", "moved")
    )
    return f"""
SELECT coalesce(sum(wide(sha256_number(concat({row}, ':', names.user_id)))), wide(0))
FROM {kept} AS kept JOIN ({names}) AS names ON names.number = whole_div(kept.cell, {places})"""
