"""From credits to integer weights: rounding, the public list, the metric `value`."""

from __future__ import annotations

from dataclasses import replace
from math import floor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.attribution.reference import Conversion, Impression
from adsbpc.campaign import attribute, contributed
from adsbpc.contributions import contributions_sql
from adsbpc.engines import Engine
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import CampaignSpec, Layout, Measure
from adsbpc.model.layout import Dimension
from tests.attribution.test_engines_agree import BEFORE, HOUR
from tests.worlds import World

NOON = BEFORE + 80 * HOUR


def test_unlisted_publishers_are_counted_as_other(engine: Engine, tmp_path: Path) -> None:
    touched = ["P-1", "X", "Y", "P-2", "X"]
    world = World(
        [Impression("u", p, NOON - k * HOUR, True) for k, p in enumerate(touched, start=1)],
        [Conversion("u", "c", NOON, NOON)],
        attribution={"model": "uniform"},
    )
    spec = world.write(tmp_path)
    attributed = attribute(spec, engine)
    slot = spec.grid.slot_of(NOON)
    assert slot is not None
    (measure,) = spec.measures
    with contributed(attributed, measure) as contributions:
        assert contributions.layout.names(1) == (("P-1",), ("P-2",), ("other",))
        assert contributions.totals(slot).tolist() == [UNIT // 5, UNIT // 5, 3 * UNIT // 5]
    made = contributions_sql(measure, spec.index_columns, attributed.credits)
    rows = engine.rows(
        "rows", f"SELECT cell_index, weight FROM ({made}) AS made ORDER BY cell_index"
    )
    assert rows == [(0, UNIT // 5), (1, UNIT // 5), (2, 3 * UNIT // 5)]


INDEX = {"publisher": "publisher_index"}


def value_measure(cap: float) -> Measure:
    spec = CampaignSpec.model_validate(
        {
            "campaign": {
                "name": "v",
                "advertiser": "a",
                "start": "2026-03-01",
                "slots": 1,
                "publishers": ["P"],
                "metric": "value",
                "value_cap": cap,
            },
            "events": {"impressions": "i", "conversions": "c"},
        }
    )
    return spec.measures[0]


def weight_of(engine: Engine, units: int, value: float, cap: float) -> int:
    credits = engine.table(
        "credits",
        "SELECT 'u' AS user_id, 1 AS slot, CAST(1 AS BIGINT) AS time_us,"
        " CAST(1 AS BIGINT) AS conversion_number, 0 AS publisher_index,"
        f" CAST({value!r} AS DOUBLE) AS value, CAST({units} AS BIGINT) AS credit_units",
    )
    rows = engine.rows("weights", contributions_sql(value_measure(cap), INDEX, credits))
    return int(rows[0][-1]) if rows else 0


@given(
    units=st.integers(1, UNIT),
    value=st.floats(0, 1e6, allow_subnormal=False),
    cap=st.floats(0.01, 1e6),
)
def test_values_weigh_in_proportion_to_the_cap(
    duckdb_engine: Engine, units: int, value: float, cap: float
) -> None:
    weight = weight_of(duckdb_engine, units, value, cap)
    assert weight == floor(units * (min(value, cap) / cap))
    assert 0 <= weight <= units
    if value >= cap:
        assert weight == units


@pytest.mark.every_change
@pytest.mark.parametrize(
    ("value", "weight"), [(0.0, 0), (25.0, UNIT // 4), (100.0, UNIT), (1e9, UNIT)]
)
def test_values_on_every_engine(engine: Engine, value: float, weight: int) -> None:
    assert weight_of(engine, UNIT, value, 100.0) == weight


def test_what_a_unit_is_worth() -> None:
    assert value_measure(72_072.0).unit_value == 0.1


def test_nobody_has_a_square_that_stops_others(engine: Engine) -> None:
    """Somebody with four million conversions, whose square leaves 64 bits, beside somebody else."""
    thousands = ", ".join(f"({number})" for number in range(2_000))
    rows = engine.table(
        "conversions",
        f"""
SELECT 'much' AS user_id, CAST(1 + whole_div(CAST(a.n AS BIGINT), CAST(1000 AS BIGINT)) AS INT)
  AS slot, CAST(1 AS BIGINT) AS time_us, 0 AS arm_index
FROM (VALUES {thousands}) AS a (n) CROSS JOIN (VALUES {thousands}) AS b (n)
UNION ALL SELECT 'one', slot, CAST(1 AS BIGINT), 0 FROM (VALUES (1), (2), (2)) AS one (slot)""",
    )
    measure = replace(
        value_measure(1.0), metric="squared_conversions", value_cap=None,
        layout=Layout((Dimension("arm", ("treatment", "control", "other")),), (0, 1)),
    )  # fmt: skip
    made = contributions_sql(measure, {"arm": "arm_index"}, rows)
    found = engine.rows("squares", f"SELECT user_id, slot, weight FROM ({made}) AS made")
    most = 2**50
    assert sorted(found) == [
        ("much", 1, most), ("much", 2, 0), ("one", 1, UNIT), ("one", 2, 8 * UNIT),
    ]  # fmt: skip
