"""Users who were kept from seeing anything, where a campaign file names a list of them."""

from __future__ import annotations

from adsbpc.engines import ColumnKind, quote_name
from adsbpc.errors import SourceError
from adsbpc.events.schema import IMPRESSION_FIELDS, map_fields
from adsbpc.events.sources import resolve_source
from adsbpc.events.tables import EventTables
from adsbpc.model.spec import CampaignSpec


def read_holdout(spec: CampaignSpec, events: EventTables, location: str) -> None:
    """Define the view `holdout_users` (user_id): each user once, rows without one left out."""
    source = resolve_source(location, spec.directory, "[attribution.fit] holdout")
    fields = tuple(field for field in IMPRESSION_FIELDS if field.name == "user_id")
    columns = spec.events.impression_columns
    mapped = map_fields(
        fields, columns.model_dump(), frozenset(), source.describe(events.engine),
        "impression_columns", all_text=source.file_format == "csv",
    )["user_id"]  # fmt: skip
    if mapped.kind is ColumnKind.TEXT and not events.text_users:
        raise SourceError(
            f"{source.where}, column {mapped.column!r}", "text",
            "integers, like the user ids of impressions and conversions",
            "Write the same kind of ids into all three.",
        )  # fmt: skip
    source.open(events.engine, "holdout_source", [mapped.column])
    kind = "STRING" if events.text_users else "BIGINT"
    user = f"CAST({quote_name(mapped.column)} AS {kind})"
    if events.text_users:
        user = f"nullif({user}, '')"
    events.engine.view(
        "holdout_users",
        f"SELECT DISTINCT user_id FROM (SELECT {user} AS user_id FROM holdout_source) AS listed"
        " WHERE user_id IS NOT NULL",
    )
