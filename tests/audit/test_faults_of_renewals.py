"""Planted faults of campaigns that have let the past in again: twelve people, five cells, two
columns of what was cut, five slots, of which slots 2 and 4 renew what was before them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.audit import plants
from tests.audit.campaigns import RENEWALS, SEALED, Released, found_in
from tests.audit.exact import PLACES, multipliers
from tests.audit.forgery import CELLS, CUT, HALF, REST, Forgery, Plant, Row

KIND = "personal, renewed"


def past_row(forged: Forgery, slot: int = 4) -> Row:
    """A row of the past, let in again in part."""
    return next(row for row in forged.rows(slot, CELLS) if row["slot"] < slot and row["moved"])


def own_rows(forged: Forgery, slot: int, file: str, number: int) -> list[Row]:
    rows = forged.rows(slot, file)
    return [row for row in rows if row.get("number", row.get("cell", 0) // PLACES) == number]


def account(forged: Forgery, number: int) -> Row:
    return next(row for row in forged.accounts if row["number"] == number)


def halves(row: Row, name: str, value: int) -> None:
    row[f"{name}_high"], row[f"{name}_low"] = divmod(value, HALF)


def whole(row: Row, name: str) -> int:
    return int(row[f"{name}_high"] * HALF + row[f"{name}_low"])


# ---- what is let in again ------------------------------------------------------------------------


def past_let_in_for_more(forged: Forgery) -> None:
    row = past_row(forged)
    row["moved"] = (row["asked"] + 1) * multipliers(forged.step(4))[row["cell"] % PLACES]
    forged.follow()


def past_asked_for_more(forged: Forgery) -> None:
    past_row(forged)["asked"] += 1


def past_left_out(forged: Forgery) -> None:
    forged.rows(4, CELLS).remove(past_row(forged))
    forged.follow()


def past_of_somebody_else(forged: Forgery) -> None:
    """Somebody gets a row of the past that they never had."""
    row = past_row(forged)
    forged.rows(4, CELLS).append({**row, "slot": 2})
    forged.follow()


def past_as_if_nothing_was_spent(forged: Forgery) -> None:
    """A renewal that forgets what released rows have cost, with books that agree with it."""
    number = past_row(forged)["cell"] // PLACES
    for row in own_rows(forged, 4, CELLS, number):
        row["moved"] = row["asked"] * multipliers(forged.step(4))[row["cell"] % PLACES]
    for file in (CUT, REST):
        for row in own_rows(forged, 4, file, number):
            if row["slot"] > 0:
                forged.rows(4, file).remove(row)
    forged.follow()
    own = account(forged, number)
    halves(own, "spent", whole(own, "spent") - whole(own, "fixed"))
    halves(own, "fixed", 0)


def past_that_was_moved(forged: Forgery) -> None:
    """In a stretch that is over, somebody moved more than the books in use know."""
    row = forged.cell(3)
    row["moved"] += 1000 * multipliers(forged.step(3))[row["cell"] % PLACES]


# ---- accounts -----------------------------------------------------------------------------------


def account_that_forgets_rows(forged: Forgery) -> None:
    own = forged.accounts[3]
    halves(own, "spent", whole(own, "spent") - whole(own, "fixed"))
    halves(own, "fixed", 0)


def account_that_fixes_less(forged: Forgery) -> None:
    """The same sum, in other parts."""
    halves(forged.accounts[3], "fixed", whole(forged.accounts[3], "fixed") - 1)


def account_below_the_cost(forged: Forgery) -> None:
    own = forged.accounts[3]
    halves(own, "spent", forged.exact().cost[own["number"]] - 1)


def account_charged_twice(forged: Forgery) -> None:
    """Nobody is harmed, and the books are wrong."""
    own = forged.accounts[3]
    halves(own, "spent", whole(own, "spent") + whole(own, "fixed") // 1000)


def cut_that_forgets_rows(forged: Forgery) -> None:
    row = next(row for row in forged.rows(4, CUT) if row["slot"] == 0 and whole(row, "charge"))
    halves(row, "charge", 0)


def cut_for_some_rows_only(forged: Forgery) -> None:
    """Charged for a part of the rows to come."""
    row = next(row for row in forged.rows(4, CUT) if row["slot"] == -1 and whole(row, "charge"))
    halves(row, "charge", whole(row, "charge") * 3 // 4)


def rest_charged_twice(forged: Forgery) -> None:
    row = next(row for row in forged.rows(4, REST) if row["slot"] == -1 and whole(row, "charge"))
    halves(row, "charge", whole(row, "charge") * 2)


def past_cut_with_a_charge(forged: Forgery) -> None:
    row = next(row for row in forged.rows(4, CUT) if row["slot"] == 1)
    halves(row, "charge", 5)


def cut_of_a_stretch_that_is_over(forged: Forgery) -> None:
    row = next(row for row in forged.rows(3, CUT) if row["slot"] == 3)
    halves(row, "charge", whole(row, "charge") - 1)


# ---- rows ---------------------------------------------------------------------------------------


def rest_without_cut(forged: Forgery) -> None:
    """On a slot on which the person had asked for nothing."""
    row = next(row for row in forged.rows(4, REST) if row["slot"] == 1)
    forged.rows(4, REST).append({**row, "slot": 2})
    forged.follow()


def rest_beyond_what_was_cut(forged: Forgery) -> None:
    row = next(row for row in forged.rows(5, REST) if row["slot"] == 5)
    row["moved"] += 10**6 * multipliers(forged.step(5))[-1]
    forged.follow()


def sum_with_a_move(forged: Forgery) -> None:
    next(row for row in forged.rows(4, CUT) if row["slot"] == 0)["moved"] = 335 * 5085


def sum_without_a_renewal(forged: Forgery) -> None:
    row = next(row for row in forged.rows(4, CUT) if row["slot"] == 0)
    forged.rows(5, CUT).append(dict(row))


def totals_of_the_past(forged: Forgery) -> None:
    forged.step(4)["kept"][0][0] += 1


def totals_without_the_past(forged: Forgery) -> None:
    forged.step(4)["kept"] = forged.step(4)["kept"][-1:]


def budget_above_the_limit(forged: Forgery) -> None:
    row = forged.cell(5)
    row["moved"] = row["asked"] * multipliers(forged.step(5))[row["cell"] % PLACES]
    forged.follow()


# ---- what is public -----------------------------------------------------------------------------


def other_multiplier_in_the_release(forged: Forgery) -> None:
    forged.measure(4)["multipliers"][1] += 1


def other_multiplier_than_the_rows(forged: Forgery) -> None:
    for slot in (4, 5):
        forged.step(slot)["multipliers"][2] += 1
        forged.measure(slot)["multipliers"] = forged.step(slot)["multipliers"]


def multiplier_between_renewals(forged: Forgery) -> None:
    forged.step(3)["multipliers"][1] += 1
    forged.measure(3)["multipliers"] = forged.step(3)["multipliers"]


def other_sizes_in_the_release(forged: Forgery) -> None:
    forged.measure(4)["sizes"][3] += 1


def other_sizes_than_the_rows(forged: Forgery) -> None:
    for slot in (4, 5):
        forged.step(slot)["sizes"][0] += 1
        forged.measure(slot)["sizes"] = forged.step(slot)["sizes"]


def size_of_nothing(forged: Forgery) -> None:
    for slot in (4, 5):
        forged.step(slot)["sizes"][3] = 0
        forged.measure(slot)["sizes"] = forged.step(slot)["sizes"]


def hidden_renewal(forged: Forgery) -> None:
    forged.measure(4)["is_renewal"] = False


def renewal_that_is_none(forged: Forgery) -> None:
    """Neither the step nor the release tells of it, and multipliers change all the same."""
    forged.measure(4)["is_renewal"] = forged.step(4)["renewal"] = False
    totals_without_the_past(forged)


def renewal_of_nothing(forged: Forgery) -> None:
    forged.measure(1)["is_renewal"] = forged.step(1)["renewal"] = True


def other_allowance(forged: Forgery) -> None:
    forged.measure(4)["allowance"] *= 1.001


def other_spread(forged: Forgery) -> None:
    spread = forged.measure(5)["spread"]
    spread[0], spread[1] = spread[0] + 1e-3, spread[1] - 1e-3


def something_added(forged: Forgery) -> None:
    """Values and what is added agree, and nothing was counted that says so."""
    spread = forged.measure(5)["spread"]
    for answers in forged.measure(5)["running_totals"]:
        answers["added"] += 5.0
        parts = spread if answers["view"] else [1.0]
        answers["values"] = [
            v + 5.0 * part for v, part in zip(answers["values"], parts, strict=True)
        ]


def added_and_not_told(forged: Forgery) -> None:
    answers = forged.measure(5)["running_totals"][1]
    answers["values"] = [value + 5.0 for value in answers["values"]]


PLANTS: list[tuple[Plant, set[str]]] = [
    (past_let_in_for_more, {"cells"}),
    (past_asked_for_more, {"people in the books"}),
    (past_left_out, {"people in the books"}),
    (past_as_if_nothing_was_spent, {"costs of people", "plain recount", "accounts"}),
    (past_that_was_moved, {"kept totals", "accounts"}),
    (account_that_forgets_rows, {"accounts"}),
    (account_below_the_cost, {"accounts"}),
    (account_charged_twice, {"accounts"}),
    (cut_that_forgets_rows, {"accounts"}),
    (cut_for_some_rows_only, {"accounts"}),
    (cut_of_a_stretch_that_is_over, {"accounts"}),
    (rest_without_cut, {"cells"}),
    (totals_of_the_past, {"kept totals"}),
    (budget_above_the_limit, {"costs of people", "plain recount"}),
    (other_multiplier_in_the_release, {"multipliers"}),
    (other_multiplier_than_the_rows, {"cells", "kept totals"}),
    (multiplier_between_renewals, {"multipliers"}),
    (other_sizes_in_the_release, {"multipliers"}),
    (other_sizes_than_the_rows, {"cells", "kept totals"}),
    (hidden_renewal, {"multipliers"}),
    (renewal_that_is_none, {"multipliers", "cells"}),
    (other_spread, {"answers"}),
    (something_added, {"answers"}),
    (plants.noise_that_was_left_out, {"noise"}),
]
MORE_PLANTS: list[tuple[Plant, set[str]]] = [
    (past_of_somebody_else, {"people in the books"}),
    (account_that_fixes_less, {"accounts"}),
    (rest_charged_twice, {"accounts"}),
    (past_cut_with_a_charge, {"accounts"}),
    (rest_beyond_what_was_cut, {"cells"}),
    (sum_with_a_move, {"cells"}),
    (sum_without_a_renewal, {"cells"}),
    (totals_without_the_past, {"kept totals", "noise"}),
    (size_of_nothing, {"multipliers"}),
    (renewal_of_nothing, {"multipliers"}),
    (other_allowance, {"multipliers"}),
    (added_and_not_told, {"answers"}),
    (plants.noise_that_is_too_large, {"noise"}),
    (plants.missing_name, {"people in the books"}),
    (plants.cell_counted_twice, {"people in the books"}),
]
# Faults that everything else agrees with: no other claim may fail.
ALONE: dict[Plant, set[str]] = {
    past_asked_for_more: {"people in the books"},
    account_that_forgets_rows: {"accounts"},
    account_that_fixes_less: {"accounts"},
    account_below_the_cost: {"accounts"},
    account_charged_twice: {"accounts"},
    cut_that_forgets_rows: {"accounts"},
    cut_for_some_rows_only: {"accounts"},
    cut_of_a_stretch_that_is_over: {"accounts"},
    totals_of_the_past: {"kept totals", "noise"},
    other_multiplier_in_the_release: {"multipliers"},
    other_sizes_in_the_release: {"multipliers"},
    hidden_renewal: {"multipliers"},
    other_allowance: {"multipliers"},
    other_spread: {"answers"},
    something_added: {"answers"},
    added_and_not_told: {"answers"},
}


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        pytest.param(*each, id=each[0].__name__, marks=[pytest.mark.slow] if is_more else [])
        for is_more, given in enumerate((PLANTS, MORE_PLANTS))
        for each in given
    ],
)
def test_a_fault_is_found(
    plant: Plant, expected: set[str], released: Released, tmp_path: Path
) -> None:
    released.copy(KIND, tmp_path)
    forged = Forgery(tmp_path)
    plant(forged)
    forged.finish()
    found = found_in(tmp_path, chosen=True)
    assert expected <= found.keys(), found
    assert not SEALED & found.keys(), found
    assert found.keys() <= ALONE.get(plant, found.keys()), found


def test_a_forgery_of_nothing_is_fine(released: Released, tmp_path: Path) -> None:
    released.copy(KIND, tmp_path)
    assert found_in(tmp_path, chosen=True) == {}
    forged = Forgery(tmp_path)
    assert [slot for slot in range(1, 6) if forged.step(slot)["renewal"]] == list(RENEWALS)
    accounts = [dict(row) for row in forged.accounts]
    before = [forged.step(slot)["kept"] for slot in range(1, 6)]
    forged.follow()
    assert forged.accounts == accounts
    assert [forged.step(slot)["kept"] for slot in range(1, 6)] == before
    forged.finish()
    assert found_in(tmp_path, chosen=True) == {}


def test_this_tests_something(released: Released, tmp_path: Path) -> None:
    """Renewals have rounded up, have fixed something, and both columns have counted."""
    released.copy(KIND, tmp_path)
    forged = Forgery(tmp_path)
    exact = forged.exact()
    for row in forged.accounts:
        assert whole(row, "fixed") == exact.fixed[row["number"]] > 0
        assert whole(row, "spent") >= exact.cost[row["number"]]
    assert any(whole(row, "spent") > exact.cost[row["number"]] for row in forged.accounts)
    for file in (CUT, REST):
        assert all(any(row["slot"] > 0 for row in forged.rows(slot, file)) for slot in (3, 4, 5))


@pytest.mark.parametrize(("slot", "file"), [(1, CELLS), (2, CUT), (3, REST)])
def test_a_file_of_a_stretch_that_is_missing(
    slot: int, file: str, released: Released, tmp_path: Path
) -> None:
    """Those that are out of use are still needed for what they have cost."""
    released.copy(KIND, tmp_path)
    Forgery(tmp_path).path(slot, file).unlink()
    found = found_in(tmp_path, chosen=True)
    assert {"book files", "costs of people", "accounts"} <= found.keys()
    assert file in found["book files"]
