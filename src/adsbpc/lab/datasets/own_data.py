"""Contributions that someone brings along: a Parquet or CSV file, checked before it is used.

Columns: user_id, slot (whole, from 1), publisher_id, weight (conversions, not negative, fractions
allowed). Others are ignored. A user's rows of one slot are taken to be in the order of time.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from adsbpc.errors import SourceError, SpecError, did_you_mean
from adsbpc.lab.datasets.dataset import Dataset, contributions_of
from adsbpc.lab.datasets.files import reading
from adsbpc.model import UNITS_PER_CONVERSION

COLUMNS = ("user_id", "slot", "publisher_id", "weight")
_CSV = (".csv", ".csv.gz")
_SHAPE = f"a Parquet or CSV file with the columns {', '.join(COLUMNS)}"
# Sums on the grid stay exact in a double.
_MOST_CONVERSIONS = 2**53 // UNITS_PER_CONVERSION
# Wider than any experiment, and small enough that a stray timestamp is not taken for a slot.
_MOST_SLOTS = 100_000

# Text first: one way to read numbers, whatever type a file gives them, and to show what is wrong.
_OWN_SQL = """CREATE TEMP TABLE own AS
SELECT row_number() OVER () AS line,
  CAST(user_id AS VARCHAR) AS user_id, CAST(publisher_id AS VARCHAR) AS publisher_id,
  CAST(slot AS VARCHAR) AS slot_text, CAST(weight AS VARCHAR) AS weight_text,
  TRY_CAST(CAST(slot AS VARCHAR) AS DOUBLE) AS slot,
  TRY_CAST(CAST(weight AS VARCHAR) AS DOUBLE) AS weight
FROM {source}"""

_ROWS_SQL = """WITH people AS (
  SELECT user_id, row_number() OVER (ORDER BY user_id) - 1 AS user_number
  FROM (SELECT DISTINCT user_id FROM own)
),
places AS (
  SELECT publisher_id, row_number() OVER (ORDER BY publisher_id) - 1 AS publisher_number
  FROM (SELECT DISTINCT publisher_id FROM own)
)
SELECT CAST(user_number AS BIGINT) AS user_number,
  CAST(publisher_number AS BIGINT) AS publisher_number, CAST(slot AS BIGINT) AS slot, weight
FROM own JOIN people USING (user_id) JOIN places USING (publisher_id) ORDER BY line"""


def read_own_data(path: Path, slots: int | None = None) -> Dataset:
    """The file's rows as a data set; `slots` is the largest slot in it unless told otherwise.

    Weights are rounded down to the grid. `largest_user` is the largest user's total, rounded up:
    it is read from the data, so results that use it are for experiments only.
    """
    if slots is not None and slots < 1:
        raise SpecError(f"slots = {slots}: expected 1 or more")
    with reading(path, _SHAPE) as connection:
        source = _source(path)
        _check_columns(connection, path, source)
        connection.execute(_OWN_SQL.format(source=source), [str(path)])
        _check_rows(connection, path, slots)
        columns = connection.execute(_ROWS_SQL).fetchnumpy()
        names = connection.execute("SELECT DISTINCT publisher_id FROM own ORDER BY publisher_id")
        publishers = tuple(name for (name,) in names.fetchall())
    user, slot, weight = columns["user_number"], columns["slot"], columns["weight"]
    totals = np.bincount(user, weights=weight)
    count = int(slot.max()) if slots is None else slots
    return Dataset(
        name=path.name.split(".")[0],
        label=f"own data ({path.name})",
        users=totals.size,
        slots=count,
        publishers=publishers,
        largest_user=max(1, math.ceil(totals.max())),
        quantile_limit=10,
        contributions=contributions_of(
            user,
            slot - 1,
            columns["publisher_number"],
            count,
            publishers,
            np.floor(weight * UNITS_PER_CONVERSION).astype(np.int64),
        ),
    )


def _source(path: Path) -> str:
    if path.name.endswith(".parquet"):
        return "read_parquet(?)"
    if path.name.endswith(_CSV):
        # Everything that a guess could get wrong is said.
        return """read_csv(?, header = true, all_varchar = true, delim = ',', quote = '"',
          escape = '"', skip = 0)"""
    raise SourceError(
        str(path),
        "an unknown kind of file",
        "a name that ends in .parquet, .csv or .csv.gz",
        "Rename or convert the file.",
    )


def _check_columns(connection: Any, path: Path, source: str) -> None:
    described = connection.execute(f"DESCRIBE SELECT * FROM {source}", [str(path)]).fetchall()
    names = [str(row[0]) for row in described]
    for column in COLUMNS:
        if column not in names:
            raise SourceError(
                str(path),
                f"the columns {', '.join(names)}",
                f"a column {column!r} too",
                f"Rename or add the column.{did_you_mean(column, names)}",
            )


def _check_rows(connection: Any, path: Path, slots: int | None) -> None:
    """The first row that breaks a rule is shown; a file without rows breaks them all."""
    most = _MOST_SLOTS if slots is None else slots
    rows, total = connection.execute("SELECT count(*), sum(weight) FROM own").fetchone()
    if rows == 0:
        raise SourceError(str(path), "no rows", "at least one", "Check how it was written.")
    rules = (
        ("user_id", "user_id IS NULL", "a user", "Leave rows without a user out."),
        ("publisher_id", "publisher_id IS NULL", "a publisher", "Give the publisher a name."),
        ("slot", f"slot IS NULL OR slot <> floor(slot) OR NOT slot BETWEEN 1 AND {most}",
         f"a whole number from 1 to {most}",
         "Number the slots from 1." if slots is None else "Ask for more slots, or cut the rows."),
        ("weight", "weight IS NULL OR NOT isfinite(weight) OR weight < 0",
         "a number of conversions, 0 or more", "Correct the row or leave it out."),
    )  # fmt: skip
    for column, broken, expected, to_do in rules:
        shown = f"{column}_text" if column in ("slot", "weight") else column
        bad = connection.execute(
            f"SELECT line, {shown} FROM own WHERE {broken} ORDER BY line LIMIT 1"
        ).fetchone()
        if bad is not None:
            value = "nothing" if bad[1] is None else repr(bad[1])
            raise SourceError(f"{path}, row {bad[0]}, column {column!r}", value, expected, to_do)
    if total >= _MOST_CONVERSIONS:
        raise SourceError(
            f"{path}, column 'weight'",
            f"{total:.6g} conversions in all",
            f"fewer than {_MOST_CONVERSIONS}",
            "Give weights in conversions, not in units.",
        )
