"""Data that someone brings along, read with DuckDB: contributions of one's own, and the Criteo log.

Own contributions are a Parquet or CSV file, checked before it is used. Columns: user_id, slot
(whole, from 1), publisher_id, weight (conversions, not negative, fractions allowed), which may
be called credit, as `adsbpc attribute` writes it. Others are ignored. A user's rows of one slot
are taken to be in the order of time.

The real Criteo Sponsored Search Conversion Log was published by Criteo with Tallis and Yadav,
"Reacting to Variations in Product Demand" (2018). The file CriteoSearchData of the archive is
tab-separated, without a header, 23 columns, a row a click. Missing values are written as -1, a
missing click_timestamp also as 0. A row with Sale = 1 is a conversion at click_timestamp +
time_delay_for_conversion seconds. Its journey is all clicks of the same user, with whatever
partner, up to that moment and at most 30 days before it; partners are the publishers. Rows without
a user, a partner or a click_timestamp cannot be part of anyone's journey and are left out, and so
are sales without a delay.
"""

from __future__ import annotations

import glob
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from adsbpc.errors import SourceError, SpecError, did_you_mean, no_such_choice
from adsbpc.lab.datasets.dataset import Dataset, dataset_of
from adsbpc.model import UNITS_PER_CONVERSION


def _check_file(path: Path) -> None:
    """Refuse what is not a file, and what DuckDB would take for a pattern of many."""
    if not path.is_file():
        found = "a folder" if path.is_dir() else "no file"
        raise SourceError(str(path), found, "one file", "Check the path.")
    if glob.has_magic(str(path)):
        raise SourceError(
            str(path),
            "one of * ? [ in its path",
            "a path that is not taken for a pattern",
            "Rename the file or folder.",
        )
    if path.stat().st_size == 0:
        raise SourceError(str(path), "an empty file", "rows", "Check how it was written.")


@contextmanager
def _reading(path: Path, expected: str) -> Iterator[Any]:
    """A DuckDB connection of its own; whatever it cannot read of the file becomes a SourceError."""
    import duckdb

    _check_file(path)
    with duckdb.connect() as connection:
        try:
            yield connection
        except duckdb.Error as error:
            reason = str(error).strip().splitlines()[0]
            raise SourceError(
                str(path),
                f"what DuckDB cannot read ({reason})",
                expected,
                "Check that the file is whole and of the format its name says.",
            ) from None


COLUMNS = ("user_id", "slot", "publisher_id", "weight")
_CREDIT = "credit"
_CSV = (".csv", ".csv.gz")
_OWN_SHAPE = f"a Parquet or CSV file with the columns {', '.join(COLUMNS)}"
# Sums on the grid stay exact in a double.
_MOST_CONVERSIONS = 2**53 // UNITS_PER_CONVERSION
# Wider than any experiment, and small enough that a stray timestamp is not taken for a slot.
_MOST_SLOTS = 100_000

# Text first: one way to read numbers, whatever type a file gives them, and to show what is wrong.
_OWN_SQL = """CREATE TEMP TABLE own AS
SELECT row_number() OVER () AS line,
  CAST(user_id AS VARCHAR) AS user_id, CAST(publisher_id AS VARCHAR) AS publisher_id,
  CAST(slot AS VARCHAR) AS slot_text, CAST({weight} AS VARCHAR) AS weight_text,
  TRY_CAST(CAST(slot AS VARCHAR) AS DOUBLE) AS slot,
  TRY_CAST(CAST({weight} AS VARCHAR) AS DOUBLE) AS weight
FROM {source}"""

_ROWS_SQL = """SELECT dense_rank() OVER (ORDER BY user_id) - 1 AS user_number,
  dense_rank() OVER (ORDER BY publisher_id) - 1 AS publisher_number,
  CAST(slot AS BIGINT) AS slot, weight
FROM own ORDER BY line"""


