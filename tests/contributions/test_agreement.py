"""EngineContributions, ArrayContributions and the plain-Python reference answer alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from adsbpc.contributions import (
    ArrayContributions,
    Contributions,
    EngineContributions,
    reference,
)
from adsbpc.contributions.reference import Row
from adsbpc.engines import Engine, Relation
from adsbpc.errors import ContributionError
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import Layout
from tests.conftest import open_test_engine
from tests.contributions.rows import arrays_of
from tests.effort import examples

SLOTS = 3
LAYOUT = Layout.of_publishers(("P-1", "P-2", "other"))

weights = st.one_of(
    st.integers(1, 5),
    st.sampled_from([UNIT, UNIT // 2, UNIT // 3, 7 * UNIT]),
    st.integers(1, 30_000 * UNIT),
)
row_lists = st.lists(
    st.builds(
        Row,
        user=st.sampled_from(["a", "b", "c", "d"]),
        slot=st.integers(1, SLOTS),
        cell=st.integers(0, len(LAYOUT) - 1),
        weight=weights,
    ),
    max_size=25,
)
bounds = st.one_of(st.integers(1, 12), st.integers(1, 40_000 * UNIT), st.just(UNIT))


def arrays(rows: list[Row]) -> ArrayContributions:
    return arrays_of(rows, SLOTS, LAYOUT)


def on_engine(engine: Engine, rows: list[Row], *, in_table: bool = True) -> EngineContributions:
    relation = made(engine, rows)
    if not in_table:
        relation = Relation.of(f"SELECT * FROM {relation}")
    return EngineContributions(engine, relation, SLOTS, LAYOUT)


def made(engine: Engine, rows: list[Row]) -> Relation:
    """Rows of a user in the order of the list: their position stands for the time."""
    values = ", ".join(
        f"('{r.user}', {r.slot}, {1_000 + k // 2}, {k}, {r.cell}, {r.weight})"
        for k, r in enumerate(rows)
    )
    nothing = "('a', 1, 1, 1, 0, 1)"
    return engine.table(
        "made",
        "SELECT user_id, slot, time_us, conversion_number, cell_index,"
        " CAST(weight AS BIGINT) AS weight"
        f" FROM (VALUES {values or nothing}) AS made(user_id, slot, time_us,"
        " conversion_number, cell_index, weight)" + ("" if rows else " WHERE FALSE"),
    )


def check_all(found: Contributions, rows: list[Row], bound: int, edges: list[int]) -> None:
    count = len(LAYOUT)
    for slot in range(1, SLOTS + 1):
        assert found.histogram(slot, edges).tolist() == reference.histogram(rows, slot, edges)
        assert found.users_above(slot, bound) == reference.users_above(rows, slot, bound)
        assert found.totals(slot).tolist() == reference.totals(rows, slot, count)
        assert found.totals(slot, bound).tolist() == reference.totals(rows, slot, count, bound)


edge_lists = st.lists(st.integers(1, 10 * UNIT), min_size=1, max_size=5, unique=True).map(sorted)


@given(row_lists, bounds, edge_lists)
@settings(max_examples=examples(40, 400))
def test_arrays_agree_with_the_reference(rows: list[Row], bound: int, edges: list[int]) -> None:
    check_all(arrays(rows), rows, bound, edges)
    lifetime = reference.totals_lifetime(rows, SLOTS, len(LAYOUT), bound)
    assert arrays(rows).totals_lifetime(bound).tolist() == lifetime


@given(row_lists, bounds, edge_lists)
@settings(max_examples=examples(12, 100))
def test_duckdb_agrees_with_the_reference(
    duckdb_engine: Engine, rows: list[Row], bound: int, edges: list[int]
) -> None:
    for in_table in (True, False):
        check_all(on_engine(duckdb_engine, rows, in_table=in_table), rows, bound, edges)


@pytest.mark.every_change
@pytest.mark.spark
@given(row_lists, bounds, edge_lists)
@settings(
    max_examples=examples(1, 4),
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_spark_agrees_with_the_reference(rows: list[Row], bound: int, edges: list[int]) -> None:
    engine = open_test_engine("spark")
    try:
        check_all(on_engine(engine, rows), rows, bound, edges)
    finally:
        engine.close()


@given(row_lists, bounds)
def test_caps_hold_for_every_user(rows: list[Row], bound: int) -> None:
    """What one user adds to the totals never passes the bound, on a slot and over a lifetime."""
    for user in {row.user for row in rows}:
        alone = arrays([row for row in rows if row.user == user])
        for slot in range(1, SLOTS + 1):
            assert alone.totals(slot, bound).sum() <= bound
        assert alone.totals_lifetime(bound).sum() <= bound


@given(row_lists, bounds)
def test_a_user_changes_totals_by_exactly_its_own_part(rows: list[Row], bound: int) -> None:
    everybody = arrays(rows)
    for user in {row.user for row in rows}:
        alone = arrays([row for row in rows if row.user == user])
        others = arrays([row for row in rows if row.user != user])
        for slot in range(1, SLOTS + 1):
            parts = [each.totals(slot, bound) for each in (everybody, alone, others)]
            assert (parts[0] == parts[1] + parts[2]).all()


def test_the_first_conversions_are_kept_and_the_crossing_one_in_part() -> None:
    rows = [Row("a", 1, 1, UNIT), Row("a", 1, 0, UNIT), Row("a", 1, 2, UNIT)]
    assert arrays(rows).totals(1, UNIT + 7).tolist() == [7, UNIT, 0]


@pytest.mark.every_change
def test_two_campaigns_on_one_engine_keep_their_caps(engine: Engine) -> None:
    """Each keeps its own sums: another slot of another campaign must not lift a bound."""
    rows = made(engine, [Row("a", 1, 0, 100), Row("b", 2, 0, 1)])
    one, other = (EngineContributions(engine, rows, SLOTS, LAYOUT) for _ in range(2))
    assert one.totals(1, 10).tolist() == [10, 0, 0]
    assert other.totals(2, 10).tolist() == [1, 0, 0]
    assert one.totals(1, 10).tolist() == [10, 0, 0]
    assert one.users_above(1, 10) == 1


@pytest.mark.parametrize("in_table", [True, False])
def test_rows_without_weight_are_nobodys(in_table: bool, engine: Engine) -> None:
    rows = [Row("a", 1, 0, -100), Row("a", 1, 0, 110), Row("b", 1, 1, 0)]
    found = on_engine(engine, rows, in_table=in_table)
    assert found.totals(1, 5).tolist() == [5, 0, 0]
    assert found.histogram(1, [5]).tolist() == [0, 1]


@pytest.mark.every_change
def test_large_cells_do_not_wrap(engine: Engine) -> None:
    rows = [Row("a", 1, 0, 2**43), Row("a", 1, 1, 2**41)]
    for bound in (2**42, 3 * 2**40):
        expected = reference.totals(rows, 1, len(LAYOUT), bound)
        assert arrays(rows).totals(1, bound).tolist() == expected
        assert on_engine(engine, rows).totals(1, bound).tolist() == expected


BAD_CALLS: list[tuple[Callable[[Contributions], Any], str]] = [
    (lambda c: c.totals(0), "slot = 0"),
    (lambda c: c.totals(SLOTS + 1), "slot = 4"),
    (lambda c: c.totals(1, 0), "bound = 0"),
    (lambda c: c.totals(1, 1.5), "bound = 1.5"),  # type: ignore[arg-type]
    (lambda c: c.totals(1, -1), "bound = -1"),
    (lambda c: c.totals(1, 2**42 + 1), "bound = 4398046511105"),
    (lambda c: c.totals(1, True), "bound = True"),
    (lambda c: c.users_above(9, 1), "slot = 9"),
    (lambda c: c.histogram(1, []), "edges"),
    (lambda c: c.histogram(1, [0, 1]), "edges"),
    (lambda c: c.histogram(1, [2, 2]), "edges"),
]


@pytest.mark.parametrize(("call", "named"), BAD_CALLS)
def test_bad_questions_are_refused(
    call: Callable[[Contributions], Any], named: str, duckdb_engine: Engine
) -> None:
    for contributions in (arrays([]), on_engine(duckdb_engine, [])):
        with pytest.raises(ContributionError, match=named):
            call(contributions)


@pytest.mark.parametrize(
    ("slot", "cell", "weight", "named"),
    [(4, 0, 1, "slots run"), (1, 3, 1, "cell indices"), (1, 0, -1, "smallest weight"),
     (1, 0, 2**53, "2\\*\\*53")],
)  # fmt: skip
def test_bad_arrays_are_refused(slot: int, cell: int, weight: int, named: str) -> None:
    with pytest.raises(ContributionError, match=named):
        arrays([Row("a", slot, cell, weight)])


def test_arrays_of_different_length_are_refused() -> None:
    with pytest.raises(ContributionError, match="differ in length"):
        ArrayContributions(["a"], [1, 2], [0], [1], SLOTS, LAYOUT)


def test_a_cell_outside_the_layout_is_refused(duckdb_engine: Engine) -> None:
    with pytest.raises(ContributionError, match="cell_index = 7"):
        on_engine(duckdb_engine, [Row("a", 1, 7, 1)]).totals(1)
