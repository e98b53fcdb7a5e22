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
from adsbpc.privacy import LIMIT, identity, toeplitz
from tests.conftest import open_test_engine
from tests.contributions.renewing import Choice, choices, costs_by_rows, run, run_on_engine
from tests.contributions.rows import arrays_of

SLOTS = 5
STRATEGY = toeplitz(SLOTS, 0.3)
CELLS = Layout.of_publishers(("P-1", "P-2", "other"))
VIEWS = Layout((Dimension("publisher", ("P-1", "other")), Dimension("country", ("DE", "other"))),
               (1, 2, 3))  # fmt: skip
ONCE = Layout((Dimension("publisher", ("P-1", "P-2", "other")),), (1, 1), once=True)

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


campaigns = st.sampled_from([CELLS, VIEWS, ONCE]).flatmap(
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
    Choice((1500, 3000, 700), False, (30, 100, 20), 1, gathers=True),
    Choice((900, 900, 900), True, (64, 64, 64), 5, gathers=True),
    Choice((900, 900, 900), False, (64, 64, 64), 5),
]


def test_every_engine_renews_alike(engine: Engine, tmp_path: Path) -> None:
    rows = world(CELLS)
    expected = run(ReferenceAccounts(rows, SLOTS, CELLS), STRATEGY, CHOSEN)
    assert run_on_engine(engine, rows, STRATEGY, CHOSEN, CELLS, tmp_path) == expected


def test_a_past_that_costs_nothing_more_is_let_in_whole(engine: Engine, tmp_path: Path) -> None:
    """Where no coming row holds it, also of somebody who has no room left below the pace."""
    strategy = identity(SLOTS)
    rows = [Row("heavy", 3, 0, 2**30), Row("heavy", 4, 1, UNIT), Row("light", 1, 1, UNIT)]
    chosen = [Choice((900,) * 3, slot == 4, (), 5) for slot in range(1, SLOTS + 1)]
    accounts = ReferenceAccounts(rows, SLOTS, CELLS)
    expected = run(accounts, strategy, chosen)
    assert accounts.users["heavy"].account.fixed[0] > LIMIT // 2, "this tests something else"
    assert run_on_engine(engine, rows, strategy, chosen, CELLS, tmp_path) == expected


def test_every_engine_counts_people_once(engine: Engine, tmp_path: Path) -> None:
    rows = [Row(each.user, each.slot, each.cell, UNIT) for each in world(ONCE)]
    chosen = [Choice((200_000 // (slot + 1),) * len(ONCE), slot in (1, 3), (), 1)
              for slot in range(SLOTS)]  # fmt: skip
    expected = run(ReferenceAccounts(rows, SLOTS, ONCE), STRATEGY, chosen)
    assert run_on_engine(engine, rows, STRATEGY, chosen, ONCE, tmp_path) == expected


def test_every_engine_renews_columns_of_views_alike(engine: Engine, tmp_path: Path) -> None:
    rows = world(VIEWS)
    chosen = [Choice((each.multipliers[0],) * 4, each.is_renewed, (), each.grows)
              for each in CHOSEN]  # fmt: skip
    expected = run(ReferenceAccounts(rows, SLOTS, VIEWS), STRATEGY, chosen)
    assert run_on_engine(engine, rows, STRATEGY, chosen, VIEWS, tmp_path) == expected


@settings(max_examples=100)
@given(campaign=campaigns)
def test_people_stay_apart(campaign: tuple[Layout, list[Row], list[Choice]]) -> None:
    """Without somebody, everybody else's books are the same."""
    layout, rows, chosen = campaign
    everybody = ReferenceAccounts(rows, SLOTS, layout)
    run(everybody, STRATEGY, chosen)
    others = ReferenceAccounts([row for row in rows if row.user != "a"], SLOTS, layout)
    run(others, STRATEGY, chosen)
    for name, user in others.users.items():
        assert user.account == everybody.users[name].account