def read_own_data(path: Path, slots: int | None = None) -> Dataset:
    """The file's rows as a data set; `slots` is the largest slot in it unless told otherwise.

    Weights are rounded down to the grid. `largest_user` is the largest user's total, rounded up:
    it is read from the data, so results that use it are for experiments only.
    """
    if slots is not None and slots < 1:
        raise SpecError(f"slots = {slots}: expected 1 or more")
    with _reading(path, _OWN_SHAPE) as connection:
        source = _source(path)
        weight = _weight_column(connection, path, source)
        connection.execute(_OWN_SQL.format(source=source, weight=weight), [str(path)])
        _check_rows(connection, path, slots)
        columns = connection.execute(_ROWS_SQL).fetchnumpy()
        names = connection.execute("SELECT DISTINCT publisher_id FROM own ORDER BY publisher_id")
        publishers = tuple(name for (name,) in names.fetchall())
    user, slot, weight = columns["user_number"], columns["slot"], columns["weight"]
    totals = np.bincount(user, weights=weight)
    return dataset_of(
        path.name.split(".")[0],
        f"own data ({path.name})",
        totals.size,
        int(slot.max()) if slots is None else slots,
        publishers,
        max(1, math.ceil(totals.max())),
        user=user,
        day=slot - 1,
        publisher=columns["publisher_number"],
        weight=np.floor(weight * UNITS_PER_CONVERSION).astype(np.int64),
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


def _weight_column(connection: Any, path: Path, source: str) -> str:
    """Which column has the weight; the others are there."""
    described = connection.execute(f"DESCRIBE SELECT * FROM {source}", [str(path)]).fetchall()
    names = [str(row[0]) for row in described]
    weight = _CREDIT if _CREDIT in names and "weight" not in names else "weight"
    for column in (*COLUMNS[:-1], weight):
        if column not in names:
            raise SourceError(
                str(path),
                f"the columns {', '.join(names)}",
                f"a column {column!r} too",
                f"Rename or add the column.{did_you_mean(column, names)}",
            )
    return weight


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


# In the order of the file.
LOG_COLUMNS = (
    "Sale", "SalesAmountInEuro", "time_delay_for_conversion", "click_timestamp", "nb_clicks_1week",
    "product_price", "product_age_group", "device_type", "audience_id", "product_gender",
    "product_brand", *(f"product_category{i}" for i in range(1, 8)), "product_country",
    "product_id", "product_title", "partner_id", "user_id",
)  # fmt: skip
_NUMBERS = ("Sale", "time_delay_for_conversion", "click_timestamp")
_LOOKBACK_SECONDS = 30 * 24 * 60 * 60
_LOG_SHAPE = f"{len(LOG_COLUMNS)} columns apart by tabs, without a header"

# Which touches of a journey take part; what takes part shares equally.
_CHOSEN = {"last": "place = journey_clicks", "first": "place = 1", "uniform": "true"}

_CLICKS_SQL = """CREATE TEMP TABLE clicks AS
SELECT row_number() OVER () AS click_number, Sale AS sale, click_timestamp AS clicked_at,
  time_delay_for_conversion AS delay, partner_id, user_id,
  dense_rank() OVER (ORDER BY partner_id) - 1 AS partner_number,
  dense_rank() OVER (ORDER BY user_id) - 1 AS user_number
FROM read_csv(?, delim = '\t', header = false, auto_detect = false, quote = '', escape = '',
  columns = {columns}, store_rejects = true, rejects_limit = 1000)
WHERE user_id <> '-1' AND partner_id <> '-1' AND click_timestamp > 0"""

_CREDITS_SQL = """WITH conversions AS (
  SELECT click_number AS conversion, user_number, clicked_at + delay AS converted_at
  FROM clicks WHERE sale = 1 AND delay >= 0
),
touches AS (
  SELECT conversion, converted_at, user_number, partner_number,
    row_number() OVER (PARTITION BY conversion ORDER BY clicked_at, partner_id, click_number)
      AS place,
    count(*) OVER (PARTITION BY conversion) AS journey_clicks
  FROM conversions JOIN clicks USING (user_number)
  WHERE clicked_at BETWEEN converted_at - {lookback} AND converted_at
),
chosen AS (
  SELECT *, count(*) OVER (PARTITION BY conversion) AS sharers FROM touches WHERE {chosen}
)
SELECT conversion, converted_at, user_number, partner_number,
  CAST({units} * count(*) // any_value(sharers) AS BIGINT) AS weight
FROM chosen GROUP BY conversion, converted_at, user_number, partner_number
ORDER BY converted_at, conversion, partner_number"""


def read_criteo_log(path: Path, slots: int, touch: str) -> Dataset:
    """The log's conversions, credited by `touch`: last, first or uniform.

    The time from the first conversion to the last is cut into `slots` equal parts. `largest_user`
    is the most conversions that one user has in the log.
    """
    if touch not in _CHOSEN:
        raise no_such_choice(f"touch = {touch!r}", touch, _CHOSEN)
    if slots < 1:
        raise SpecError(f"slots = {slots}: expected 1 or more")
    if path.name.endswith((".tar", ".tar.gz", ".tgz")):
        raise SourceError(str(path), "an archive", "the file in it", "Unpack it first.")
    with _reading(path, _LOG_SHAPE) as connection:
        _read_clicks(connection, path)
        credits = connection.execute(
            _CREDITS_SQL.format(
                lookback=_LOOKBACK_SECONDS, chosen=_CHOSEN[touch], units=UNITS_PER_CONVERSION
            )
        ).fetchnumpy()
        partners = connection.execute("SELECT DISTINCT partner_id FROM clicks ORDER BY partner_id")
        publishers = tuple(partner for (partner,) in partners.fetchall())
        users = connection.execute("SELECT count(DISTINCT user_id) FROM clicks").fetchone()[0]
    moment, user = credits["converted_at"], credits["user_number"]
    if not moment.size:
        raise SourceError(
            str(path),
            "no conversion",
            "rows with Sale = 1 and a user, a partner and a delay",
            "Check that this is the whole log.",
        )
    start = moment.min()
    one_row_each = np.unique(credits["conversion"], return_index=True)[1]
    return dataset_of(
        "criteo-log" if touch == "last" else f"criteo-log-{touch}",
        f"Criteo Sponsored Search Conversion Log, {touch} touch",
        users,
        slots,
        publishers,
        int(np.bincount(user[one_row_each]).max()),
        user=user,
        day=(moment - start) * slots // (moment.max() - start + 1),
        publisher=credits["partner_number"],
        weight=credits["weight"],
    )


def _read_clicks(connection: Any, path: Path) -> None:
    """The clicks with all that a journey needs; a broken line refuses the file."""
    types = ", ".join(
        f"'{column}': '{'BIGINT' if column in _NUMBERS else 'VARCHAR'}'" for column in LOG_COLUMNS
    )
    connection.execute(_CLICKS_SQL.format(columns=f"{{{types}}}"), [str(path)])
    broken = connection.execute(
        "SELECT line, column_name, csv_line, error_message FROM reject_errors ORDER BY line LIMIT 1"
    ).fetchone()
    if broken is None:
        return
    line, column, text, message = broken
    where, to_do = f"{path}, line {line}", "Correct the line or leave it out."
    fields = (text or "").split("\t")
    if len(fields) != len(LOG_COLUMNS):
        to_do = "Check that this is the file CriteoSearchData and that it is whole."
        raise SourceError(
            where, f"{len(fields)} columns" if len(fields) > 1 else "one column", _LOG_SHAPE, to_do
        )
    if column in _NUMBERS:
        found = repr(fields[LOG_COLUMNS.index(column)])
        raise SourceError(f"{where}, column {column!r}", found, "a whole number", to_do)
    raise SourceError(where, f"what DuckDB cannot read ({message})", _LOG_SHAPE, to_do)
