"""DuckDB, Spark and plain Python agree on what every user adds to counts and on the credits of
fitted models; nobody's depend on anybody else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adsbpc.attribution import (
    CountSet,
    credits_of,
    fit_cells_sql,
    fit_users_sql,
    fitted_model,
    journeys_of,
)
from adsbpc.attribution.counts import Coalitions, Pairs, Transitions
from adsbpc.attribution.fit_reference import user_cells
from adsbpc.attribution.reference import Conversion, Credit, Impression, attribute
from adsbpc.contributions.fit_counts import engine_counts, plain_counts
from adsbpc.engines import Engine, Relation, quote_text
from adsbpc.events import EventTables, read_events
from adsbpc.model import CampaignSpec, Fit
from tests.attribution.fits import MODELS, any_fit, names, parameters
from tests.attribution.test_engines_agree import (
    BEFORE,
    HOUR,
    check_invariants,
    crowd,
    worlds,
)
from tests.conftest import open_test_engine
from tests.effort import examples
from tests.worlds import World

THROUGH = 3
LISTED = ("P-1", "P-2")
FITS = [any_fit(model, order, (*LISTED, "other"), seed=7) for model, order in MODELS]

Cells = dict[str, Counter[int]]


def all_sets(players: int, holdout: bool = False) -> list[CountSet]:
    """Journeys of more than two stages count for less in all of them."""
    chains = [Transitions(players, False, 2, order) for order in (1, 2, 3)]
    return [Coalitions(players, holdout), Pairs(players, holdout, 2), *chains]


@contextmanager
def opened(name: str) -> Iterator[Engine]:
    engine = open_test_engine(name)
    try:
        yield engine
    finally:
        engine.close()


def holdout_of(users: Iterable[str]) -> Relation:
    listed = " UNION ALL ".join(f"SELECT {quote_text(user)} AS user_id" for user in users)
    return Relation.of(listed or "SELECT '' AS user_id WHERE FALSE")


def cells_on(
    events: EventTables, counts: CountSet, spec: CampaignSpec, holdout: Relation | None = None
) -> Cells:
    """What each user adds, before it is weighed, by user id instead of by key."""
    engine, journeys = events.engine, journeys_of(spec.attribution)
    text = fit_users_sql(journeys, spec.grid.starts_at, events, holdout)
    users = engine.table("fit_users", text, row_key="user_key")
    rows = engine.rows(
        "cells of users",
        f"WITH {fit_cells_sql(counts, journeys, events, users)}"
        " SELECT users.user_id, all_cells.cell,"
        " CAST(sum(all_cells.amount) AS BIGINT) FROM all_cells"
        f" JOIN {users} AS users ON users.user_key = all_cells.user_key"
        " GROUP BY users.user_id, all_cells.cell",
    )
    engine.drop(users)
    found: Cells = {}
    for user, cell, amount in rows:
        found.setdefault(user, Counter())[cell] += amount
    return found


def plain_cells(world: World, spec: CampaignSpec, counts: CountSet, held_out: list[str]) -> Cells:
    return user_cells(
        world.impressions, world.conversions, world.publishers, spec.grid, THROUGH,
        journeys_of(spec.attribution), counts, held_out,
    )  # fmt: skip


def kept(events: EventTables) -> EventTables:
    """Impressions computed once: Spark would begin from the files with every query."""
    text = f"SELECT * FROM {events.impressions}"
    return replace(events, impressions=events.engine.table("kept_impressions", text))


def credits_on(events: EventTables, spec: CampaignSpec, fits: Sequence[Fit]) -> list[list[Credit]]:
    """Credits of each fit. All have the same touches, which the first steps of the text find."""
    journeys, engine = journeys_of(spec.attribution), events.engine
    steps = f"WITH {journeys.touches_sql(events, whole_journey=True)}"
    touches = engine.table("touches", f"{steps} SELECT * FROM touches")
    found = []
    for fit in fits:
        text = credits_of(fitted_model(fit), journeys, events).text
        assert text.startswith(f"(\n{steps},\n")
        known = f"(\nWITH touches AS (SELECT * FROM {touches})"
        found.append(rows_of(engine, Relation(text.replace(f"(\n{steps}", known))))
    return found


def rows_of(engine: Engine, credits: Relation) -> list[Credit]:
    columns = "user_id, conversion_id, slot, publisher_id, credit_units"
    found = engine.rows("credits", f"SELECT {columns} FROM {credits}")
    return sorted(Credit(*row) for row in found)


def plain_credits(world: World, spec: CampaignSpec, fit: Fit) -> list[Credit]:
    journeys = journeys_of(spec.attribution)
    return attribute(
        world.impressions,
        world.conversions,
        spec.grid,
        journeys,
        fitted_model(fit),
        spec.attribution.max_conversions,
    )


def check_counts(
    engine: Engine, world: World, spec: CampaignSpec, sets: list[CountSet], held_out: list[str]
) -> None:
    events = kept(read_events(spec, engine, through=THROUGH))
    for counts in sets:
        users = plain_cells(world, spec, counts, held_out)
        journeys, starts_at = journeys_of(spec.attribution), spec.grid.starts_at
        holdout = holdout_of(held_out) if counts.holdout else None
        found = engine_counts(events, counts, journeys, starts_at, holdout)
        assert found.tolist() == plain_counts(counts, users.values()).tolist(), counts


def check_credits(engine: Engine, world: World, spec: CampaignSpec, fits: list[Fit]) -> None:
    events = kept(read_events(spec, engine))
    for fit, found in zip(fits, credits_on(events, spec, fits), strict=True):
        assert found == plain_credits(world, spec, fit), fit.model
        check_invariants(found)


# ---- any world, on DuckDB -----------------------------------------------------------------------


@given(world=worlds(), data=st.data())
@settings(max_examples=examples(6, 40))
def test_counts_of_any_world(world: World, data: st.DataObject, tmp_path: Path) -> None:
    held_out = data.draw(st.lists(st.sampled_from([*world.users(), "stranger"]), unique=True))
    with opened("duckdb") as engine:
        spec = world.write(tmp_path)
        check_counts(engine, world, spec, all_sets(3, holdout=True), held_out)


@given(world=worlds(), fit=parameters((*LISTED, "other")))
@settings(max_examples=examples(6, 40))
def test_credits_of_any_world(world: World, fit: Fit, tmp_path: Path) -> None:
    with opened("duckdb") as engine:
        check_credits(engine, world, world.write(tmp_path), [fit, *FITS])


@given(world=worlds(), data=st.data())
@settings(max_examples=examples(4, 25))
def test_removing_anyone_leaves_all_others_as_they_are(
    world: World, data: st.DataObject, tmp_path: Path
) -> None:
    """With the fit as it is, credits of others are the same; so is what they add to the counts that
    a fit is made from, in a holdout group and outside."""
    if not world.users():
        return
    gone = data.draw(st.sampled_from(world.users()))
    held_out = data.draw(st.lists(st.sampled_from(world.users()), unique=True))
    with opened("duckdb") as engine:
        with_all = rows_of_others(engine, world, gone, held_out, tmp_path)
        rest = [user for user in held_out if user != gone]
        assert with_all == rows_of_others(engine, world.without(gone), gone, rest, tmp_path)


def rows_of_others(
    engine: Engine, world: World, gone: str, held_out: list[str], directory: Path
) -> list[object]:
    spec = world.write(directory)
    credits = credits_on(read_events(spec, engine), spec, FITS)
    found: list[object] = [[c for c in each if c.user_id != gone] for each in credits]
    events = read_events(spec, engine, through=THROUGH)
    for counts in all_sets(3, holdout=True):
        holdout = holdout_of(held_out) if counts.holdout else None
        cells = cells_on(events, counts, spec, holdout)
        assert cells == plain_cells(world, spec, counts, held_out)
        found.append({user: added for user, added in cells.items() if user != gone})
    return found


def test_the_ends_of_the_slots_that_are_counted(duckdb_engine: Engine, tmp_path: Path) -> None:
    """A last touch, a conversion and its arrival on and beside the first edge and the last."""
    edges = World([], []).spec(tmp_path).grid.boundaries
    impressions, conversions = [], []
    for edge in (edges[0], edges[THROUGH]):
        for shift in (-2, -1, 0, 1):
            touched, bought, late = (f"{kind}-{edge + shift}" for kind in ("t", "b", "l"))
            impressions += [
                Impression(touched, "P-1", edge + shift, True),
                Impression(bought, "P-2", edge - HOUR, True),
                Impression(bought, "P-1", edge + 1, True),
                Impression(late, "P-2", edge - 2 * HOUR, True),
            ]
            conversions += [
                Conversion(bought, "c", edge + shift, edge + shift),
                Conversion(late, "c", edge - HOUR, edge + shift),
            ]
    world = World(impressions, conversions)
    spec = world.write(tmp_path)
    check_counts(duckdb_engine, world, spec, all_sets(3), [])
    users = set(plain_cells(world, spec, Coalitions(3), []))
    assert f"t-{edges[0]}" in users
    assert f"t-{edges[0] - 1}" not in users
    assert f"t-{edges[THROUGH] - 1}" in users
    assert f"t-{edges[THROUGH]}" not in users


# ---- worlds with everybody in them, on both engines ---------------------------------------------


def busy_world(publishers: tuple[str, ...] = LISTED, met: int = 6, seed: int = 1) -> World:
    """The crowd that takes every road, and 150 users with up to 25 touches each."""
    random = Random(seed)
    impressions, conversions = crowd()
    for number in range(150):
        user = f"x{number}"
        for _ in range(random.randrange(26)):
            moment = BEFORE + random.randrange(8 * 24) * HOUR
            publisher = f"P-{random.randrange(met)}"
            impressions.append(Impression(user, publisher, moment, random.random() < 0.5))
        for index in range(random.randrange(3)):
            moment = BEFORE + random.randrange(8 * 24) * HOUR
            conversions.append(Conversion(user, f"c{index}", moment, moment))
    attribution = {"click_lookback": "4d", "view_lookback": "20h", "max_touches": 30}
    return World(impressions, conversions, publishers=publishers, attribution=attribution)


HELD_OUT = ["x1", "x2", "x3", "both", "window-shopper", "nobody"]


def test_counts_of_a_busy_world(duckdb_engine: Engine, tmp_path: Path) -> None:
    world = busy_world()
    for held_out, holdout in ((HELD_OUT, True), ([], True), ([], False)):
        check_counts(
            duckdb_engine, world, world.write(tmp_path), all_sets(3, holdout=holdout), held_out
        )


def test_credits_of_a_busy_world(duckdb_engine: Engine, tmp_path: Path) -> None:
    """The whole text of each model, in one piece."""
    world = busy_world()
    spec = world.write(tmp_path)
    events = read_events(spec, duckdb_engine)
    for fit in FITS:
        credits = credits_of(fitted_model(fit), journeys_of(spec.attribution), events)
        found = rows_of(duckdb_engine, credits)
        assert found == plain_credits(world, spec, fit)
        check_invariants(found)


FOURTEEN = names(14)[:-1]


@pytest.mark.parametrize("model", ["shapley", "shapley_ordered", "logistic", "probabilistic"])
def test_credits_with_more_publishers_than_coalitions_have(
    model: str, duckdb_engine: Engine, tmp_path: Path
) -> None:
    """Journeys of more than six members are looked at in parts."""
    world = busy_world(FOURTEEN, met=20)
    fit = any_fit(model, 2 if model == "probabilistic" else 1, (*FOURTEEN, "other"), seed=3)
    check_credits(duckdb_engine, world, world.write(tmp_path), [fit])


def test_counts_with_more_publishers_than_coalitions_have(
    duckdb_engine: Engine, tmp_path: Path
) -> None:
    world = busy_world(FOURTEEN, met=20)
    sets: list[CountSet] = [Coalitions(14), Pairs(14), Transitions(14, order=2)]
    spec = world.write(tmp_path)
    check_counts(duckdb_engine, world, spec, sets, [])
    sizes = {cell.bit_count() for each in plain_cells(world, spec, sets[0], []).values()
             for cell in (code // 2 for code in each)}  # fmt: skip
    assert sizes == {1, 2, 3, 4, 5, 6}


@pytest.mark.spark
def test_a_busy_world_on_spark(tmp_path: Path) -> None:
    """Three sets of counts with a holdout group, and all models, in one session."""
    world = busy_world()
    spec = world.write(tmp_path)
    sets = [Coalitions(3, True), Pairs(3, True, 2), Transitions(3, False, 2, 2)]
    with opened("spark") as engine:
        check_counts(engine, world, spec, sets, HELD_OUT)
        check_credits(engine, world, spec, [FITS[k] for k in (0, 1, 4, 5, 6)])


@pytest.mark.parametrize("name", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_removing_a_busy_user(name: str, tmp_path: Path) -> None:
    world = busy_world()
    gone = "both"
    fits, sets = (FITS, all_sets(3)) if name == "duckdb" else (FITS[:1], [Transitions(3)])
    both = []
    with opened(name) as engine:
        for each in (world, world.without(gone)):
            spec = each.write(tmp_path)
            events = kept(read_events(spec, engine))
            credits = credits_on(events, spec, fits)
            others = [[c for c in found if c.user_id != gone] for found in credits]
            cells = [cells_on(events, counts, spec) for counts in sets]
            both.append((others, [{u: c for u, c in f.items() if u != gone} for f in cells]))
    assert both[0] == both[1]
    assert {c.user_id for c in both[0][0][0]} >= {"quiet", "heavy", "buyer", "tied"}


# ---- bad input ----------------------------------------------------------------------------------


def long_journey() -> World:
    """1,000 touches of three publishers, one of which is in no list, then a conversion."""
    touches = [
        Impression("u", f"P-{k % 3 + 1}", BEFORE + 70 * HOUR + k * 1_000_000, k % 2 == 0)
        for k in range(1_200)
    ]
    bought = Conversion("u", "c", BEFORE + 80 * HOUR, BEFORE + 80 * HOUR)
    attribution = {"click_lookback": "4d", "view_lookback": "4d", "max_touches": 1_000}
    return World(touches, [bought], attribution=attribution)


BAD_WORLDS = {
    "empty tables": World([], []),
    "no conversions at all": replace(busy_world(), conversions=[]),
    "everybody converts": replace(
        busy_world(),
        conversions=[
            Conversion(f"x{k}", "c", BEFORE + 100 * HOUR, BEFORE + 100 * HOUR) for k in range(150)
        ],
    ),
    "nobody saw anything": replace(busy_world(), impressions=[]),
    "publishers never seen": busy_world(("P-8", "P-9")),
    "a journey of 1,000 touches": long_journey(),
}


@pytest.mark.parametrize("bad", sorted(BAD_WORLDS))
def test_bad_worlds(bad: str, duckdb_engine: Engine, tmp_path: Path) -> None:
    world = BAD_WORLDS[bad]
    spec = world.write(tmp_path)
    check_counts(duckdb_engine, world, spec, all_sets(3), [])
    fits = [fit.model_copy(update={"publishers": (*world.publishers, "other")}) for fit in FITS]
    check_credits(duckdb_engine, world, spec, fits)
