"""DuckDB, Spark and the plain-Python reference give the same credits, to the row."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from adsbpc.attribution.reference import Conversion, Credit, Impression
from adsbpc.engines import Engine
from adsbpc.model import UNITS_PER_CONVERSION
from adsbpc.model.slots import to_microseconds
from tests.conftest import open_test_engine
from tests.effort import examples
from tests.worlds import World, credits_on

HOUR = 3_600_000_000
BEFORE = to_microseconds(datetime(2026, 3, 24, 22, tzinfo=UTC))

MODELS: list[dict[str, Any]] = [
    {"model": "last_touch"},
    {"model": "first_touch"},
    {"model": "uniform"},
    {"model": "time_decay", "half_life": "7h"},
    {"model": "position"},
    {"model": "position", "first_share": 0, "last_share": 0},
    {"model": "shapley_path"},
]

# A coarse clock makes ties and exact lookback boundaries common; it spans the campaign, the
# daylight-saving night of 29 March and some time on both sides.
moments = st.builds(
    lambda hours, micros: BEFORE + hours * HOUR + micros,
    st.integers(0, 8 * 24),
    st.sampled_from([0, 0, 0, 1, HOUR - 1]),
)
publishers = st.sampled_from(["P-1", "P-2", "unlisted", "Ünlisted ' \\ P"])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    impressions, conversions = [], []
    for number in range(draw(st.integers(1, 6))):
        user = f"u{number}"
        for moment, publisher, click in draw(
            st.lists(st.tuples(moments, publishers, st.booleans()), max_size=12)
        ):
            impressions.append(Impression(user, publisher, moment, click))
        late = st.sampled_from([0, 0, 1, 5 * HOUR, 40 * HOUR])
        for index, (moment, delay) in enumerate(
            draw(st.lists(st.tuples(moments, late), max_size=5))
        ):
            conversions.append(Conversion(user, f"c{index}", moment, moment + delay))
    attribution = {
        **draw(st.sampled_from(MODELS)),
        "click_lookback": draw(st.sampled_from(["0h", "3h", "2d", "30d"])),
        "view_lookback": draw(st.sampled_from(["0h", "1h", "1d"])),
        "max_touches": draw(st.sampled_from([1, 2, 3, 50])),
        "max_conversions": draw(st.sampled_from([1, 2, 1_000])),
    }
    return World(impressions, conversions, attribution=attribution)


def check_invariants(credits: list[Credit]) -> None:
    sums: dict[tuple[str, str], int] = {}
    for credit in credits:
        assert credit.credit_units > 0
        key = (credit.user_id, credit.conversion_id)
        sums[key] = sums.get(key, 0) + credit.credit_units
    assert all(total <= UNITS_PER_CONVERSION for total in sums.values())


def check_world(world: World, engine_name: str, directory: Path) -> None:
    engine = open_test_engine(engine_name)
    try:
        credits = credits_on(engine, world.write(directory))
    finally:
        engine.close()
    assert credits == world.reference(directory)
    check_invariants(credits)


@given(world=worlds())
@settings(max_examples=examples(20, 150))
def test_any_world_on_duckdb(world: World, tmp_path: Path) -> None:
    check_world(world, "duckdb", tmp_path)


@pytest.mark.spark
@given(world=worlds())
@settings(
    max_examples=8,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_any_world_on_spark(world: World, tmp_path: Path) -> None:
    check_world(world, "spark", tmp_path)


def crowd() -> tuple[list[Impression], list[Conversion]]:
    """Users who take every road: quiet, hundreds of impressions, many conversions, nobody."""
    impressions, conversions = [], []
    for user, touches, purchases in (
        ("quiet", 5, 9),
        ("heavy", 400, 5),
        ("buyer", 20, 90),
        ("both", 300, 100),
        ("window-shopper", 200, 0),
        ("stranger", 0, 3),
        ("tied", 0, 1),
    ):
        for k in range(touches):
            moment = BEFORE + (k * 7_919 % (8 * 24 * 60)) * 60_000_000
            impressions.append(Impression(user, f"P-{k * k % 5}", moment, k % 3 == 0))
        for k in range(purchases):
            moment = BEFORE + (k * 104_729 % (8 * 24 * 60)) * 60_000_000
            conversions.append(Conversion(user, f"c{k}", moment, moment + (k % 4) * 9 * HOUR))
    noon = BEFORE + 80 * HOUR
    impressions += [Impression("tied", f"P-{k}", noon - 1, k % 2 == 0) for k in range(4)]
    conversions[-1] = Conversion("tied", "c0", noon, noon)
    return impressions, conversions


@pytest.mark.parametrize(
    "model",
    [pytest.param(model, id="-".join(map(str, model.values()))) for model in MODELS],
)
def test_a_crowd_on_every_road(model: dict[str, Any], engine: Engine, tmp_path: Path) -> None:
    impressions, conversions = crowd()
    world = World(
        impressions,
        conversions,
        attribution={
            **model, "click_lookback": "4d", "view_lookback": "20h", "max_touches": 30,
        },
    )  # fmt: skip
    credits = credits_on(engine, world.write(tmp_path))
    assert credits == world.reference(tmp_path)
    check_invariants(credits)
    assert {c.user_id for c in credits} == {"quiet", "heavy", "buyer", "both", "tied"}


@pytest.mark.parametrize("model", ["last_touch", "time_decay"])
def test_one_bot_does_not_blow_up(model: str, engine: Engine, tmp_path: Path) -> None:
    """30,000 impressions and as many conversions of one user: pairing them all would make
    900 million rows. The reference is asked about a sample of the conversions."""
    bot_touches = [
        Impression("bot", f"P-{k % 7}", BEFORE + k * 20_000_000, k % 2 == 0) for k in range(30_000)
    ]
    bot_conversions = [
        Conversion("bot", f"c{k}", at := BEFORE + k * 20_000_000 + k % 3, at) for k in range(30_000)
    ]
    person = [Impression("person", "P-1", BEFORE + 70 * HOUR, True)]
    bought = Conversion("person", "c", BEFORE + 80 * HOUR, BEFORE + 80 * HOUR)
    world = World(
        [*bot_touches, *person],
        [*bot_conversions, bought],
        attribution={"model": model, "max_conversions": 100_000},
    )
    credits = credits_on(engine, world.write(tmp_path))
    sample = World(
        world.impressions, [*bot_conversions[::997], bought], attribution=world.attribution
    )
    sampled = {(c.user_id, c.conversion_id) for c in sample.conversions}
    assert [c for c in credits if (c.user_id, c.conversion_id) in sampled] == sample.reference(
        tmp_path
    )
    check_invariants(credits)


@pytest.mark.parametrize(
    ("start", "timezone"),
    [(date(2026, 3, 28), "Europe/Berlin"), (date(2026, 10, 24), "America/Sao_Paulo"),
     (date(2026, 10, 24), "Europe/Berlin"), (date(2026, 4, 4), "Australia/Lord_Howe")],
)  # fmt: skip
@pytest.mark.parametrize("slot", ["1d", "1h"])
def test_daylight_saving_days(
    start: date, timezone: str, slot: str, engine: Engine, tmp_path: Path
) -> None:
    """A conversion on and beside every boundary of the slots falls where the wall clock says."""
    slots = 4 if slot == "1d" else 60
    world = World([], [], start=start, slots=slots, slot=slot, timezone=timezone)
    edges = world.spec(tmp_path).grid.boundaries
    conversions = [
        Conversion("u", f"{k}-{shift}", edge + shift, edge + shift)
        for k, edge in enumerate(edges)
        for shift in (-1, 0, 1)
    ]
    world = World(
        [Impression("u", "P-1", edges[0] - HOUR, True)], conversions,
        start=start, slots=slots, slot=slot, timezone=timezone,
    )  # fmt: skip
    credits = credits_on(engine, world.write(tmp_path))
    assert credits == world.reference(tmp_path)
    assert {c.slot for c in credits} == set(range(1, slots + 1))


@pytest.mark.parametrize(
    ("start", "slot", "timezone"),
    [(date(2026, 3, 23), "1w", "Europe/Berlin"), (date(2026, 2, 1), "1mo", "Europe/Berlin"),
     (date(2026, 9, 1), "1mo", "America/Sao_Paulo"), (date(2026, 3, 30), "1w", "America/Havana")],
)  # fmt: skip
def test_long_slots_over_daylight_saving(
    start: date, slot: str, timezone: str, engine: Engine, tmp_path: Path
) -> None:
    """Journeys do not end with a week or a month, and reading one of them reads all they need."""
    slots = 4
    world = World([], [], start=start, slots=slots, slot=slot, timezone=timezone)
    edges = world.spec(tmp_path).grid.boundaries
    moments = [
        moment
        for edge, following in pairwise(edges)
        for moment in (edge, edge + 1, (edge + following) // 2, following - 1)
    ]
    impressions = [
        Impression("u", f"P-{k % 2 + 1}", moment - (1 + 24 * k) * HOUR, True)
        for k, moment in enumerate(moments)
    ]
    conversions = [Conversion("u", f"{k}", moment, moment) for k, moment in enumerate(moments)]
    world = replace(
        world, impressions=impressions, conversions=conversions, attribution={"model": "uniform"}
    )
    spec = world.write(tmp_path)
    credits = credits_on(engine, spec)
    assert credits == world.reference(tmp_path)
    assert {c.slot for c in credits} == set(range(1, slots + 1))
    for number in range(1, slots + 1):
        assert credits_on(engine, spec, number) == [c for c in credits if c.slot == number]


def test_one_slot_is_a_part_of_all_slots(engine: Engine, tmp_path: Path) -> None:
    impressions, conversions = crowd()
    world = World(impressions, conversions, attribution={"model": "uniform"})
    spec = world.write(tmp_path)
    everything = credits_on(engine, spec)
    for slot in (1, 3, 5):
        assert credits_on(engine, spec, slot) == [c for c in everything if c.slot == slot]


def test_empty_tables(engine: Engine, tmp_path: Path) -> None:
    world = World([], [], attribution={"model": "uniform"})
    assert credits_on(engine, world.write(tmp_path)) == []
