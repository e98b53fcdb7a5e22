"""The SQL text that puts credits on the grid, and what sqlglot makes of it in other dialects."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlglot

from adsbpc.contributions import contributions_sql
from adsbpc.engines import Relation
from adsbpc.model import Layout
from tests.attribution.test_sql_snapshots import compare
from tests.contributions.test_grid import INDEX, value_measure
from tests.mechanisms.campaigns import spec_of

CREDITS = Relation("credits")


def test_the_text_of_each_metric() -> None:
    (conversions,) = spec_of(3).measures
    (publisher,) = conversions.layout.dimensions
    people = Layout((publisher,), (1, 1), once=True)
    for name, measure in (
        ("conversions", conversions),
        ("value", value_measure(50.0)),
        ("clicks", replace(conversions, metric="clicks")),
        ("reach", replace(conversions, metric="reach", layout=people)),
    ):
        compare(f"contributions.{name}.sql", contributions_sql(measure, INDEX, CREDITS) + "\n")


@pytest.mark.parametrize("dialect", ["bigquery", "postgres", "redshift", "snowflake", "trino"])
def test_other_dialects_can_be_written(dialect: str) -> None:
    text = contributions_sql(value_measure(50.0), INDEX, CREDITS)
    (translated,) = sqlglot.transpile(text, read="duckdb", write=dialect, pretty=True)
    compare(f"contributions.value.{dialect}.sql", translated + "\n")
