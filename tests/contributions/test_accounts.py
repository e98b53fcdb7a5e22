"""Personal budgets: both engines, arrays and plain Python keep the same, to the last unit; and
nobody's accounts depend on anybody else."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from math import isqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from adsbpc.contributions import (
    Accounts,
    ArrayAccounts,
    Books,
    CellIndex,
    EngineAccounts,
)
from adsbpc.contributions.account_books import CELLS, CUT, NAMES, USERS
from adsbpc.contributions.admission_sql import AdmissionSql
from adsbpc.contributions.reference import ReferenceAccounts, Row
from adsbpc.engines import Engine
from adsbpc.errors import ContributionError, PrivacyError
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import Layout
from adsbpc.privacy import LIMIT, Strategy, Terms, largest_cell, square_root, toeplitz
from adsbpc.privacy.strategies import ONE
from tests.conftest import open_test_engine
from tests.contributions.renewing import rows_table
from tests.contributions.rows import arrays_of

SLOTS = 4
LAYOUT = Layout.of_publishers(("P-1", "P-2", "other"))
STRATEGY = toeplitz(SLOTS, 0.3)
EDGES = tuple(int((0.52 * 2 ** (k / 2) * ONE * UNIT) ** 2) for k in range(30))

weights = st.one_of(
    st.integers(1, 5),
    st.sampled_from([UNIT, UNIT // 2, UNIT // 3, 7 * UNIT]),
    st.integers(1, 30_000 * UNIT),
    st.sampled_from([2**35, 2**36, 2**40]),
)
row_lists = st.lists(
    st.builds(
        Row,
        user=st.sampled_from(["a", "b", "c", "d", "A ", "ä"]),
        slot=st.integers(1, SLOTS),
        cell=st.integers(0, len(LAYOUT) - 1),
        weight=weights,
    ),
    max_size=30,
)
multipliers = st.lists(st.sampled_from([1, 40, 900, 9000, 2**20]), min_size=SLOTS, max_size=SLOTS)


def terms_of(slot: int, multiplier: int, strategy: Strategy = STRATEGY) -> Terms:
    limit = LIMIT * slot // strategy.slots
    return Terms(
        tuple(map(int, strategy.gram[slot - 1, :slot])),
        multiplier, max(1, multiplier // 3), limit * 19 // 20, limit // 20,
    )  # fmt: skip


def in_arrays(rows: Sequence[Row], layout: Layout = LAYOUT) -> ArrayAccounts:
    return ArrayAccounts(CellIndex.of(arrays_of(rows, SLOTS, layout)))


def run(accounts: Accounts | ReferenceAccounts, chosen: Sequence[int]) -> list[list[int]]:
    """Histograms of needs and totals, slot by slot."""
    found = []
    for slot, multiplier in enumerate(chosen, start=1):
        terms = terms_of(slot, multiplier)
        found.append([int(count) for count in accounts.needs(terms.costs, EDGES)])
        found.append(list(accounts.admit(terms)))
    return found


def run_on_engine(
    engine: Engine, rows: Sequence[Row], chosen: Sequence[int], folder: Path,
    layout: Layout = LAYOUT,
) -> list[list[int]]:  # fmt: skip
    """A new object a slot, as in releases: all that lasts is in the files."""
    asked = rows_table(engine, rows)
    found, earlier = [], tuple[Path, ...]()
    for slot, multiplier in enumerate(chosen, start=1):
        new = folder / str(slot)
        new.mkdir()
        accounts = EngineAccounts(engine, asked, SLOTS, layout, Books(earlier, new))
        terms = terms_of(slot, multiplier)
        found.append([int(count) for count in accounts.needs(terms.costs, EDGES)])
        found.append(accounts.admit(terms))
        earlier += (new,)
    return found


@given(row_lists, multipliers)
@settings(max_examples=150, deadline=None)
def test_arrays_and_plain_python_agree(rows: list[Row], chosen: list[int]) -> None:
    assert run(in_arrays(rows), chosen) == run(ReferenceAccounts(rows, SLOTS, LAYOUT), chosen)


@given(row_lists, multipliers)
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)
def test_the_embedded_engine_and_plain_python_agree(rows: list[Row], chosen: list[int]) -> None:
    expected = run(ReferenceAccounts(rows, SLOTS, LAYOUT), chosen)
    engine = open_test_engine("duckdb")
    with TemporaryDirectory() as folder:
        assert run_on_engine(engine, rows, chosen, Path(folder)) == expected
    engine.close()


def world(users: int = 40, seed: int = 1) -> list[Row]:
    """Users around what a budget holds, a few far above, some fractions of conversions, and one
    whose cells are as large as they come."""
    rng = np.random.default_rng(seed)
    giant = [Row("giant", slot, 1, 2**40) for slot in (1, 2, 4)]
    return giant + [
        Row(f"u{user}", int(slot), int(publisher), int(weight))
        for user in range(users)
        for slot, publisher, weight in zip(
            rng.integers(1, SLOTS + 1, 12),
            rng.integers(0, len(LAYOUT), 12),
            rng.choice([UNIT, UNIT // 3, 5 * UNIT, 40 * UNIT], 12, p=[0.6, 0.2, 0.15, 0.05]),
            strict=True,
        )
        if user % 7 or slot > 2
    ]


CHOSEN = [3000, 2000, 2000, 1000]


def test_a_larger_world_is_the_same_everywhere(engine: Engine, tmp_path: Path) -> None:
    rows = world()
    expected = run(ReferenceAccounts(rows, SLOTS, LAYOUT), CHOSEN)
    assert any(totals[-1] for totals in expected[1::2]), "nothing was cut: this tests little"
    assert run_on_engine(engine, rows, CHOSEN, tmp_path) == expected
    assert run(in_arrays(rows), CHOSEN) == expected


def test_a_user_adds_exactly_what_was_admitted_of_it_and_moves_nobody_else(tmp_path: Path) -> None:
    """Totals with a user minus totals without are that user's, slot by slot."""
    rows = world()
    everybody = ReferenceAccounts(rows, SLOTS, LAYOUT)
    together = run(everybody, CHOSEN)
    for name in ("u0", "u3", "u39"):
        alone = run(ReferenceAccounts([r for r in rows if r.user == name], SLOTS, LAYOUT), CHOSEN)
        others = ReferenceAccounts([r for r in rows if r.user != name], SLOTS, LAYOUT)
        without = run(others, CHOSEN)
        for all_of_them, mine, theirs in zip(together, alone, without, strict=True):
            assert all_of_them == [a + b for a, b in zip(mine, theirs, strict=True)]
        for user, books in others.users.items():
            assert books == everybody.users[user]
        assert run(in_arrays([r for r in rows if r.user != name]), CHOSEN) == without


