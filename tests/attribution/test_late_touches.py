"""Impressions that arrive late: engines against the reference, slot by slot and all at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from adsbpc.attribution.reference import Conversion, Credit, Impression
from adsbpc.engines import Engine
from tests.attribution.test_engines_agree import BEFORE, HOUR, MODELS, crowd, worlds
from tests.attribution.test_isolation import rows_of_others
from tests.conftest import open_test_engine
from tests.effort import examples
from tests.worlds import World, credits_on

DELAYS = st.sampled_from([None, 0, 1, HOUR, 5 * HOUR, 30 * HOUR, 60 * HOUR])


@st.composite
def late_worlds(draw: st.DrawFn) -> World:
    world = draw(worlds())
    events = {
        "settle": draw(st.sampled_from(["0h", "1h", "1d"])),
        "wait": draw(st.sampled_from(["0h", "5h", "2d", "30d"])),
    }
    delayed = [late(each, draw(DELAYS)) for each in world.impressions]
    return replace(world, impressions=delayed, events=events)


def late(impression: Impression, delay: int | None) -> Impression:
    return replace(impression, arrived_us=None if delay is None else impression.time_us + delay)


def check(world: World, engine: Engine, directory: Path) -> list[Credit]:
    spec, expected = world.write(directory), world.reference(directory)
    assert credits_on(engine, spec) == expected
    # Spark takes long, and is asked for one.
    for slot in range(1, world.slots + 1) if engine.name == "duckdb" else (3,):
        own = [credit for credit in expected if credit.slot == slot]
        assert credits_on(engine, spec, slot) == own
    return expected


@given(world=late_worlds())
@settings(max_examples=examples(6, 150))
def test_any_world_with_late_impressions(world: World, tmp_path: Path) -> None:
    engine = open_test_engine("duckdb")
    try:
        check(world, engine, tmp_path)
    finally:
        engine.close()


@pytest.mark.spark
@given(world=late_worlds())
@settings(
    max_examples=2,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_any_world_with_late_impressions_on_spark(world: World, tmp_path: Path) -> None:
    engine = open_test_engine("spark")
    try:
        check(world, engine, tmp_path)
    finally:
        engine.close()


def late_crowd(model: dict[str, Any]) -> World:
    impressions, conversions = crowd()
    delayed = [late(each, k * k % 7 * 9 * HOUR) for k, each in enumerate(impressions)]
    # Whoever has one touch, which comes late, waits for it, whatever others have by then.
    noon = BEFORE + 80 * HOUR
    for k in range(8):
        touch = Impression(f"waits-{k}", "P-1", noon - HOUR, True)
        delayed.append(late(touch, (20 + 4 * k) * HOUR))
        conversions.append(Conversion(f"waits-{k}", "c", noon, noon))
    attribution = {**model, "click_lookback": "4d", "view_lookback": "20h", "max_touches": 30}
    events = {"settle": "1h", "wait": "2d"}
    return World(delayed, conversions, attribution=attribution, events=events)


def test_a_late_crowd_on_every_road(engine: Engine, tmp_path: Path) -> None:
    world = late_crowd(MODELS[2])
    credits = check(world, engine, tmp_path)
    in_time = World(
        [replace(each, arrived_us=None) for each in world.impressions],
        world.conversions, attribution=world.attribution, events=world.events,
    ).reference(tmp_path)  # fmt: skip
    assert credits != in_time, "nothing came late enough: this tests nothing"


def test_removing_anyone_with_late_impressions(duckdb_engine: Engine, tmp_path: Path) -> None:
    world = late_crowd(MODELS[2])
    for gone in ("quiet", "both"):
        assert rows_of_others(world, duckdb_engine, tmp_path, gone) == rows_of_others(
            world.without(gone), duckdb_engine, tmp_path, gone
        )


@given(world=late_worlds(), data=st.data())
@settings(max_examples=examples(25, 300))
def test_what_arrives_after_a_release_counts_nothing_twice(
    world: World, data: st.DataObject, tmp_path: Path
) -> None:
    """Each slot is released from what had arrived by then, as it happens: a conversion is in one
    of them, and those of all slots are what a reading of all rows in the end says."""
    spec = world.spec(tmp_path)
    released: list[Credit] = []
    for slot in range(1, world.slots + 1):
        until = spec.grid.boundaries[slot] + spec.events.held_back
        there = [each for each in world.impressions if each.arrival < until]
        known = replace(world, impressions=there).reference(tmp_path)
        released += [credit for credit in known if credit.slot == slot]
    assert sorted(released) == world.reference(tmp_path)
    slots: dict[tuple[str, str], set[int]] = {}
    for credit in released:
        slots.setdefault((credit.user_id, credit.conversion_id), set()).add(credit.slot)
    assert all(len(each) == 1 for each in slots.values())


def test_a_click_that_is_pushed_six_minutes_late_counts(
    duckdb_engine: Engine, tmp_path: Path
) -> None:
    noon = BEFORE + 85 * HOUR
    click = Impression("ann", "P-1", noon - HOUR, True, noon + 12 * HOUR + HOUR // 10)
    purchase = Conversion("ann", "c1", noon, noon)
    world = World([click], [purchase], events={"settle": "0h"})
    assert check(world, duckdb_engine, tmp_path) == []
    for events in ({"settle": "1h"}, {"settle": "0h", "wait": "1d"}):
        (credit,) = check(replace(world, events=events), duckdb_engine, tmp_path)
        assert credit.publisher_id == "P-1"
