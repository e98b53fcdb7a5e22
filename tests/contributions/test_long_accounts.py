"""Personal budgets of long campaigns: both engines, arrays and plain Python keep the same, to the
last unit; never cheaper than accounts that know all earlier slots, and hardly dearer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from adsbpc.contributions import CellIndex
from adsbpc.contributions.account_books import USERS, Books
from adsbpc.contributions.engine_accounts import EngineAccounts
from adsbpc.contributions.long_accounts import LongEngineAccounts
from adsbpc.contributions.long_arrays import LongArrayAccounts
from adsbpc.contributions.long_books import SUMS, LongBooks
from adsbpc.contributions.reference import LongReferenceAccounts, ReferenceAccounts, Row
from adsbpc.engines import Engine
from adsbpc.errors import ContributionError
from adsbpc.mechanisms.by_slots.decay_fit import Decays, on_long_grid
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import Layout
from adsbpc.model.layout import Dimension
from adsbpc.privacy import LIMIT, Terms
from adsbpc.privacy.decays import BITS, ONE_LONG, DecayingStrategy
from tests.conftest import open_test_engine
from tests.contributions.renewing import rows_table
from tests.contributions.rows import arrays_of

SLOTS = 6
# Slots with books of everybody; the others have what changed since.
WHOLE = 2, 4
PUBLISHERS = Layout.of_publishers(("P-1", "P-2", "other"))
VIEWS = Layout(
    (Dimension("publisher", ("P-1", "other")), Dimension("device", ("tv", "other"))), (2, 1, 3)
)
ONCE = Layout((Dimension("publisher", ("P-1", "other")),), (1, 1), once=True)
LAYOUTS = (PUBLISHERS, VIEWS, ONCE)
STRATEGY = DecayingStrategy(
    SLOTS,
    5000,
    tuple(int(weight * 5000 * 2**BITS) for weight in (0.3, 0.15)),
    tuple(int(rate * 2**BITS) for rate in (0.41, 0.97)),
)
EDGES = tuple(int((0.52 * 2 ** (k / 2) * ONE_LONG * UNIT) ** 2) for k in range(30))

weights = st.one_of(
    st.integers(1, 5),
    st.sampled_from([UNIT, UNIT // 2, UNIT // 3, 7 * UNIT]),
    st.integers(1, 30_000 * UNIT),
    st.sampled_from([2**29, 2**35, 2**36, 2**40]),
)
row_lists = st.lists(
    st.builds(
        Row,
        user=st.sampled_from(["a", "b", "c", "A ", "ä"]),
        slot=st.integers(1, SLOTS),
        cell=st.integers(0, 2),
        weight=weights,
    ),
    max_size=30,
)
chosen_lists = st.lists(st.sampled_from([1, 40, 900, 9000, 2**20]), min_size=SLOTS, max_size=SLOTS)


def terms_of(slot: int, multiplier: int, strategy: DecayingStrategy = STRATEGY) -> Terms:
    limit = LIMIT * slot // strategy.slots
    return Terms(
        strategy.crossing(slot),
        multiplier, max(1, multiplier // 3), limit * 19 // 20, limit // 20,
    )  # fmt: skip


def run(accounts: Any, chosen: Sequence[int]) -> list[list[int]]:
    """Histograms of needs and totals, slot by slot."""
    found = []
    for slot, multiplier in enumerate(chosen, start=1):
        terms = terms_of(slot, multiplier)
        found.append([int(count) for count in accounts.needs(terms.costs, EDGES)])
        found.append(list(accounts.admit(terms)))
    return found


def run_on_engine(
    engine: Engine, rows: Sequence[Row], chosen: Sequence[int], folder: Path, layout: Layout
) -> list[list[int]]:
    """A new object a slot, as in releases: all that lasts is in the files of the last slot that was
    whole, of which there are two, and of the slot before."""
    asked, found, whole, recent = rows_table(engine, rows), [], None, None
    for slot, multiplier in enumerate(chosen, start=1):
        new = folder / str(slot)
        new.mkdir()
        merges = slot in WHOLE
        books = LongBooks(slot, whole, recent, new, merges)
        accounts = LongEngineAccounts(engine, asked, layout, books, STRATEGY)
        terms = terms_of(slot, multiplier)
        found.append([int(count) for count in accounts.needs(terms.costs, EDGES)])
        found.append(accounts.admit(terms))
        whole, recent = (new, None) if merges else (whole, new)
    return found


def in_plain_python(
    rows: Sequence[Row], layout: Layout, slots: int = SLOTS
) -> LongReferenceAccounts:
    return LongReferenceAccounts(rows, slots, layout)


@given(row_lists, chosen_lists, st.sampled_from(LAYOUTS))
@settings(max_examples=150, deadline=None)
def test_arrays_and_plain_python_agree(rows: list[Row], chosen: list[int], layout: Layout) -> None:
    arrays = LongArrayAccounts(CellIndex.of(arrays_of(rows, SLOTS, layout)))
    assert run(arrays, chosen) == run(in_plain_python(rows, layout), chosen)


@given(row_lists, chosen_lists, st.sampled_from(LAYOUTS))
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)
def test_the_embedded_engine_and_plain_python_agree(
    rows: list[Row], chosen: list[int], layout: Layout
) -> None:
    reference = in_plain_python(rows, layout)
    expected = run(reference, chosen)
    engine = open_test_engine("duckdb")
    with TemporaryDirectory() as folder:
        assert run_on_engine(engine, rows, chosen, Path(folder), layout) == expected
        assert books_of(engine, Path(folder), layout) == books_in_plain_python(reference, layout)
    engine.close()


def books_in_plain_python(accounts: LongReferenceAccounts, layout: Layout) -> dict[Any, Any]:
    """By name and cell the running sums, and by name what is spent."""
    found: dict[Any, Any] = {}
    for name, user in accounts.users.items():
        if not user.wished.cells:
            continue
        found[name] = tuple(user.account.spent[:2])
        for cell in user.wished.cells.keys() | user.account.sums.cells.keys():
            nothing = (0, [0] * len(STRATEGY.rates))
            asked = user.wished.cells.get(cell, nothing)
            moved = user.account.sums.cells.get(cell, nothing)
            found[name, cell] = (asked[0], *asked[1], moved[0], *moved[1])
    return found


def books_of(engine: Engine, folder: Path, layout: Layout) -> dict[Any, Any]:
    """Rows of the last whole books, and those that replaced them since."""
    older, newer = (_rows_of(engine, folder / str(slot)) for slot in (WHOLE[-1], SLOTS))
    return older | newer


def _rows_of(engine: Engine, last: Path) -> dict[Any, Any]:
    wide = [f"{name}_{half}" for name in ("spent", "cut_spent") for half in ("high", "low")]
    users = engine.read_files(
        "users", "parquet", [str(last / USERS)], None, ["user_id", "number", *wide]
    )
    sums = [f"{name}_{k}" for name in ("asked", "moved") for k in (1, 2)]
    columns = ["cell", "asked_slot", *sums[:2], "moved_slot", *sums[2:]]
    cells = engine.read_files("sums", "parquet", [str(last / SUMS)], None, columns)
    listed = engine.rows("books", f"SELECT user_id, number, {', '.join(wide)} FROM {users}")
    names = {number: name for name, number, *_ in listed}
    found: dict[Any, Any] = {
        name: (high * 2**53 + low, cut_high * 2**53 + cut_low)
        for name, _, high, low, cut_high, cut_low in listed
    }
    for cell, *values in engine.rows("sums", f"SELECT {', '.join(columns)} FROM {cells}"):
        found[names[cell // 4096], cell % 4096] = tuple(values)
    return found


def world(users: int = 40, seed: int = 1, slots: int = SLOTS) -> list[Row]:
    """Users around what a budget holds, a few far above, some fractions of conversions, and one
    whose cells are as large as they come."""
    rng = np.random.default_rng(seed)
    giant = [Row("giant", slot, 1, 2**40) for slot in (1, 2, 4)]
    return giant + [
        Row(f"u{user}", int(slot), int(publisher), int(weight))
        for user in range(users)
        for slot, publisher, weight in zip(
            rng.integers(1, slots + 1, 12),
            rng.integers(0, 3, 12),
            rng.choice([UNIT, UNIT // 3, 5 * UNIT, 40 * UNIT], 12, p=[0.6, 0.2, 0.15, 0.05]),
            strict=True,
        )
        if user % 7 or slot > 2
    ]


CHOSEN = [400, 300, 300, 200, 200, 150]


@pytest.mark.parametrize("layout", LAYOUTS[:2], ids=["publishers", "views"])
def test_a_larger_world_is_the_same_everywhere(
    engine: Engine, layout: Layout, tmp_path: Path
) -> None:
    rows = world()
    reference = in_plain_python(rows, layout)
    expected = run(reference, CHOSEN)
    assert any(totals[-1] for totals in expected[1::2]), "nothing was cut: this tests little"
    assert run_on_engine(engine, rows, CHOSEN, tmp_path, layout) == expected
    books = books_of(engine, tmp_path, layout)
    assert books == books_in_plain_python(reference, layout)
    changed = _rows_of(engine, tmp_path / str(SLOTS))
    assert 0 < len(changed) < len(books), "all books are whole: this tests little"
    assert run(LongArrayAccounts(CellIndex.of(arrays_of(rows, SLOTS, layout))), CHOSEN) == expected


def test_a_user_adds_exactly_what_was_admitted_of_it_and_moves_nobody_else() -> None:
    rows = world()
    everybody = in_plain_python(rows, PUBLISHERS)
    together = run(everybody, CHOSEN)
    for name in ("u0", "u3", "u39"):
        alone = run(in_plain_python([r for r in rows if r.user == name], PUBLISHERS), CHOSEN)
        others = in_plain_python([r for r in rows if r.user != name], PUBLISHERS)
        without = run(others, CHOSEN)
        for all_of_them, mine, theirs in zip(together, alone, without, strict=True):
            assert all_of_them == [a + b for a, b in zip(mine, theirs, strict=True)]
        for user, books in others.users.items():
            assert books == everybody.users[user]


def test_books_are_never_cheaper_than_dense_ones_and_hardly_dearer() -> None:
    """The same people, none of whom is cut, under one strategy of 200 slots: what running sums
    charge against G of the same entries, for everybody. Somebody comes on every slot."""
    slots = 200
    # Near the square root.
    decays = Decays(np.array([0.277, 0.146, 0.068]), np.array([0.657, 0.958, 0.9975]))
    strategy = on_long_grid(decays, slots)
    rng = np.random.default_rng(3)
    rows = [Row("daily", slot, 0, UNIT) for slot in range(1, slots + 1)] + [
        Row(f"u{user}", int(slot), int(rng.integers(0, 3)), UNIT)
        for user in range(30)
        for slot in rng.integers(1, slots + 1, 1 + 2 * user)
    ]
    entries = np.array(strategy.entries)
    ours, dense = (
        in_plain_python(rows, PUBLISHERS, slots),
        ReferenceAccounts(rows, slots, PUBLISHERS),
    )
    for slot in range(1, slots + 1):
        multiplier, most = 8, LIMIT * 19 // 20
        ours.admit(Terms(strategy.crossing(slot), multiplier, 2, most, LIMIT // 20))
        later = entries[: slots - slot + 1]
        gram = tuple(int(later @ entries[g : g + len(later)]) for g in range(slot - 1, -1, -1))
        dense.admit(Terms(gram, multiplier, 2, most, LIMIT // 20))
    for name, user in dense.users.items():
        exact, charged = user.account.spent, ours.users[name].account.spent
        assert exact[1] == charged[1] == 0, "somebody was cut: this compares something else"
        assert exact[0] <= charged[0] <= exact[0] * 1.01


def test_books_of_another_kind_are_refused(engine: Engine, tmp_path: Path) -> None:
    rows = rows_table(engine, world(2))
    long = LongEngineAccounts(
        engine, rows, PUBLISHERS, LongBooks(1, None, None, tmp_path), STRATEGY
    )
    with pytest.raises(ContributionError, match="long campaign"):
        long.open((1,))
    with pytest.raises(ContributionError, match="slot 2"):
        long.open(STRATEGY.crossing(2))
    dense = EngineAccounts(engine, rows, SLOTS, PUBLISHERS, Books((), tmp_path))
    with pytest.raises(ContributionError, match="long campaign"):
        dense.open(STRATEGY.crossing(1))
