"""Planted faults of looks at people, of AdsBPC and of fits."""

from __future__ import annotations

from pathlib import Path

import pytest

from adsbpc import Campaign
from tests.audit import plants
from tests.audit.campaigns import SEALED, Released, found_in
from tests.audit.exact import PLACES, multipliers
from tests.audit.forgery import CELLS, Forgery, Plant
from tests.campaign.files import PERSONAL, write_campaign

# ---- looks at people ----------------------------------------------------------------------------


def _looks(forged: Forgery) -> list[int]:
    return [slot for slot in range(1, forged.slots + 1) if forged.step(slot)["histogram"]]


def histogram_without_noise(forged: Forgery) -> None:
    for slot in _looks(forged):
        exact = [0] * len(forged.step(slot)["histogram"])
        exact[3] = 12
        forged.measure(slot)["histogram"] = forged.step(slot)["histogram"] = exact


def histogram_of_other_people(forged: Forgery) -> None:
    for slot in _looks(forged):
        forged.step(slot)["histogram"][0] += 10_000
        forged.measure(slot)["histogram"] = forged.step(slot)["histogram"]


def histogram_that_was_not_charged(forged: Forgery) -> None:
    forged.remove("charge", 2, "histogram")
    lines = forged.measure(2)["charges"]
    forged.measure(2)["charges"] = [line for line in lines if line["part"] != "histogram"]


def histograms_above_their_share(forged: Forgery) -> None:
    (line,) = [each for each in forged.measure(2)["charges"] if each["part"] == "histogram"]
    line["pico_rho"] += 10**9
    forged.charge(2, "histogram")["pico_rho"] += 10**9


def histograms_other_than_planned(forged: Forgery) -> None:
    """Less for one look, more for another: their sum is what it may be."""
    for slot, more in ((1, -(10**6)), (2, 10**6)):
        (line,) = [e for e in forged.measure(slot)["charges"] if e["part"] == "histogram"]
        line["pico_rho"] += more
        forged.charge(slot, "histogram")["pico_rho"] += more


def another_allowance(forged: Forgery) -> None:
    forged.measure(4)["allowance"] *= 1.01


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (histogram_of_other_people, "histograms"),
        (histogram_that_was_not_charged, "charges"),
        (histograms_above_their_share, "charges"),
        (histograms_other_than_planned, "charges"),
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


def test_histograms_without_noise(tmp_path: Path) -> None:
    """Sums without noise are strange only if there are several."""
    Campaign.load(write_campaign(tmp_path, slots=14, privacy=PERSONAL)).release()
    forged = Forgery(tmp_path)
    assert len(_looks(forged)) == 5
    histogram_without_noise(forged)
    forged.finish()
    found = found_in(tmp_path)
    assert "too small" in found["histograms"]
    assert not SEALED & found.keys(), found


def test_one_histogram_whose_noise_adds_up_to_nothing(released: Released, tmp_path: Path) -> None:
    """Noise is whole numbers: once in a while it does."""
    released.copy("personal", tmp_path, slots=1)
    forged = Forgery(tmp_path)
    bins = forged.step(1)["histogram"]
    bins[0] += 12 - sum(bins)
    forged.measure(1)["histogram"] = bins
    forged.finish()
    assert not found_in(tmp_path)


# ---- people who are counted once ----------------------------------------------------------------


def person_counted_again(forged: Forgery) -> None:
    """Somebody of the first slot is counted on the third too, and everything else agrees."""
    again, step = forged.cell(1), forged.step(3)
    asked, place = again["asked"], again["cell"] % PLACES
    forged.rows(3, CELLS).append({**again, "slot": 3, "moved": asked * multipliers(step)[place]})
    forged.follow()


def person_counted_as_two(forged: Forgery) -> None:
    row = forged.cell(3)
    row["asked"] *= 2
    row["moved"] *= 2
    forged.follow()


def person_missing_from_the_total(forged: Forgery) -> None:
    """Of a publisher's people one is not among all people."""
    rows = forged.rows(3, CELLS)
    rows.remove(next(row for row in rows if row["cell"] % PLACES == 0 and row["moved"]))
    forged.follow()


def total_from_publishers(forged: Forgery) -> None:
    """The answer for everything is a sum, as if nobody were met by two publishers."""
    totals, publishers, *_ = forged.measure(5)["running_totals"]
    totals["values"] = [sum(publishers["values"])]


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (person_counted_again, "people counted once"),
        (person_counted_as_two, "people counted once"),
        (person_missing_from_the_total, "people counted once"),
        (total_from_publishers, "answers"),
    ],
)
def test_a_fault_of_people_is_found(
    plant: Plant, expected: str, released: Released, tmp_path: Path
) -> None:
    released.copy("personal, people, cut", tmp_path)
    assert not found_in(tmp_path)
    forged = Forgery(tmp_path)
    plant(forged)
    forged.finish()
    found = found_in(tmp_path)
    assert expected in found, found
    assert not SEALED & found.keys(), found


