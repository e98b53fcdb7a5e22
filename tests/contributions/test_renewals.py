"""The past let in again, under other multipliers: arrays and plain Python keep the same to the last
unit, and nobody's rows ever cost more than the limit."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from adsbpc.contributions import ArrayAccounts, CellIndex
from adsbpc.contributions.reference import ReferenceAccounts, Row
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import Layout
from adsbpc.model.layout import Dimension
from adsbpc.privacy import LIMIT, toeplitz
from tests.contributions.renewing import Choice, choices, costs_by_rows, run
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