def test_removing_a_user_leaves_all_other_books_as_they_were(
    engine: Engine, tmp_path: Path
) -> None:
    """Numbers are given anew, so books are compared by name."""
    rows = world(12)
    books = []
    for name, part in (("all", rows), ("less", [r for r in rows if r.user != "u5"])):
        folder = tmp_path / name
        folder.mkdir()
        run_on_engine(engine, part, CHOSEN, folder)
        books.append(books_by_name(engine, folder))
    everybody, without = books
    assert {row for row in everybody if row[0] != "u5"} == without
    assert everybody != without


@pytest.mark.parametrize("times", [0.8, 8.0], ids=["known", "unknown"])
def test_accounts_above_their_limit_are_refused(
    times: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If somebody close to the limit were taken for one who is not. Who asks for most of a budget
    passes it later; of who asks for several at once it is not even counted what that costs."""

    def close(self: AdmissionSql) -> str:
        return f"SELECT * FROM {self.rows['people']} AS people WHERE 1 = 0"

    monkeypatch.setattr(AdmissionSql, "close", close)
    first = terms_of(1, 1)
    multiplier = isqrt(int(times * first.kept_limit) // first.own) // UNIT
    rows = [Row("u", slot, 0, UNIT) for slot in range(1, SLOTS + 1)]
    with (
        closing(open_test_engine("duckdb")) as engine,
        pytest.raises(PrivacyError, match="would pass what users may spend"),
    ):
        run_on_engine(engine, rows, [multiplier] * SLOTS, tmp_path)
    assert len(list(tmp_path.iterdir())) == (1 if times > 1 else 2)


def books_by_name(engine: Engine, folder: Path) -> set[tuple[Any, ...]]:
    slots = [folder / str(slot) for slot in range(1, SLOTS + 1)]
    names, cells, cut = (
        engine.read_files("books", "parquet", [str(slot / file) for slot in slots], None, columns)
        for file, columns in (
            (NAMES, ["user_id", "number"]),
            (CELLS, ["slot", "cell", "asked", "moved"]),
            (CUT, ["slot", "number", "moved", "charge_high", "charge_low"]),
        )
    )
    users = engine.read_files(
        "users", "parquet", [str(slots[-1] / USERS)], None,
        ["number", "seen", "own_high", "own_low", "across_high", "across_low", "spent_high",
         "spent_low"],
    )  # fmt: skip
    found = engine.rows(
        "books",
        f"""
SELECT user_id, 'cell', slot, cell % 4096, asked, moved, 0, 0, 0
FROM {cells} JOIN {names} ON number = whole_div(cell, 4096)
UNION ALL
SELECT user_id, 'cut', slot, charge_high, charge_low, moved, 0, 0, 0
FROM {cut} AS cut JOIN {names} AS names ON names.number = cut.number
UNION ALL
SELECT user_id, 'user', seen, own_high, own_low, across_high, across_low, spent_high, spent_low
FROM {users} AS users JOIN {names} AS names ON names.number = users.number""",
    )
    return {tuple(row) for row in found}


@pytest.mark.every_change
def test_halves_put_together_again_are_the_number(engine: Engine) -> None:
    for number in (0, 1, 2**53 - 1, 2**53, 2**88, 2**106 - 1):
        ((high, low, same),) = engine.rows(
            "halves",
            f"SELECT high(x), low(x), CAST(wide_of(high(x), low(x)) AS VARCHAR(60))"
            f" FROM (SELECT wide('{number}') AS x) AS one",
        )
        assert (high, low, int(same)) == (number >> 53, number & (2**53 - 1), number)


def test_slots_in_another_order_are_refused() -> None:
    accounts = in_arrays(world(3))
    with pytest.raises(ContributionError, match="slot 1 is next"):
        accounts.admit(terms_of(2, 5))


@pytest.mark.every_change
def test_books_of_another_slot_are_refused(engine: Engine, tmp_path: Path) -> None:
    asked = rows_table(engine, [Row("a", 1, 0, UNIT)])
    accounts = EngineAccounts(engine, asked, SLOTS, LAYOUT, Books((), tmp_path))
    with pytest.raises(ContributionError, match=r"slot 3.*books of slot 1"):
        accounts.admit(terms_of(3, 5))


def test_ids_are_texts_whatever_they_come_as(engine: Engine, tmp_path: Path) -> None:
    """The number 7 on the second slot is the text 7 of the first, not the text 007, not both."""
    earlier: tuple[Path, ...] = ()
    for slot, ids in ((1, ("'007'", "'7'")), (2, ("CAST(7 AS BIGINT)",))):
        values = ", ".join(f"({name}, {slot}, 0, CAST({UNIT} AS BIGINT))" for name in ids)
        asked = engine.table(
            "asked_rows",
            f"SELECT * FROM (VALUES {values}) AS t (user_id, slot, cell_index, weight)",
        )
        new = tmp_path / str(slot)
        new.mkdir()
        accounts = EngineAccounts(engine, asked, SLOTS, LAYOUT, Books(earlier, new))
        assert accounts.admit(terms_of(slot, 100))[0] == len(ids) * UNIT
        earlier += (new,)
    paths = [str(each / NAMES) for each in earlier]
    names = engine.read_files("names", "parquet", paths, None, ["user_id"])
    found = engine.rows("names", f"SELECT user_id FROM {names}")
    assert sorted(found) == [("007",), ("7",)]


@pytest.mark.parametrize("entry", [1, 2**12 - 1])
def test_the_widest_numbers_stay_exact(entry: int, tmp_path: Path) -> None:
    many = Layout.of_publishers(tuple(f"p{k}" for k in range(4095)))
    assert_exact_at_the_widest(entry, many, tmp_path)


def assert_exact_at_the_widest(entry: int, layout: Layout, tmp_path: Path) -> None:
    """A narrow or wide strategy, thousands of cells, the largest weights and multipliers: the
    embedded engine and plain Python agree, and nothing overflows."""
    engine = open_test_engine("duckdb")
    strategy, most = Strategy(((entry,), (1, entry))), largest_cell(layout)
    rows = [Row("wide", slot, place, most) for slot in (1, 2) for place in range(len(layout))]
    rows += [Row("one", slot, 7, 2**40) for slot in (1, 2)]
    reference, asked = ReferenceAccounts(rows, 2, layout), rows_table(engine, rows)
    earlier: tuple[Path, ...] = ()
    for slot, multiplier in ((1, 2**20), (2, 1)):
        new = tmp_path / str(slot)
        new.mkdir()
        limit = LIMIT * slot // 2
        terms = Terms(
            tuple(map(int, strategy.gram[slot - 1, :slot])),
            multiplier, max(1, multiplier // 16), limit * 19 // 20, limit // 20,
        )  # fmt: skip
        accounts = EngineAccounts(engine, asked, 2, layout, Books(earlier, new))
        edges = [2**80, 2**100]
        assert list(accounts.needs(terms.costs, edges)) == reference.needs(terms.costs, edges)
        assert accounts.admit(terms) == reference.admit(terms)
        earlier += (new,)
    engine.close()


def test_cells_outside_the_layout_are_refused(engine: Engine, tmp_path: Path) -> None:
    asked = rows_table(engine, [Row("a", 1, 3, UNIT)])
    accounts = EngineAccounts(engine, asked, SLOTS, LAYOUT, Books((), tmp_path))
    with pytest.raises(ContributionError, match="cell_index = 3"):
        accounts.admit(terms_of(1, 5))
    asked = rows_table(engine, [Row("a", 1, -1, UNIT), Row("a", 1, 1, UNIT)])
    accounts = EngineAccounts(engine, asked, SLOTS, LAYOUT, Books((), tmp_path))
    with pytest.raises(ContributionError, match="cell_index = -1"):
        accounts.admit(terms_of(1, 5))
    many = Layout.of_publishers(tuple(str(k) for k in range(2**15)))
    with pytest.raises(ContributionError, match="32768 cells"):
        EngineAccounts(engine, asked, SLOTS, many, Books((), tmp_path))


def test_integer_user_ids_work_too(engine: Engine, tmp_path: Path) -> None:
    asked = engine.table(
        "asked_rows",
        "SELECT * FROM (VALUES (CAST(7 AS BIGINT), 1, 0, CAST(720720 AS BIGINT)))"
        " AS t (user_id, slot, cell_index, weight)",
    )
    earlier: tuple[Path, ...] = ()
    for slot, expected in ((1, UNIT), (2, 0)):
        new = tmp_path / str(slot)
        new.mkdir()
        accounts = EngineAccounts(engine, asked, SLOTS, LAYOUT, Books(earlier, new))
        assert accounts.admit(terms_of(slot, 100)) == [expected, 0, 0, 0]
        earlier += (new,)


def test_arrays_settle_needs_on_an_edge_in_integers() -> None:
    """Sums of floats cannot tell a need that is an edge from one just above it."""
    strategy = square_root(SLOTS)
    costs = tuple(map(int, strategy.gram[0, :1]))
    need = costs[0] * (3 * UNIT) ** 2
    rows = [Row("a", 1, 0, 3 * UNIT), Row("b", 1, 1, 3 * UNIT)]
    for edges, expected in (((need - 1, need), [0, 2, 0]), ((need, need + 1), [2, 0, 0])):
        assert list(in_arrays(rows).needs(costs, edges)) == expected
        assert ReferenceAccounts(rows, SLOTS, LAYOUT).needs(costs, edges) == expected
