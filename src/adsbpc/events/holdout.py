"""Users who were kept from seeing anything, where a campaign file names a list of them."""

from __future__ import annotations

from adsbpc.engines import ColumnKind, Engine, Relation, quote_name
from adsbpc.errors import SourceError
from adsbpc.events.schema import IMPRESSION_FIELDS, MappedField, map_fields
from adsbpc.events.sources import Source, dialect_of, resolve_source
from adsbpc.events.tables import EventTables
from adsbpc.model.spec import CampaignSpec


def holdout_source(spec: CampaignSpec, location: str) -> Source:
    """Where the list is; refused if it is nowhere."""
    return resolve_source(location, spec.directory, "[attribution.fit] holdout", dialect_of(spec))


def _user_field(spec: CampaignSpec, engine: Engine, source: Source) -> MappedField:
    fields = tuple(field for field in IMPRESSION_FIELDS if field.name == "user_id")
    return map_fields(
        fields, spec.events.impression_columns.model_dump(), frozenset(),
        source.describe(engine), "events.impression_columns", all_text=source.is_csv,
    )["user_id"]  # fmt: skip


def read_holdout(spec: CampaignSpec, events: EventTables, location: str) -> Relation:
    """Rows (user_id): each user once, rows without one left out."""
    source = holdout_source(spec, location)
    mapped = _user_field(spec, events.engine, source)
    if mapped.kind is ColumnKind.TEXT and not events.text_users:
        raise SourceError(
            f"{source.where}, column {mapped.column!r}",
            "text",
            "integers, like the user ids of impressions and conversions",
            "Write the same kind of ids into all three.",
        )
    listed = source.open(events.engine, "holdout_source", [mapped.column])
    kind = "STRING" if events.text_users else "BIGINT"
    user = f"CAST({quote_name(mapped.column)} AS {kind})"
    if events.text_users:
        user = f"nullif({user}, '')"
    return Relation.of(
        f"SELECT DISTINCT user_id FROM (SELECT {user} AS user_id FROM {listed}) AS listed"
        " WHERE user_id IS NOT NULL",
    )
