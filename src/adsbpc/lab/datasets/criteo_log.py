"""The real Criteo Sponsored Search Conversion Log, for those who have it.

Published by Criteo with Tallis and Yadav, "Reacting to Variations in Product Demand" (2018). The
file CriteoSearchData of the archive is tab-separated, without a header, 23 columns, a row a click.
Missing values are written as -1, a missing click_timestamp also as 0.

A row with Sale = 1 is a conversion at click_timestamp + time_delay_for_conversion seconds. Its
journey is all clicks of the same user, with whatever partner, up to that moment and at most 30
days before it; partners are the publishers. Rows without a user, a partner or a click_timestamp
cannot be part of anyone's journey and are left out, and so are sales without a delay.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from adsbpc.errors import SourceError, SpecError, no_such_choice
from adsbpc.lab.datasets.dataset import Dataset, contributions_of
from adsbpc.lab.datasets.files import reading
from adsbpc.model import UNITS_PER_CONVERSION

# In the order of the file.
LOG_COLUMNS = (
    "Sale", "SalesAmountInEuro", "time_delay_for_conversion", "click_timestamp", "nb_clicks_1week",
    "product_price", "product_age_group", "device_type", "audience_id", "product_gender",
    "product_brand", *(f"product_category{i}" for i in range(1, 8)), "product_country",
    "product_id", "product_title", "partner_id", "user_id",
)  # fmt: skip
_NUMBERS = ("Sale", "time_delay_for_conversion", "click_timestamp")
_LOOKBACK_SECONDS = 30 * 24 * 60 * 60
_SHAPE = f"{len(LOG_COLUMNS)} columns apart by tabs, without a header"

# Which touches of a journey take part; what takes part shares equally.
_CHOSEN = {"last": "place = journey_clicks", "first": "place = 1", "uniform": "true"}

_CLICKS_SQL = """CREATE TEMP TABLE clicks AS
SELECT row_number() OVER () AS click_number, Sale AS sale, click_timestamp AS clicked_at,
  time_delay_for_conversion AS delay, partner_id, user_id
FROM read_csv(?, delim = '\t', header = false, auto_detect = false, quote = '', escape = '',
  columns = {columns}, store_rejects = true, rejects_limit = 1000)
WHERE user_id <> '-1' AND partner_id <> '-1' AND click_timestamp > 0"""

_CREDITS_SQL = """WITH people AS (
  SELECT user_id, row_number() OVER (ORDER BY user_id) - 1 AS user_number
  FROM (SELECT DISTINCT user_id FROM clicks)
),
places AS (
  SELECT partner_id, row_number() OVER (ORDER BY partner_id) - 1 AS partner_number
  FROM (SELECT DISTINCT partner_id FROM clicks)
),
conversions AS (
  SELECT click_number AS conversion, user_id, clicked_at + delay AS converted_at
  FROM clicks WHERE sale = 1 AND delay >= 0
),
touches AS (
  SELECT conversion, converted_at, user_id, partner_id,
    row_number() OVER (PARTITION BY conversion ORDER BY clicked_at, partner_id, click_number)
      AS place,
    count(*) OVER (PARTITION BY conversion) AS journey_clicks
  FROM conversions JOIN clicks USING (user_id)
  WHERE clicked_at BETWEEN converted_at - {lookback} AND converted_at
),
chosen AS (
  SELECT *, count(*) OVER (PARTITION BY conversion) AS sharers FROM touches WHERE {chosen}
),
credits AS (
  SELECT conversion, converted_at, user_id, partner_id,
    {units} * count(*) // any_value(sharers) AS weight
  FROM chosen GROUP BY conversion, converted_at, user_id, partner_id
)
SELECT CAST(conversion AS BIGINT) AS conversion, CAST(converted_at AS BIGINT) AS converted_at,
  CAST(user_number AS BIGINT) AS user_number, CAST(partner_number AS BIGINT) AS partner_number,
  CAST(weight AS BIGINT) AS weight
FROM credits JOIN people USING (user_id) JOIN places USING (partner_id)
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
    with reading(path, _SHAPE) as connection:
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
    return Dataset(
        name="criteo-log" if touch == "last" else f"criteo-log-{touch}",
        label=f"Criteo Sponsored Search Conversion Log, {touch} touch",
        users=users,
        slots=slots,
        publishers=publishers,
        largest_user=int(np.bincount(user[one_row_each]).max()),
        quantile_limit=10,
        contributions=contributions_of(
            user,
            (moment - start) * slots // (moment.max() - start + 1),
            credits["partner_number"],
            slots,
            publishers,
            credits["weight"],
        ),
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
            where, f"{len(fields)} columns" if len(fields) > 1 else "one column", _SHAPE, to_do
        )
    if column in _NUMBERS:
        found = repr(fields[LOG_COLUMNS.index(column)])
        raise SourceError(f"{where}, column {column!r}", found, "a whole number", to_do)
    raise SourceError(where, f"what DuckDB cannot read ({message})", _SHAPE, to_do)
