"""Faults to plant in a campaign of which everybody is cut: twelve people, three publishers, five
slots of which the second is empty."""

from __future__ import annotations

from tests.audit.exact import PLACES
from tests.audit.forgery import CELLS, CUT, NAMES, REST, Forgery


def changed_multiplier(forged: Forgery) -> None:
    forged.step(3)["multipliers"][0] += 1


def moved_cell(forged: Forgery) -> None:
    """What was let in counts for another publisher."""
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
                row["moved"] -= row["moved"] % forged.step(slot)["multipliers"][0]
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
    forged.step(4)["kept"][-1][1] += 1


def cut_total_that_does_not_add_up(forged: Forgery) -> None:
    forged.step(4)["kept"][-1][-1] -= 1


def cut_that_was_not_charged(forged: Forgery) -> None:
    forged.rows(4, CUT)[0].update(charge_high=0, charge_low=0)


def cut_charged_to_somebody_else(forged: Forgery) -> None:
    one, other = forged.rows(4, CUT)[:2]
    one["charge_low"], other["charge_low"] = one["charge_low"] - 1, other["charge_low"] + 1


def cut_that_nobody_asked_for(forged: Forgery) -> None:
    row = forged.rows(4, CUT)[0]
    row["moved"] += 10**6 * forged.step(4)["multipliers"][1]
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


def rest_of_nothing(forged: Forgery) -> None:
    """With so few cells, one column counts what was cut."""
    forged.rows(4, REST).append(dict(forged.rows(4, CUT)[0]))


def changed_strategy(forged: Forgery) -> None:
    """A later row counts an early slot less: everybody costs less than the books say."""
    assert forged.opening["strategy"][1][0] > 1
    forged.opening["strategy"][1][0] -= 1


def negative_strategy(forged: Forgery) -> None:
    forged.opening["strategy"][1][0] *= -1


def weaker_noise(forged: Forgery) -> None:
    for slot in range(1, 6):
        forged.measure(slot)["scale"] *= 0.999


def noise_that_was_left_out(forged: Forgery) -> None:
    """What was published is the exact sum."""
    for slot, sums in forged.exact().sums.items():
        forged.measure(slot)["values"] = forged.step(slot)["values"] = sums


def noise_that_is_too_large(forged: Forgery) -> None:
    """Or: what was published has little to do with what was let in."""
    forged.step(3)["values"][0] += int(20 * forged.measure(3)["scale"])
    forged.measure(3)["values"] = forged.step(3)["values"]


def release_of_other_values(forged: Forgery) -> None:
    forged.measure(3)["values"] = [value + 1 for value in forged.measure(3)["values"]]


def charge_that_is_too_small(forged: Forgery) -> None:
    forged.charge(3)["pico_rho"] -= 1
    forged.measure(3)["charges"][0]["pico_rho"] -= 1


def charge_that_nobody_told(forged: Forgery) -> None:
    forged.measure(3)["charges"][0]["pico_rho"] -= 1


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
    forged.measure(2)["randomness"] = "seeded-1"


def slot_left_out(forged: Forgery) -> None:
    for kind, part in (("charge", "measurement"), ("state", ""), ("release", "")):
        forged.remove(kind, 3, part)


def no_books(forged: Forgery) -> None:
    del forged.step(3)["books"]


def multiplier_that_is_sql(forged: Forgery) -> None:
    forged.step(3)["multipliers"][0] = "1 <> 0 THEN 'x' END AS fault FROM slot_cells) AS x --"


def total_that_is_no_number(forged: Forgery) -> None:
    forged.step(3)["kept"][0][0] = "12"


def budget_that_is_no_number(forged: Forgery) -> None:
    forged.opening["slot_pico_rho"][2] = "1"


def unreadable_plan(forged: Forgery) -> None:
    forged.opening["promise"] = {}


def answer_without_noise(forged: Forgery) -> None:
    """The values are noisy, and the answer beside them is the truth."""
    forged.measure(4)["running_totals"][1]["values"][0] = 40.0


def answer_for_nobody(forged: Forgery) -> None:
    forged.measure(4)["slot_totals"].append(
        {**forged.measure(4)["slot_totals"][1], "values": [0.0] * 9}
    )


def more_than_was_promised(forged: Forgery) -> None:
    forged.release(4)["people"] = 12
