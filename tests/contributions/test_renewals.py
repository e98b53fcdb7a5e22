"""The past let in again, under other multipliers: arrays and plain Python keep the same to the last
unit, and nobody's rows ever cost more than the limit."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from adsbpc.contributions import ArrayAccounts, CellIndex
from adsbpc.contributions.reference import ReferenceAccounts, Row
from adsbpc.engines import Engine
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import Layout
from adsbpc.model.layout import Dimension
from adsbpc.privacy import LIMIT, toeplitz
from tests.conftest import open_test_engine
from tests.contributions.renewing import Choice, choices, costs_by_rows, run, run_on_engine
from tests.contributions.rows import arrays_of

SLOTS = 5
STRATEGY = toeplitz(SLOTS, 0.3)
CELLS = Layout.of_publishers(("P-1", "P-2", "other"))
VIEWS = Layout((Dimension("publisher", ("P-1", "other")), Dimension("country", ("DE", "other"))),
               (1, 2, 3))  # fmt: skip

weights = st.one_of(
    st.integers(1, 5),
    st.sampled_from([UNIT, UNIT // 2, UNIT // 3, 7 * UNIT]),
    st.integers(1, 30_000 * UNIT),
    st.sampled_from([2**35, 2**36, 2**40]),
)


def row_lists(cells: int) -> st.SearchStrategy[list[Row]]:
    return st.lists(
        st.builds(
            Row,
            user=st.sampled_from("abcd"),
            slot=st.integers(1, SLOTS),
            cell=st.integers(0, cells - 1),
            weight=weights,
        ),
        max_size=30,
    )


def scripts(layout: Layout) -> st.SearchStrategy[list[Choice]]:
    each = choices(len(layout), is_sized=len(layout.views) == 1)
    return st.lists(each, min_size=SLOTS, max_size=SLOTS)


campaigns = st.sampled_from([CELLS, VIEWS]).flatmap(
    lambda layout: st.tuples(st.just(layout), row_lists(len(layout)), scripts(layout))
)


@settings(max_examples=300)
@given(campaign=campaigns)
def test_arrays_and_plain_python_agree(campaign: tuple[Layout, list[Row], list[Choice]]) -> None:
    layout, rows, chosen = campaign
    arrays = ArrayAccounts(CellIndex.of(arrays_of(rows, SLOTS, layout)))
    plain = ReferenceAccounts(rows, SLOTS, layout)
    assert run(arrays, STRATEGY, chosen) == run(plain, STRATEGY, chosen)


@settings(max_examples=300)
@given(campaign=campaigns)
def test_rows_never_cost_more_than_was_charged(
    campaign: tuple[Layout, list[Row], list[Choice]],
) -> None:
    layout, rows, chosen = campaign
    accounts = ReferenceAccounts(rows, SLOTS, layout)
    for exact, charged in costs_by_rows(accounts, STRATEGY, chosen, layout).values():
        assert exact <= charged <= LIMIT


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)
@given(campaign=campaigns)
def test_the_embedded_engine_and_plain_python_agree(
    campaign: tuple[Layout, list[Row], list[Choice]],
) -> None:
    layout, rows, chosen = campaign
    expected = run(ReferenceAccounts(rows, SLOTS, layout), STRATEGY, chosen)
    engine = open_test_engine("duckdb")
    with TemporaryDirectory() as folder:
        found = run_on_engine(engine, rows, STRATEGY, chosen, layout, Path(folder))
    engine.close()
    assert found == expected


def world(layout: Layout) -> list[Row]:
    """People around what a budget holds, some who come on every slot, one beyond all bounds."""
    rng = np.random.default_rng(5)
    worth = (UNIT, UNIT // 3, 5 * UNIT, 40 * UNIT)
    giant = [Row("giant", slot, 1, 2**36) for slot in (1, 2, 4)]
    return giant + [
        Row(f"u{user}", slot, int(rng.integers(len(layout))), worth[int(rng.integers(4))])
        for user in range(30)
        for slot in range(1, SLOTS + 1)
        if user % 3 == 0 or rng.random() < 0.4
    ]


CHOSEN = [
    Choice((2000, 2000, 2000), False, (64, 64, 64), 1),
    Choice((1500, 3000, 700), True, (30, 100, 20), 1),
    Choice((1500, 3000, 700), False, (30, 100, 20), 1),
    Choice((900, 900, 900), True, (64, 64, 64), 5),
    Choice((900, 900, 900), False, (64, 64, 64), 5),
]


def test_every_engine_renews_alike(engine: Engine, tmp_path: Path) -> None:
    rows = world(CELLS)
    expected = run(ReferenceAccounts(rows, SLOTS, CELLS), STRATEGY, CHOSEN)
    assert run_on_engine(engine, rows, STRATEGY, CHOSEN, CELLS, tmp_path) == expected


def test_every_engine_renews_columns_of_views_alike(engine: Engine, tmp_path: Path) -> None:
    rows = world(VIEWS)
    chosen = [Choice((each.multipliers[0],) * 4, each.is_renewed, (), each.grows)
              for each in CHOSEN]  # fmt: skip
    expected = run(ReferenceAccounts(rows, SLOTS, VIEWS), STRATEGY, chosen)
    assert run_on_engine(engine, rows, STRATEGY, chosen, VIEWS, tmp_path) == expected
