"""Planted faults of a campaign that version 0.1 began: its first slots have books of four files,
and no row ever holds the past as it was let in again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from adsbpc import Campaign
from tests.audit.campaigns import SEALED, found_in
from tests.audit.forgery import CELLS, CUT, REST, Forgery, Plant

STORE = Path(__file__).parents[1] / "compatibility" / "stores" / "2026-11-16" / "personal-budget"


@pytest.fixture(scope="module")
def begun_by_slots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run to its end by this version."""
    store = tmp_path_factory.mktemp("by-slots") / "store"
    shutil.copytree(STORE, store)
    Campaign.load(store / "spring.toml").release()
    assert found_in(store) == {}
    return store


def changed_multiplier(forged: Forgery) -> None:
    forged.step(4)["multiplier"] += 1


def other_cut_multiplier(forged: Forgery) -> None:
    forged.step(4)["cut_multiplier"] += 1


def totals_that_do_not_add_up(forged: Forgery) -> None:
    forged.step(1)["kept"][0] += 1


def moved_cell_of_old_books(forged: Forgery) -> None:
    forged.cell(1)["moved"] += forged.step(1)["multiplier"]


def account_that_says_less(forged: Forgery) -> None:
    forged.accounts[0]["spent_low"] -= 1


def something_fixed(forged: Forgery) -> None:
    forged.accounts[0]["fixed_low"] += 1


def rest_of_nothing(forged: Forgery) -> None:
    row = {"slot": 4, "number": 1, "moved": 0, "charge_high": 0, "charge_low": 0}
    forged.rows(4, REST).append(row)


def cut_of_nobody(forged: Forgery) -> None:
    row = {"slot": 4, "number": 1, "charge_high": 0, "charge_low": 0}
    forged.rows(4, CUT).append({**row, "moved": 10**9 * forged.step(4)["cut_multiplier"]})


def renewal_by_slots(forged: Forgery) -> None:
    forged.measure(4)["is_renewal"] = True


def spread_by_slots(forged: Forgery) -> None:
    forged.measure(4)["spread"] = [0.5, 0.25, 0.25]


def something_added(forged: Forgery) -> None:
    forged.measure(4)["running_totals"][1]["added"] = 1.0


def books_of_a_later_format(forged: Forgery) -> None:
    forged.step(4)["books"]["format"] = 3


def row_of_another_slot(forged: Forgery) -> None:
    forged.rows(4, CELLS)[0]["slot"] = 3


PLANTS: list[tuple[Plant, set[str]]] = [
    (changed_multiplier, {"multipliers", "cells", "kept totals"}),
    (moved_cell_of_old_books, {"cells", "kept totals", "accounts"}),
    (account_that_says_less, {"accounts"}),
    (cut_of_nobody, {"cells", "accounts", "costs of people"}),
]
MORE_PLANTS: list[tuple[Plant, set[str]]] = [
    (other_cut_multiplier, {"multipliers"}),
    (totals_that_do_not_add_up, {"kept totals"}),
    (something_fixed, {"accounts"}),
    (rest_of_nothing, {"cells"}),
    (renewal_by_slots, {"multipliers"}),
    (spread_by_slots, {"answers"}),
    (something_added, {"answers"}),
    (books_of_a_later_format, {"book files", "cells", "accounts"}),
    (row_of_another_slot, {"cells"}),
]


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        pytest.param(*each, id=each[0].__name__, marks=[pytest.mark.slow] if is_more else [])
        for is_more, given in enumerate((PLANTS, MORE_PLANTS))
        for each in given
    ],
)
def test_a_fault_is_found(
    plant: Plant, expected: set[str], begun_by_slots: Path, tmp_path: Path
) -> None:
    shutil.copytree(begun_by_slots, tmp_path, dirs_exist_ok=True)
    forged = Forgery(tmp_path)
    plant(forged)
    forged.finish()
    found = found_in(tmp_path)
    assert expected <= found.keys(), found
    assert not (SEALED - expected) & found.keys(), found