# ---- AdsBPC and fits ----------------------------------------------------------------------------


def weaker_noise_of_a_slot(forged: Forgery) -> None:
    scale = forged.measure(3)["scale"] * 0.999
    forged.measure(3)["scale"], forged.step(3)["scale"] = scale, scale.hex()


def larger_bound(forged: Forgery) -> None:
    forged.measure(3)["bound"] = forged.step(3)["bound"] = forged.step(3)["bound"] + 1


def bound_of_nothing(forged: Forgery) -> None:
    forged.measure(3)["bound"] = forged.step(3)["bound"] = 0


def bound_that_was_not_used(forged: Forgery) -> None:
    forged.step(3)["bound"] += 1


def half_a_promise(forged: Forgery) -> None:
    """Noise for adding and removing people, under a promise about replacing them."""
    forged.scope["adjacency"] = "substitute"
    forged.opening["promise"]["privacy"]["adjacency"] = "substitute"


def two_promises(forged: Forgery) -> None:
    forged.scope["adjacency"] = "substitute"


def cheaper_slot(forged: Forgery) -> None:
    (line,) = [each for each in forged.measure(3)["charges"] if each["part"] == "measurement"]
    line["pico_rho"] -= 1
    forged.charge(3)["pico_rho"] -= 1


def dearer_slot(forged: Forgery) -> None:
    (line,) = [each for each in forged.measure(3)["charges"] if each["part"] == "measurement"]
    line["pico_rho"] += 1
    forged.charge(3)["pico_rho"] += 1


def books_of_adsbpc(forged: Forgery) -> None:
    forged.step(3)["books"] = {"attempt": "attempt=1", "files": {}}


def another_part_of_what_was_cut(forged: Forgery) -> None:
    spread = forged.measure(5)["spread"]
    spread[0], spread[1] = spread[0] + 1e-3, spread[1] - 1e-3


def more_added_than_was_cut(forged: Forgery) -> None:
    """Values and what is added agree, and no histogram says so."""
    spread = forged.measure(5)["spread"]
    for answers in forged.measure(5)["running_totals"]:
        answers["added"] += 5.0
        parts = spread if answers["view"] else [1.0]
        both = zip(answers["values"], parts, strict=True)
        answers["values"] = [value + 5.0 * part for value, part in both]


def nothing_to_be_added(forged: Forgery) -> None:
    """As if the campaign had begun before answers had what was cut."""
    assert forged.opening["adds_cut"]
    forged.opening["adds_cut"] = False


def histogram_of_more_who_were_cut(forged: Forgery) -> None:
    """Far more people above the bound than what is added tells of."""
    bins = forged.step(2)["histogram"]
    bins[-8] += 5_000
    forged.measure(2)["histogram"] = bins


def quantile_that_was_not_charged(forged: Forgery) -> None:
    forged.remove("charge", 2, "quantile")
    lines = forged.measure(2)["charges"]
    forged.measure(2)["charges"] = [line for line in lines if line["part"] != "quantile"]


def sparse_vector_that_was_not_charged(forged: Forgery) -> None:
    forged.remove("charge", 3, "sparse vector")
    lines = forged.measure(3)["charges"]
    forged.measure(3)["charges"] = [line for line in lines if line["part"] != "sparse vector"]


def weaker_noise_of_a_fit(forged: Forgery) -> None:
    forged.release(2)["fit"]["scale"] *= 0.999


def fit_that_was_not_charged(forged: Forgery) -> None:
    forged.remove("charge", 2, "attribution fit")
    forged.release(2)["fit_charge"] = None


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
        ("adsbpc", plants.seeded_noise, "releases"),
        ("adsbpc", plants.answer_without_noise, "answers"),
        ("adsbpc", another_part_of_what_was_cut, "answers"),
        ("adsbpc", more_added_than_was_cut, "answers"),
        ("adsbpc", nothing_to_be_added, "answers"),
        ("adsbpc", histogram_of_more_who_were_cut, "answers"),
        ("adsbpc, values", another_part_of_what_was_cut, "answers"),
        ("adsbpc, substitution", weaker_noise_of_a_slot, "noise scale"),
        ("adsbpc, sparse vector", quantile_that_was_not_charged, "charges"),
        ("adsbpc, sparse vector", sparse_vector_that_was_not_charged, "charges"),
        ("adsbpc, fit", weaker_noise_of_a_fit, "attribution fit"),
        ("adsbpc, fit", fit_that_was_not_charged, "releases"),
        ("personal, fit", weaker_noise_of_a_fit, "attribution fit"),
        ("personal, cut", half_a_promise, "noise scale"),
        ("personal, cut, substitution", plants.budget_above_the_limit, "costs of people"),
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
