"""Views in personal budgets: both engines, arrays and plain Python keep the same, to the last unit,
and what anybody moves all columns by stays within the limit."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from adsbpc.contributions import ArrayAccounts, CellIndex
from adsbpc.contributions.reference import ReferenceAccounts, Row, taken_apart
from adsbpc.engines import Engine
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import Dimension, Layout
from adsbpc.privacy import LIMIT, Strategy, cost
from tests.conftest import open_test_engine
from tests.contributions.rows import arrays_of
from tests.contributions.test_accounts import (
    CHOSEN,
    SLOTS,
    STRATEGY,
    assert_exact_at_the_widest,
    in_arrays,
    multipliers,
    run,
    run_on_engine,
    weights,
)
from tests.effort import first

PUBLISHER = Dimension("publisher", ("P-1", "P-2", "other"))
COUNTRY = Dimension("country", ("DE", "other"))
DEVICE = Dimension("device", ("phone", "desk", "other"))
LAYOUTS = [
    Layout((PUBLISHER,), (1, 3)),
    Layout((PUBLISHER, COUNTRY), (1, 3, 3)),
    Layout((PUBLISHER, COUNTRY), (2, 0, 1)),
    Layout((PUBLISHER, COUNTRY, DEVICE), (8, 8, 0, 8)),
    Layout((PUBLISHER,), (1, 1), once=True),
    Layout((PUBLISHER, COUNTRY), (1, 1, 1), once=True),
]


@st.composite
def campaigns(draw: st.DrawFn) -> tuple[Layout, list[Row]]:
    layout = draw(st.sampled_from(LAYOUTS))
    row = st.builds(
        Row,
        user=st.sampled_from(["a", "b", "c", "d"]),
        slot=st.integers(1, SLOTS),
        cell=st.integers(0, len(layout) - 1),
        weight=weights,
    )
    return layout, draw(st.lists(row, max_size=30))


@given(campaigns(), multipliers)
@settings(max_examples=150)
def test_arrays_and_plain_python_agree(
    campaign: tuple[Layout, list[Row]], chosen: list[int]
) -> None:
    layout, rows = campaign
    expected = run(ReferenceAccounts(rows, SLOTS, layout), chosen)
    assert run(in_arrays(rows, layout), chosen) == expected


@given(campaigns(), multipliers)
@settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)
def test_the_embedded_engine_and_plain_python_agree(
    campaign: tuple[Layout, list[Row]], chosen: list[int]
) -> None:
    layout, rows = campaign
    expected = run(ReferenceAccounts(rows, SLOTS, layout), chosen)
    engine = open_test_engine("duckdb")
    with TemporaryDirectory() as folder:
        assert run_on_engine(engine, rows, chosen, Path(folder), layout) == expected
    engine.close()


@given(campaigns(), multipliers)
@settings(max_examples=60)
def test_nobody_moves_the_columns_by_more_than_the_limit(
    campaign: tuple[Layout, list[Row]], chosen: list[int]
) -> None:
    """|| B H m e ||^2 from the rows, with the columns written out."""
    layout, rows = campaign
    accounts = ReferenceAccounts(rows, SLOTS, layout)
    run(accounts, chosen)
    for user in accounts.users.values():
        exact = cost(STRATEGY, layout, user.account.moved)
        assert exact == sum(user.account.spent) <= LIMIT
        assert exact == by_columns(STRATEGY, layout, user.account.moved)


def by_columns(strategy: Strategy, layout: Layout, moved: dict[tuple[int, int], int]) -> int:
    """The same with a dense row of every column for every slot."""
    slots = range(1, strategy.slots + 1)
    cells = range(len(layout))
    shifts = [
        [
            *layout.in_columns([moved.get((slot, cell), 0) for cell in cells]),
            moved.get((slot, len(layout)), 0),
        ]
        for slot in slots
    ]
    return sum(
        sum(entry * shifts[s][column] for s, entry in enumerate(row)) ** 2
        for row in strategy.rows
        for column in range(layout.columns + 1)
    )


def world(layout: Layout, users: int = 40) -> list[Row]:
    """People around what a budget holds, a few far above, and one as large as they come."""
    rng = np.random.default_rng(3)
    giant = [Row("giant", slot, 1, 2**40) for slot in (1, 2, 4)]
    return giant + [
        Row(f"u{user}", int(slot), int(cell), int(weight))
        for user in range(users)
        for slot, cell, weight in zip(
            rng.integers(1, SLOTS + 1, 12),
            rng.integers(0, len(layout), 12),
            rng.choice([UNIT, UNIT // 3, 5 * UNIT, 40 * UNIT], 12, p=[0.6, 0.2, 0.15, 0.05]),
            strict=True,
        )
    ]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: f"{layout.weights}{layout.once}")
def test_a_larger_world_is_the_same_everywhere(
    engine: Engine, tmp_path: Path, layout: Layout
) -> None:
    # Who is counted once costs little, and is cut under large multipliers only.
    factor = 8 if layout.once else 0.25
    rows, chosen = world(layout), [int(factor * multiplier) for multiplier in CHOSEN]
    expected = run(ReferenceAccounts(rows, SLOTS, layout), chosen)
    assert any(totals[-1] for totals in expected[1::2]), "nothing was cut: this tests little"
    assert run_on_engine(engine, rows, chosen, tmp_path, layout) == expected
    assert run(in_arrays(rows, layout), chosen) == expected


@pytest.mark.parametrize("weights", [(1, 8, 8), (2, 0, 1)])
def test_sums_that_are_cells_of_their_own_are_the_same_everywhere(
    engine: Engine, tmp_path: Path, weights: tuple[int, ...]
) -> None:
    """Rows of finest cells, taken apart by SQL, on arrays and in plain Python."""
    layout = Layout((PUBLISHER, COUNTRY), weights)
    apart, rows = layout.taken_apart(), world(layout)
    chosen = [multiplier // 4 for multiplier in CHOSEN]
    plain = ReferenceAccounts(taken_apart(rows, apart), SLOTS, apart)
    expected = run(plain, chosen)
    assert any(totals[-1] for totals in expected[1::2]), "nothing was cut: this tests little"
    index = CellIndex.of(arrays_of(rows, SLOTS, layout), apart)
    assert run(ArrayAccounts(index), chosen) == expected
    assert run_on_engine(engine, rows, chosen, tmp_path, apart) == expected
    for user in plain.users.values():
        exact = cost(STRATEGY, apart, user.account.moved)
        assert exact == sum(user.account.spent) <= LIMIT


@pytest.mark.parametrize("entry", first(1, [2**12 - 1, 1]))
def test_the_widest_numbers_stay_exact(entry: int, tmp_path: Path) -> None:
    lists = (("publisher", 200), ("country", 100))
    dimensions = tuple(Dimension(name, tuple(map(str, range(count)))) for name, count in lists)
    assert_exact_at_the_widest(entry, Layout(dimensions, (8, 8, 8)), tmp_path)
