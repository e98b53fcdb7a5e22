"""A user's rows depend on that user's events alone: remove anybody and nobody else's change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adsbpc.campaign import attribute
from adsbpc.engines import Engine
from tests.attribution.test_engines_agree import MODELS, crowd, worlds
from tests.conftest import open_test_engine
from tests.effort import examples
from tests.worlds import World

# Credits, contributions and quarantine: everything that carries a user.
TABLES = {
    "credits": "user_id, conversion_number, conversion_id, slot, time_us, publisher_id,"
    " publisher_index, credit_units",
    "conversions": "user_id, conversion_number, conversion_id, slot, time_us",
    "quarantine": "user_id, source, reason, event_id",
}


def rows_of_others(
    world: World, engine: Engine, directory: Path, left_out: str
) -> list[list[tuple[Any, ...]]]:
    attributed = attribute(world.write(directory), engine)
    events = attributed.events
    relations = (attributed.credits, events.conversions, events.quarantine)
    found = []
    for columns, relation in zip(TABLES.values(), relations, strict=True):
        rows = engine.rows("others", f"SELECT {columns} FROM {relation}")
        found.append(sorted((row for row in rows if row[0] != left_out), key=repr))
    return found


@given(data=st.data(), world=worlds())
@settings(max_examples=examples(10, 60))
def test_removing_anyone_from_any_world(data: st.DataObject, world: World, tmp_path: Path) -> None:
    if not world.users():
        return
    gone = data.draw(st.sampled_from(world.users()))
    engine = open_test_engine("duckdb")
    try:
        assert rows_of_others(world, engine, tmp_path, gone) == rows_of_others(
            world.without(gone), engine, tmp_path, gone
        )
    finally:
        engine.close()


@pytest.mark.parametrize("gone", ["quiet", "heavy", "buyer", "both", "tied"])
def test_removing_anyone_from_the_crowd(gone: str, duckdb_engine: Engine, tmp_path: Path) -> None:
    impressions, conversions = crowd()
    world = World(impressions, conversions, attribution={**MODELS[2], "max_touches": 30})
    assert rows_of_others(world, duckdb_engine, tmp_path, gone) == rows_of_others(
        world.without(gone), duckdb_engine, tmp_path, gone
    )


@pytest.mark.spark
def test_removing_a_busy_user_on_spark(tmp_path: Path) -> None:
    impressions, conversions = crowd()
    world = World(impressions, conversions, attribution={**MODELS[3], "max_touches": 30})
    engine = open_test_engine("spark")
    try:
        assert rows_of_others(world, engine, tmp_path, "both") == rows_of_others(
            world.without("both"), engine, tmp_path, "both"
        )
    finally:
        engine.close()
