"""Planted faults: each is found, by the claim that is about it, and by no claim that hashes alone
could make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc import Campaign
from tests.audit.campaigns import Released, broken
from tests.audit.forgery import CELLS, CUT, NAMES, PLACES, USERS, Forgery, Plant
from tests.campaign.book_files import committed
from tests.campaign.files import published

# Claims that whoever changes things can make hold again.
SEALED = {"chain of the ledger", "book files", "published files"}


def found_in(directory: Path) -> dict[str, str]:
    return broken(Campaign.load(directory / "spring.toml").audit())


# ---- people: every cell is cut, twelve people, three publishers, the second slot is empty --------


def changed_multiplier(forged: Forgery) -> None:
    forged.step(3)["multiplier"] += 1


def moved_cell(forged: Forgery) -> None:
    """One more conversion for another publisher."""
    row = forged.cell(3)
    number, place = divmod(row["cell"], PLACES)
    row["cell"] = number * PLACES + (place + 1) % 3


def missing_name(forged: Forgery) -> None:
    forged.rows(1, NAMES).pop()


def missing_account(forged: Forgery) -> None:
    forged.accounts.pop()


def account_of_nobody(forged: Forgery) -> None:
    forged.accounts.append({**forged.accounts[0], "number": 99})


def second_account(forged: Forgery) -> None:
    forged.accounts.append(dict(forged.accounts[0]))


def name_without_rows(forged: Forgery) -> None:
    forged.rows(3, NAMES).append({"user_id": "ghost", "number": 99})
    forged.accounts.append({**forged.accounts[0], "number": 99, "spent_high": 0, "spent_low": 0})


def budget_above_the_limit(forged: Forgery) -> None:
    """Somebody is let in twice as much on the last slot, and everything else agrees with that."""
    row = forged.cell(5)
    row["asked"] *= 2
    row["moved"] *= 2
    forged.follow()


def budget_spent_too_early(forged: Forgery) -> None:
    """Somebody spends on the first slot what only later slots pay for, and nothing after that."""
    (number, _) = divmod(forged.cell(1)["cell"], PLACES)
    for slot in (1, 3, 4, 5):
        for row in forged.rows(slot, CELLS):
            if row["cell"] // PLACES == number:
                row["moved"] = row["moved"] * 5 // 4 if slot == 1 else 0
                row["moved"] -= row["moved"] % forged.step(slot)["multiplier"]
                row["asked"] *= 2
    forged.follow()


def user_with_two_numbers(forged: Forgery) -> None:
    """A second budget for one person, from the last slot on."""
    name = forged.rows(1, NAMES)[0]
    number, second = name["number"], 99
    forged.rows(5, NAMES).append({"user_id": name["user_id"], "number": second})
    for row in forged.rows(5, CELLS):
        if row["cell"] // PLACES == number:
            row["cell"] = second * PLACES + row["cell"] % PLACES
    for row in forged.rows(5, CUT):
        if row["number"] == number:
            row["number"] = second
    forged.accounts.append({**forged.accounts[0], "number": second})
    forged.follow()


def two_users_with_one_number(forged: Forgery) -> None:
    first, second = forged.rows(1, NAMES)[:2]
    second["number"] = first["number"]


def empty_name(forged: Forgery) -> None:
    forged.rows(1, NAMES)[0]["user_id"] = None


def cell_counted_twice(forged: Forgery) -> None:
    forged.rows(4, CELLS).append(dict(forged.cell(4)))
    forged.follow()


def cut_counted_twice(forged: Forgery) -> None:
    forged.rows(4, CUT).append(dict(forged.rows(4, CUT)[0]))


def account_that_says_less(forged: Forgery) -> None:
    forged.accounts[3]["spent_low"] -= 1


def totals_that_do_not_add_up(forged: Forgery) -> None:
    forged.step(4)["kept"][1] += 1


def cut_total_that_does_not_add_up(forged: Forgery) -> None:
    forged.step(4)["kept"][-1] -= 1


def cut_that_was_not_charged(forged: Forgery) -> None:
    forged.rows(4, CUT)[0].update(charge_high=0, charge_low=0)


def cut_charged_to_somebody_else(forged: Forgery) -> None:
    one, other = forged.rows(4, CUT)[:2]
    one["charge_low"], other["charge_low"] = one["charge_low"] - 1, other["charge_low"] + 1


def cut_that_nobody_asked_for(forged: Forgery) -> None:
    row = forged.rows(4, CUT)[0]
    row["moved"] += 10**6 * forged.step(4)["cut_multiplier"]
    forged.follow()


def row_below_zero(forged: Forgery) -> None:
    """Gives budget back."""
    forged.cell(4)["moved"] *= -1
    forged.follow()


def more_than_was_asked(forged: Forgery) -> None:
    forged.cell(4)["asked"] = 1


def no_multiple(forged: Forgery) -> None:
    forged.cell(4)["moved"] += 1


def publisher_outside_the_list(forged: Forgery) -> None:
    row = forged.cell(4)
    row["cell"] += 2_000 - row["cell"] % PLACES


def row_of_another_slot(forged: Forgery) -> None:
    forged.cell(4)["slot"] = 5


def empty_figure(forged: Forgery) -> None:
    forged.cell(4)["moved"] = None


def beyond_128_bits(forged: Forgery) -> None:
    forged.cell(4)["moved"] = 2**62


def changed_strategy(forged: Forgery) -> None:
    """A later row counts an early slot less: everybody costs less than the books say."""
    assert forged.opening["strategy"][1][0] > 1
    forged.opening["strategy"][1][0] -= 1


def negative_strategy(forged: Forgery) -> None:
    forged.opening["strategy"][1][0] *= -1


def weaker_noise(forged: Forgery) -> None:
    for slot in range(1, 6):
        forged.release(slot)["scale"] *= 0.999


def noise_that_was_left_out(forged: Forgery) -> None:
    """What was published is the exact sum."""
    rows = forged.opening["strategy"]
    for slot in range(1, 6):
        moved = [forged.moved(s) for s in range(1, slot + 1)]
        exact = [
            sum(rows[slot - 1][s] * moved[s][k] for s in range(slot)) for k in range(len(moved[0]))
        ]
        forged.release(slot)["values"] = forged.step(slot)["values"] = exact


def noise_that_is_too_large(forged: Forgery) -> None:
    """Or: what was published has little to do with what was let in."""
    forged.step(3)["values"][0] += int(20 * forged.release(3)["scale"])
    forged.release(3)["values"] = forged.step(3)["values"]


def release_of_other_values(forged: Forgery) -> None:
    forged.release(3)["values"] = [value + 1 for value in forged.release(3)["values"]]


def charge_that_is_too_small(forged: Forgery) -> None:
    forged.charge(3)["pico_rho"] -= 1
    forged.release(3)["charges"][0]["pico_rho"] -= 1


def charge_that_nobody_told(forged: Forgery) -> None:
    forged.release(3)["charges"][0]["pico_rho"] -= 1


def overspent_campaign(forged: Forgery) -> None:
    forged.charge(5)["pico_rho"] += 10**12


def second_reservation(forged: Forgery) -> None:
    """Another campaign beside, for which the scope has no room."""
    (row,) = [row for row in forged.entries if row["kind"] == "campaign"]
    forged.bodies.append(forged.opening)
    forged.entries.append({**row, "campaign": "summer"})


def budgets_above_the_split(forged: Forgery) -> None:
    forged.opening["slot_pico_rho"][4] += 1


def seeded_noise(forged: Forgery) -> None:
    forged.release(2)["randomness"] = "seeded-1"


def slot_left_out(forged: Forgery) -> None:
    for kind, part in (("charge", "measurement"), ("state", ""), ("release", "")):
        forged.remove(kind, 3, part)


def no_books(forged: Forgery) -> None:
    del forged.step(3)["books"]


def multiplier_that_is_sql(forged: Forgery) -> None:
    forged.step(3)["multiplier"] = "1 <> 0 THEN 'x' END AS fault FROM slot_cells) AS x --"


def total_that_is_no_number(forged: Forgery) -> None:
    forged.step(3)["kept"][0] = "12"


def budget_that_is_no_number(forged: Forgery) -> None:
    forged.opening["slot_pico_rho"][2] = "1"


def unreadable_plan(forged: Forgery) -> None:
    forged.opening["promise"] = {}


def answer_without_noise(forged: Forgery) -> None:
    """The values are noisy, and the answer beside them is the truth."""
    forged.release(4)["running_totals"][0]["value"] = 40.0


def answer_for_nobody(forged: Forgery) -> None:
    forged.release(4)["slot_totals"].append(
        {**forged.release(4)["slot_totals"][0], "publisher": "P-9"}
    )


def more_than_was_promised(forged: Forgery) -> None:
    forged.release(4)["people"] = 12


PLANTS: list[tuple[Plant, set[str]]] = [
    (answer_without_noise, {"answers"}),
    (answer_for_nobody, {"answers"}),
    (more_than_was_promised, {"releases"}),
    (changed_multiplier, {"multipliers", "cells", "kept totals"}),
    (moved_cell, {"kept totals"}),
    (missing_name, {"people in the books"}),
    (missing_account, {"people in the books"}),
    (account_of_nobody, {"people in the books"}),
    (second_account, {"people in the books"}),
    (name_without_rows, {"people in the books"}),
    (budget_above_the_limit, {"costs of people", "plain recount"}),
    (budget_spent_too_early, {"costs of people", "plain recount"}),
    (user_with_two_numbers, {"names"}),
    (two_users_with_one_number, {"names", "people in the books"}),
    (empty_name, {"names"}),
    (cell_counted_twice, {"people in the books"}),
    (cut_counted_twice, {"people in the books", "kept totals"}),
    (account_that_says_less, {"accounts"}),
    (totals_that_do_not_add_up, {"kept totals"}),
    (cut_total_that_does_not_add_up, {"kept totals"}),
    (cut_that_was_not_charged, {"accounts"}),
    (cut_charged_to_somebody_else, {"accounts"}),
    (cut_that_nobody_asked_for, {"cells"}),
    (row_below_zero, {"cells"}),
    (more_than_was_asked, {"cells"}),
    (no_multiple, {"cells", "accounts"}),
    (publisher_outside_the_list, {"cells", "kept totals"}),
    (row_of_another_slot, {"cells"}),
    (empty_figure, {"cells"}),
    (beyond_128_bits, {"cells", "costs of people"}),
    (changed_strategy, {"accounts"}),
    (negative_strategy, {"plan"}),
    (weaker_noise, {"noise scale"}),
    (noise_that_was_left_out, {"noise"}),
    (noise_that_is_too_large, {"noise"}),
    (release_of_other_values, {"releases"}),
    (charge_that_is_too_small, {"charges"}),
    (charge_that_nobody_told, {"charges"}),
    (overspent_campaign, {"budgets", "charges"}),
    (second_reservation, {"budgets"}),
    (budgets_above_the_split, {"plan"}),
    (seeded_noise, {"releases"}),
    (slot_left_out, {"releases", "book files", "published files"}),
    (no_books, {"book files"}),
    (multiplier_that_is_sql, {"multipliers", "cells", "kept totals"}),
    (total_that_is_no_number, {"kept totals", "noise"}),
    (budget_that_is_no_number, {"plan"}),
    (unreadable_plan, {"plan"}),
]
# Faults that everything else agrees with: no other claim may fail. Answers that were published stay
# as they are.
ALONE: dict[Plant, set[str]] = {
    answer_without_noise: {"answers"},
    moved_cell: {"kept totals", "accounts", "costs of people", "plain recount"},
    missing_name: {"people in the books"},
    budget_above_the_limit: {"costs of people", "plain recount", "answers"},
    budget_spent_too_early: {"costs of people", "plain recount", "answers"},
    user_with_two_numbers: {"names"},
    account_that_says_less: {"accounts"},
    cut_that_was_not_charged: {"accounts"},
    weaker_noise: {"noise scale"},
    noise_that_was_left_out: {"noise", "answers"},
}


@pytest.mark.parametrize(("plant", "expected"), PLANTS, ids=[plant.__name__ for plant, _ in PLANTS])
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
        for file in (NAMES, CELLS, CUT, *([USERS] if slot == 5 else [])):
            forged.rows(slot, file)
    accounts = [dict(row) for row in forged.accounts]
    forged.follow()
    assert forged.accounts == accounts
    assert [forged.step(slot)["kept"] for slot in range(1, 6)] == before
    forged.finish()
    assert found_in(tmp_path) == {}


# ---- looks at people ----------------------------------------------------------------------------


def histogram_without_noise(forged: Forgery) -> None:
    for slot in range(1, 6):
        exact = [0] * len(forged.step(slot)["histogram"])
        exact[3] = 12
        forged.release(slot)["histogram"] = forged.step(slot)["histogram"] = exact


def histogram_of_other_people(forged: Forgery) -> None:
    for slot in range(1, 6):
        forged.step(slot)["histogram"][0] += 10_000
        forged.release(slot)["histogram"] = forged.step(slot)["histogram"]


def histogram_that_was_not_charged(forged: Forgery) -> None:
    forged.remove("charge", 2, "histogram")
    lines = forged.release(2)["charges"]
    forged.release(2)["charges"] = [line for line in lines if line["part"] != "histogram"]


def histograms_above_their_share(forged: Forgery) -> None:
    (line,) = [each for each in forged.release(2)["charges"] if each["part"] == "histogram"]
    line["pico_rho"] += 10**9
    forged.charge(2, "histogram")["pico_rho"] += 10**9


def another_allowance(forged: Forgery) -> None:
    forged.release(4)["allowance"] *= 1.01


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (histogram_without_noise, "histograms"),
        (histogram_of_other_people, "histograms"),
        (histogram_that_was_not_charged, "charges"),
        (histograms_above_their_share, "charges"),
        (another_allowance, "multipliers"),
    ],
)
def test_a_fault_of_looks_is_found(
    plant: Plant, expected: str, released: Released, tmp_path: Path
) -> None:
    released.copy("personal", tmp_path)
    forged = Forgery(tmp_path)
    plant(forged)
    forged.finish()
    found = found_in(tmp_path)
    assert expected in found, found
    assert not SEALED & found.keys(), found


# ---- AdsBPC and fits ----------------------------------------------------------------------------


def weaker_noise_of_a_slot(forged: Forgery) -> None:
    scale = forged.release(3)["scale"] * 0.999
    forged.release(3)["scale"], forged.step(3)["scale"] = scale, scale.hex()


def larger_bound(forged: Forgery) -> None:
    forged.release(3)["bound"] = forged.step(3)["bound"] = forged.step(3)["bound"] + 1


def bound_of_nothing(forged: Forgery) -> None:
    forged.release(3)["bound"] = forged.step(3)["bound"] = 0


def bound_that_was_not_used(forged: Forgery) -> None:
    forged.step(3)["bound"] += 1


def half_a_promise(forged: Forgery) -> None:
    """Noise for adding and removing people, under a promise about replacing them."""
    forged.scope["adjacency"] = "substitute"
    forged.opening["promise"]["privacy"]["adjacency"] = "substitute"


def two_promises(forged: Forgery) -> None:
    forged.scope["adjacency"] = "substitute"


def cheaper_slot(forged: Forgery) -> None:
    (line,) = [each for each in forged.release(3)["charges"] if each["part"] == "measurement"]
    line["pico_rho"] -= 1
    forged.charge(3)["pico_rho"] -= 1


def dearer_slot(forged: Forgery) -> None:
    (line,) = [each for each in forged.release(3)["charges"] if each["part"] == "measurement"]
    line["pico_rho"] += 1
    forged.charge(3)["pico_rho"] += 1


def books_of_adsbpc(forged: Forgery) -> None:
    forged.step(3)["books"] = {"attempt": "attempt=1", "files": {}}


def quantile_that_was_not_charged(forged: Forgery) -> None:
    forged.remove("charge", 2, "quantile")
    lines = forged.release(2)["charges"]
    forged.release(2)["charges"] = [line for line in lines if line["part"] != "quantile"]


def sparse_vector_that_was_not_charged(forged: Forgery) -> None:
    forged.remove("charge", 3, "sparse vector")
    lines = forged.release(3)["charges"]
    forged.release(3)["charges"] = [line for line in lines if line["part"] != "sparse vector"]


def weaker_noise_of_a_fit(forged: Forgery) -> None:
    forged.release(2)["fit"]["scale"] *= 0.999


def fit_that_was_not_charged(forged: Forgery) -> None:
    forged.remove("charge", 2, "attribution fit")
    lines = forged.release(2)["charges"]
    forged.release(2)["charges"] = [line for line in lines if line["part"] != "attribution fit"]


@pytest.mark.parametrize(
    ("kind", "plant", "expected"),
    [
        ("adsbpc", weaker_noise_of_a_slot, "noise scale"),
        ("adsbpc", larger_bound, "noise scale"),
        ("adsbpc", bound_of_nothing, "noise scale"),
        ("adsbpc", bound_that_was_not_used, "noise scale"),
        ("adsbpc", half_a_promise, "noise scale"),
        ("adsbpc", two_promises, "plan"),
        ("adsbpc", cheaper_slot, "noise scale"),
        ("adsbpc", dearer_slot, "charges"),
        ("adsbpc", books_of_adsbpc, "limits of this audit"),
        ("adsbpc", seeded_noise, "releases"),
        ("adsbpc", answer_without_noise, "answers"),
        ("adsbpc, substitution", weaker_noise_of_a_slot, "noise scale"),
        ("adsbpc, sparse vector", quantile_that_was_not_charged, "charges"),
        ("adsbpc, sparse vector", sparse_vector_that_was_not_charged, "charges"),
        ("adsbpc, fit", weaker_noise_of_a_fit, "attribution fit"),
        ("adsbpc, fit", fit_that_was_not_charged, "releases"),
        ("personal, fit", weaker_noise_of_a_fit, "attribution fit"),
        ("personal, cut", half_a_promise, "noise scale"),
        ("personal, cut, substitution", budget_above_the_limit, "costs of people"),
    ],
)
def test_a_fault_of_the_other_kinds_is_found(
    kind: str, plant: Plant, expected: str, released: Released, tmp_path: Path
) -> None:
    released.copy(kind, tmp_path)
    assert found_in(tmp_path) == {}
    forged = Forgery(tmp_path)
    plant(forged)
    forged.finish()
    found = found_in(tmp_path)
    assert expected in found, found
    assert not SEALED & found.keys(), found


# ---- files and entries that were changed as they lie there ---------------------------------------


def test_a_changed_published_file(released: Released, tmp_path: Path) -> None:
    released.copy("adsbpc", tmp_path)
    file = tmp_path / "adsbpc-releases" / "acme" / "spring" / "0003.json"
    file.write_text(published(tmp_path)[3].replace('"value":', '"value": ', 1))
    assert found_in(tmp_path).keys() == {"published files"}


def test_a_published_file_of_no_slot(released: Released, tmp_path: Path) -> None:
    released.copy("adsbpc", tmp_path, 3)
    folder = tmp_path / "adsbpc-releases" / "acme" / "spring"
    (folder / "0004.json").write_text(published(tmp_path)[3])
    assert found_in(tmp_path).keys() == {"published files"}


@pytest.mark.parametrize("position", [1, 2, 3, 10, 17])
def test_an_entry_that_is_not_sealed(position: int, released: Released, tmp_path: Path) -> None:
    released.copy("personal, cut", tmp_path)
    forged = Forgery(tmp_path)
    forged.entries[position - 1]["recorded_at"] = "2026-01-01T00:00:00"
    forged.write_entries()
    found = found_in(tmp_path)
    assert found.keys() == {"chain of the ledger"}
    assert f"entry {position} (" in found["chain of the ledger"]


def test_a_body_that_its_hash_does_not_know(released: Released, tmp_path: Path) -> None:
    released.copy("personal, cut", tmp_path)
    forged = Forgery(tmp_path)
    (row,) = [row for row in forged.entries if (row["kind"], row["slot"]) == ("state", 3)]
    row["body"] += " "
    forged.write_entries()
    found = found_in(tmp_path)
    assert found.keys() == {"chain of the ledger"}
    assert "the body of entry" in found["chain of the ledger"]


def test_a_body_that_nobody_can_read(released: Released, tmp_path: Path) -> None:
    released.copy("personal, cut", tmp_path)
    forged = Forgery(tmp_path)
    (row,) = [row for row in forged.entries if (row["kind"], row["slot"]) == ("state", 3)]
    row["body"] = "{"
    forged.write_entries()
    assert "chain of the ledger" in found_in(tmp_path)


def delete(path: Path) -> None:
    path.unlink()


def scribble(path: Path) -> None:
    path.write_bytes(b"this is no Parquet")


def drop_a_column(path: Path) -> None:
    table = pq.ParquetFile(path).read()
    pq.write_table(
        table.drop_columns(["moved" if "moved" in table.schema.names else "number"]), path
    )


def turn_into_floats(path: Path) -> None:
    table = pq.ParquetFile(path).read()
    name = "moved" if "moved" in table.schema.names else "number"
    position = table.schema.get_field_index(name)
    pq.write_table(table.set_column(position, name, table[name].cast(pa.float64())), path)


@pytest.mark.parametrize("act", [delete, scribble, drop_a_column, turn_into_floats])
@pytest.mark.parametrize("file", [NAMES, CELLS, CUT, USERS])
def test_a_broken_book_file(
    file: str, act: Callable[[Path], None], released: Released, tmp_path: Path
) -> None:
    released.copy("personal, cut", tmp_path)
    path = committed(tmp_path)[4] / file
    act(path)
    found = found_in(tmp_path)
    assert {"book files", "costs of people", "accounts"} <= found.keys()
    assert file in found["book files"]
    assert file in found["costs of people"]
    # The ledger may name the broken file, and it is broken all the same.
    Forgery(tmp_path).finish()
    found = found_in(tmp_path)
    assert {"costs of people", "accounts", "kept totals"} <= found.keys()
    assert ("book files" in found) == (act is delete)
