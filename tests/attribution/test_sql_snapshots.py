"""The SQL texts, and what sqlglot makes of them in other dialects: the door to warehouses.

Set ADSBPC_WRITE_SNAPSHOTS=1 to write the files anew, and read the difference before committing.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import sqlglot

from adsbpc.attribution import (
    AttributionModel,
    FirstTouch,
    Journeys,
    LastTouch,
    Position,
    TimeDecay,
    Uniform,
    credits_sql,
)

SNAPSHOTS = Path(__file__).parent / "snapshots"
DAY = 86_400_000_000
JOURNEYS = Journeys(click_lookback=30 * DAY, view_lookback=DAY, max_touches=50)
MODELS: dict[str, AttributionModel] = {
    "last_touch": LastTouch(),
    "first_touch": FirstTouch(),
    "uniform": Uniform(),
    "time_decay": TimeDecay(half_life=7 * DAY),
    "position": Position(0.4, 0.4),
}


def compare(name: str, text: str) -> None:
    path = SNAPSHOTS / name
    if os.environ.get("ADSBPC_WRITE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_text_of_each_model(name: str) -> None:
    compare(f"{name}.sql", credits_sql(MODELS[name], JOURNEYS, publisher_count=20) + "\n")


@pytest.mark.parametrize("dialect", ["bigquery", "postgres", "redshift", "snowflake", "trino"])
def test_other_dialects_can_be_written(dialect: str) -> None:
    text = credits_sql(Uniform(), JOURNEYS, publisher_count=20)
    (translated,) = sqlglot.transpile(text, read="duckdb", write=dialect, pretty=True)
    compare(f"uniform.{dialect}.sql", translated + "\n")
    assert sqlglot.parse_one(translated, read=dialect).find_all(sqlglot.exp.CTE)


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_every_step_has_a_name(name: str, dialect: str) -> None:
    """Both engines' grammars read the same text, and every sub-query of a step is a CTE."""
    text = credits_sql(MODELS[name], JOURNEYS, publisher_count=20)
    steps = [cte.alias for cte in sqlglot.parse_one(text, read=dialect).find_all(sqlglot.exp.CTE)]
    assert steps[0] == "busy_users"
    assert {"light_touches", "busy_candidates", "touches", "shares"} <= set(steps)
    assert len(steps) == len(set(steps))
