"""Planted faults: each is found, by the claim that is about it, and by no claim that hashes alone
could make."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit import plants
from tests.audit.campaigns import SEALED, Released, found_in
from tests.audit.forgery import CELLS, CUT, NAMES, REST, USERS, Forgery, Plant
from tests.effort import first

PLANTS: list[tuple[Plant, set[str]]] = [
    (plants.answer_without_noise, {"answers"}),
    (plants.answer_for_nobody, {"answers"}),
    (plants.more_than_was_promised, {"releases"}),
    (plants.changed_multiplier, {"multipliers", "cells", "kept totals"}),
    (plants.moved_cell, {"kept totals"}),
    (plants.missing_name, {"people in the books"}),
    (plants.missing_account, {"people in the books"}),
    (plants.account_of_nobody, {"people in the books"}),
    (plants.second_account, {"people in the books"}),
    (plants.name_without_rows, {"people in the books"}),
    (plants.budget_above_the_limit, {"costs of people", "plain recount"}),
    (plants.budget_spent_too_early, {"costs of people", "plain recount"}),
    (plants.user_with_two_numbers, {"names"}),
    (plants.two_users_with_one_number, {"names", "people in the books"}),
    (plants.empty_name, {"names"}),
    (plants.cell_counted_twice, {"people in the books"}),
    (plants.cut_counted_twice, {"people in the books", "kept totals"}),
    (plants.account_that_says_less, {"accounts"}),
    (plants.totals_that_do_not_add_up, {"kept totals"}),
    (plants.cut_total_that_does_not_add_up, {"kept totals"}),
    (plants.cut_that_was_not_charged, {"accounts"}),
    (plants.cut_charged_to_somebody_else, {"accounts"}),
    (plants.cut_that_nobody_asked_for, {"cells"}),
    (plants.rest_of_nothing, {"cells"}),
    (plants.row_below_zero, {"cells"}),
    (plants.more_than_was_asked, {"cells"}),
    (plants.no_multiple, {"cells", "accounts"}),
    (plants.publisher_outside_the_list, {"cells", "kept totals"}),
    (plants.row_of_another_slot, {"cells"}),
    (plants.empty_figure, {"cells"}),
    (plants.beyond_128_bits, {"cells", "costs of people"}),
    (plants.changed_strategy, {"accounts"}),
    (plants.negative_strategy, {"plan"}),
    (plants.weaker_noise, {"noise scale"}),
    (plants.noise_that_was_left_out, {"noise"}),
    (plants.noise_that_is_too_large, {"noise"}),
    (plants.release_of_other_values, {"releases"}),
    (plants.charge_that_is_too_small, {"charges"}),
    (plants.charge_that_nobody_told, {"charges"}),
    (plants.overspent_campaign, {"budgets", "charges"}),
    (plants.second_reservation, {"budgets"}),
    (plants.budgets_above_the_split, {"plan"}),
    (plants.seeded_noise, {"releases"}),
    (plants.slot_left_out, {"releases", "book files", "published files"}),
    (plants.no_books, {"book files"}),
    (plants.multiplier_that_is_sql, {"multipliers", "cells", "kept totals"}),
    (plants.total_that_is_no_number, {"kept totals", "noise"}),
    (plants.budget_that_is_no_number, {"plan"}),
    (plants.unreadable_plan, {"plan"}),
]
# Faults that everything else agrees with: no other claim may fail. Answers that were published stay
# as they are.
ALONE: dict[Plant, set[str]] = {
    plants.answer_without_noise: {"answers"},
    plants.moved_cell: {"kept totals", "accounts", "costs of people", "plain recount"},
    plants.missing_name: {"people in the books"},
    plants.budget_above_the_limit: {"costs of people", "plain recount", "answers"},
    plants.budget_spent_too_early: {"costs of people", "plain recount", "answers"},
    plants.user_with_two_numbers: {"names"},
    plants.account_that_says_less: {"accounts"},
    plants.cut_that_was_not_charged: {"accounts"},
    # How far counts of what was cut are trusted follows from the scale.
    plants.weaker_noise: {"noise scale", "answers"},
    plants.noise_that_was_left_out: {"noise", "answers"},
}


@pytest.mark.parametrize(
    ("plant", "expected"), first(20, PLANTS), ids=[plant.__name__ for plant, _ in PLANTS]
)
def test_a_fault_is_found(
    plant: Plant, expected: set[str], released: Released, tmp_path: Path
) -> None:
    released.copy("personal, cut", tmp_path)
    assert found_in(tmp_path) == {}
    forged = Forgery(tmp_path)
    plant(forged)
    forged.finish()
    found = found_in(tmp_path)
    assert expected <= found.keys(), found
    assert not (SEALED - expected) & found.keys(), found
    assert found.keys() <= ALONE.get(plant, found.keys()), found


def test_a_forgery_of_nothing_is_fine(released: Released, tmp_path: Path) -> None:
    """What the tests above do to a ledger and its books is not what the audit finds."""
    released.copy("personal, cut", tmp_path)
    forged = Forgery(tmp_path)
    before = [forged.step(slot)["kept"] for slot in range(1, 6)]
    for slot in range(1, 6):
        for file in (NAMES, CELLS, CUT, REST, *([USERS] if slot == 5 else [])):
            forged.rows(slot, file)
    accounts = [dict(row) for row in forged.accounts]
    forged.follow()
    assert forged.accounts == accounts
    assert [forged.step(slot)["kept"] for slot in range(1, 6)] == before
    forged.finish()
    assert found_in(tmp_path) == {}
