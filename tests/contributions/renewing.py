"""Campaigns whose past is let in again: what is public of every slot, made up, and gone through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from adsbpc.contributions import Accounts, Books, EngineAccounts
from adsbpc.contributions.account_books import NAMES, first_ungathered
from adsbpc.contributions.reference import ReferenceAccounts, Row
from adsbpc.engines import Engine, Relation
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import Layout
from adsbpc.privacy import LIMIT, Strategy, Terms, cost
from adsbpc.privacy.filter import FORECAST_BITS, Gram, Growth, Pace, Renewal, Tier
from adsbpc.privacy.strategies import ONE

EDGES = tuple(int((0.52 * 2 ** (k / 2) * ONE * UNIT) ** 2) for k in range(40))


@dataclass(frozen=True)
class Choice:
    """Of one slot: multipliers by cell, whether the past is renewed, sizes of cells, a pace; and
    whether its books gather those before it, which changes nothing."""

    multipliers: tuple[int, ...]
    is_renewed: bool
    sizes: tuple[int, ...]
    grows: int
    gathers: bool = False


def choices(cells: int, is_sized: bool) -> st.SearchStrategy[Choice]:
    multiplier = st.sampled_from([1, 40, 900, 9000, 2**20])
    sizes = st.lists(st.integers(1, 256), min_size=cells, max_size=cells).map(tuple)
    return st.builds(
        Choice,
        st.lists(multiplier, min_size=cells, max_size=cells).map(tuple) if is_sized
        else multiplier.map(lambda each: (each,) * cells),
        st.booleans(),
        st.one_of(st.just(()), sizes) if is_sized else st.just(()),
        st.sampled_from([0, 0, 1, 5, 2**30]),
        st.booleans(),
    )  # fmt: skip


def gram_of(strategy: Strategy, first_row: int, last_row: int, slots: int) -> Gram:
    """Over rows from one to another, for the first slots."""
    rows = strategy.matrix[first_row - 1 : last_row, :slots]
    return tuple(tuple(map(int, row)) for row in rows.T @ rows)


def growth_of(slots: int, grows: int) -> Growth:
    steps = range(1, slots + 1)
    one = 2**FORECAST_BITS
    return Growth(
        tuple(one + grows * k * one // 7 for k in steps),
        tuple(one + grows * k * one // 3 for k in steps),
    )


def terms_of(strategy: Strategy, slot: int, choice: Choice) -> Terms:
    limit = LIMIT * slot // strategy.slots
    multiplier = min(choice.multipliers)
    return Terms(
        tuple(map(int, strategy.gram[slot - 1, :slot])),
        multiplier,
        max(1, multiplier // 3),
        limit * 18 // 20,
        limit // 20,
        Tier(max(1, multiplier // 30), limit // 20),
        choice.multipliers if len(set(choice.multipliers)) > 1 else (),
        Pace(LIMIT // 2, growth_of(strategy.slots, choice.grows)) if choice.grows else None,
    )


def run(
    accounts: Accounts | ReferenceAccounts, strategy: Strategy, chosen: Sequence[Choice]
) -> list[list[int]]:
    """Everything that accounts say, slot by slot."""
    found, begun = list[list[int]](), 1
    sizes: tuple[int, ...] = ()
    for slot, choice in enumerate(chosen, start=1):
        found += step(accounts, strategy, slot, choice, sizes, begun)
        sizes, begun = choice.sizes, slot if choice.is_renewed else begun
    return found


def step(
    accounts: Accounts | ReferenceAccounts, strategy: Strategy, slot: int, choice: Choice,
    sizes: tuple[int, ...], begun: int,
) -> list[list[int]]:  # fmt: skip
    terms = terms_of(strategy, slot, choice)
    whole = gram_of(strategy, 1, strategy.slots, slot - 1)
    accounts.open(terms.costs, choice.sizes, None if sizes == choice.sizes else whole)
    growth = growth_of(strategy.slots, choice.grows)
    found = [list(map(int, accounts.needs(terms.costs, EDGES, growth if slot % 2 else None)))]
    if choice.is_renewed and slot > 1:
        renewal = Renewal(
            terms,
            gram_of(strategy, begun, slot - 1, slot - 1),
            gram_of(strategy, slot, strategy.slots, slot - 1),
        )
        found += accounts.renew(renewal)
    return [*found, list(accounts.admit(terms))]


def costs_by_rows(
    accounts: ReferenceAccounts, strategy: Strategy, chosen: Sequence[Choice], layout: Layout
) -> dict[str, tuple[int, int]]:
    """What every user has moved in all rows, another way than the filter counts it, and what the
    filter has charged. The last rows are those that are still to come."""
    moved: dict[str, int] = {}
    sizes: tuple[int, ...] = ()
    begun = 1
    for slot, choice in enumerate(chosen, start=1):
        if choice.is_renewed and slot > 1:
            _add(moved, accounts, strategy, layout, slice(begun - 1, slot - 1))
        step(accounts, strategy, slot, choice, sizes, begun)
        sizes, begun = choice.sizes, slot if choice.is_renewed and slot > 1 else begun
    _add(moved, accounts, strategy, layout, slice(begun - 1, None))
    return {name: (moved[name], sum(user.account.spent)) for name, user in accounts.users.items()}


def _add(
    moved: dict[str, int], accounts: ReferenceAccounts, strategy: Strategy, layout: Layout,
    rows: slice,
) -> None:  # fmt: skip
    for name, user in accounts.users.items():
        moved[name] = moved.get(name, 0) + cost(strategy, layout, user.account.moved, rows)


def run_on_engine(
    engine: Engine, rows: Sequence[Row], strategy: Strategy, chosen: Sequence[Choice],
    layout: Layout, folder: Path,
) -> list[list[int]]:  # fmt: skip
    """A new object a slot, as in releases: all that lasts is in the files."""
    asked = rows_table(engine, rows)
    found, begun, firsts = list[list[int]](), 1, tuple[int, ...]()
    sizes: tuple[int, ...] = ()
    for slot, choice in enumerate(chosen, start=1):
        books = books_of(folder, choice, firsts, begun)
        accounts = EngineAccounts(engine, asked, strategy.slots, layout, books)
        found += step(accounts, strategy, slot, choice, sizes, begun)
        sizes, begun = choice.sizes, slot if choice.is_renewed and slot > 1 else begun
        firsts += (books.gathers or slot,)
    return found


def books_of(folder: Path, choice: Choice, firsts: tuple[int, ...], begun: int) -> Books:
    """Of the slot after those of which each one's books have the rows from a first one on. What was
    gathered is not there any more."""
    slot = len(firsts) + 1
    for gathering, first in enumerate(firsts, start=1):
        for before in range(first, gathering):
            (folder / str(before) / NAMES).unlink(missing_ok=True)
    new = folder / str(slot)
    new.mkdir(parents=True)
    earlier = tuple(folder / str(each) for each in range(1, slot))
    gathers = first_ungathered(firsts) if choice.gathers else None
    return Books(earlier, new, renewed=begun, firsts=firsts, gathers=gathers)


def rows_table(engine: Engine, rows: Sequence[Row]) -> Relation:
    values = ", ".join(
        f"('{r.user}', {r.slot}, {r.cell}, CAST({r.weight} AS BIGINT))" for r in rows
    )
    nothing = "('a', 1, 0, CAST(0 AS BIGINT))"
    return engine.table(
        "asked_rows",
        f"SELECT * FROM (VALUES {values or nothing}) AS t (user_id, slot, cell_index, weight)",
    )
