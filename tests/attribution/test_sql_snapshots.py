"""The SQL texts, and what sqlglot makes of them in other dialects: the door to warehouses.

Set ADSBPC_WRITE_SNAPSHOTS=1 to write the files anew, and read the difference before committing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import cast

import pytest
import sqlglot

from adsbpc.attribution import (
    AttributionModel,
    CountSet,
    DistinctPublishers,
    FirstTouch,
    FittedModel,
    Journeys,
    LastTouch,
    Position,
    TimeDecay,
    Uniform,
    credits_sql,
    fit_cells_sql,
    fit_users_sql,
    fitted_model,
)
from adsbpc.attribution.counts import Coalitions, Pairs, Transitions
from adsbpc.attribution.fitted import CoalitionUnits, LogisticEffects
from adsbpc.engines import Engine, Relation
from adsbpc.events import EventTables
from tests.attribution.fits import any_fit, names

SNAPSHOTS = Path(__file__).parent / "snapshots"
DAY = 86_400_000_000
JOURNEYS = Journeys(click_lookback=30 * DAY, view_lookback=DAY, max_touches=50)
MODELS: dict[str, AttributionModel] = {
    "last_touch": LastTouch(),
    "first_touch": FirstTouch(),
    "uniform": Uniform(),
    "time_decay": TimeDecay(half_life=7 * DAY),
    "position": Position(0.4, 0.4),
    "shapley_path": DistinctPublishers(),
    # The same text for incremental values and for Markov chains.
    "publisher_weights": fitted_model(any_fit("markov", 1, names(4), seed=1)),
    "probabilistic": fitted_model(any_fit("probabilistic", 2, names(4), seed=1)),
    "logistic": LogisticEffects(names(4), (-131_072, 65_536, 0, -65_536, 1)),
    "shapley": fitted_model(any_fit("shapley", 1, names(4), seed=1)),
    "shapley_in_parts": CoalitionUnits(names(14), ()),
    "shapley_ordered": fitted_model(any_fit("shapley_ordered", 1, names(4), seed=1)),
}
SETS: dict[str, CountSet] = {
    "coalitions": Coalitions(4),
    "coalitions_latest": Coalitions(14),
    "pairs": Pairs(4),
    "transitions": Transitions(4),
    "transitions_order_3": Transitions(4, order=3),
}
# Both kinds of journeys; of other models what is their own.
WHOLE = ("last_touch", "uniform")
STARTS_AT = 1_774_566_000_000_000

# Rows by names that are easy to read, on no engine.
EVENTS = EventTables(
    engine=cast("Engine", None),
    conversions=Relation("clean_conversions"),
    impressions=Relation("clean_impressions"),
    exposures=Relation("exposures"),
    publishers=Relation("publisher_names"),
    quarantine=Relation("quarantine"),
    checked={},
    publisher_count=20,
    text_users=True,
    arrivals=Relation("clean_conversions"),
)


def named(model: AttributionModel) -> dict[str, Relation]:
    return {name: Relation(f"{name}_table") for name in model.tables()}


def text_of(model: AttributionModel) -> str:
    return credits_sql(model, JOURNEYS, EVENTS, named(model))


def compare(name: str, text: str) -> None:
    path = SNAPSHOTS / name
    if os.environ.get("ADSBPC_WRITE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_text_of_each_model(name: str) -> None:
    model = MODELS[name]
    text = text_of(model)
    if name not in WHOLE:
        own = model.shares_sql(EVENTS, named(model))
        if isinstance(model, FittedModel) and name != "publisher_weights":
            own = model.units_sql(named(model))
        assert own in text
        text = own
    compare(f"{name}.sql", text + "\n")


def cells_text(counts: CountSet) -> str:
    steps = fit_cells_sql(counts, JOURNEYS, EVENTS, Relation("fit_users"))
    return f"WITH {steps}\nSELECT * FROM all_cells"


@pytest.mark.parametrize("name", sorted(SETS))
def test_the_text_of_each_set_of_counts(name: str) -> None:
    text = cells_text(SETS[name])
    if name != "coalitions":
        assert SETS[name].steps_sql() in text
        text = SETS[name].steps_sql()
    compare(f"fit_cells.{name}.sql", text + "\n")


@pytest.mark.parametrize("holdout", [False, True])
def test_the_text_of_users_to_count(holdout: bool) -> None:
    held_out = Relation("holdout_users") if holdout else None
    text = fit_users_sql(JOURNEYS, STARTS_AT, EVENTS, held_out)
    compare(f"fit_users{'.holdout' if holdout else ''}.sql", text + "\n")


def test_a_text_does_not_depend_on_what_was_fitted() -> None:
    """Parameters stand in tables, but for the intercept of the logistic model."""
    for model in ("markov", "probabilistic", "shapley", "shapley_ordered"):
        one, other = (text_of(fitted_model(any_fit(model, 1, names(4), seed))) for seed in (1, 2))
        assert one == other


DIALECTS = ["bigquery", "postgres", "redshift", "snowflake", "trino"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_other_dialects_can_be_written(dialect: str) -> None:
    text = text_of(Uniform())
    (translated,) = sqlglot.transpile(text, read="duckdb", write=dialect, pretty=True)
    compare(f"uniform.{dialect}.sql", translated + "\n")
    assert sqlglot.parse_one(translated, read=dialect).find_all(sqlglot.exp.CTE)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_texts_of_fits_can_be_written_in_other_dialects(dialect: str) -> None:
    texts = [
        *(text_of(model) for model in MODELS.values()),
        *(cells_text(counts) for counts in SETS.values()),
        fit_users_sql(JOURNEYS, STARTS_AT, EVENTS, Relation("holdout_users")),
    ]
    for text in texts:
        (translated,) = sqlglot.transpile(text, read="duckdb", write=dialect)
        before, after = (
            [step.alias for step in sqlglot.parse_one(each, read=read).find_all(sqlglot.exp.CTE)]
            for each, read in ((text, "duckdb"), (translated, dialect))
        )
        assert before == after


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_every_step_has_a_name(name: str, dialect: str) -> None:
    """Both engines' grammars read the same text, and every sub-query of a step is a CTE."""
    text = text_of(MODELS[name])
    steps = [cte.alias for cte in sqlglot.parse_one(text, read=dialect).find_all(sqlglot.exp.CTE)]
    assert steps[0] == "busy_users"
    assert {"light_touches", "busy_candidates", "touches", "shares"} <= set(steps)
    assert len(steps) == len(set(steps))


@pytest.mark.parametrize("name", sorted(SETS))
@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_every_step_of_counting_has_a_name(name: str, dialect: str) -> None:
    parsed = sqlglot.parse_one(cells_text(SETS[name]), read=dialect)
    steps = [cte.alias for cte in parsed.find_all(sqlglot.exp.CTE)]
    assert steps[:3] == ["fit_found", "fit_ranked", "fit_touches"]
    assert steps[-2:] == ["fit_cells", "all_cells"]
    assert len(steps) == len(set(steps))
