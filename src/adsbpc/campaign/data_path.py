"""The first half of a release: from events to credits and contributions, on one engine."""

from __future__ import annotations

from pathlib import Path

from adsbpc.attribution import credits_sql, journeys_of, model_of
from adsbpc.contributions import EngineContributions, contributions_sql
from adsbpc.engines import Engine
from adsbpc.events import EventTables, read_events
from adsbpc.model import UNITS_PER_CONVERSION, CampaignSpec


def attribute(spec: CampaignSpec, engine: Engine, slot: int | None = None) -> EventTables:
    """Read the events and define the view `credits`: of all slots, or of one."""
    events = read_events(spec, engine, slot)
    engine.view(
        "credits",
        credits_sql(
            model_of(spec.attribution), journeys_of(spec.attribution), events.publisher_count
        ),
    )
    return events


def contribute(spec: CampaignSpec, engine: Engine) -> EngineContributions:
    """Put the view `credits` on the integer grid, in the table `contributions`."""
    engine.table("contributions", contributions_sql(spec, "credits"))
    return EngineContributions(
        engine, "contributions", spec.campaign.slots, spec.reported_publishers
    )


def write_credits(engine: Engine, path: Path) -> int:
    """Write credits before any privacy to a Parquet file and return the number of rows."""
    engine.write_parquet(
        "write credits",
        f"""SELECT user_id, conversion_id, slot, publisher_id,
  CAST(credit_units AS DOUBLE) / {UNITS_PER_CONVERSION} AS credit FROM credits""",
        path,
    )
    engine.read_files("written_credits", "parquet", [str(path)], str(path.parent))
    ((count,),) = engine.rows("count credits", "SELECT count(*) FROM written_credits")
    return int(count)
