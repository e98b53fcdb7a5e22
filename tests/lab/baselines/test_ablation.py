"""Ideas of personal budgets, switched off by name: each takes away what it says, and that alone."""

from __future__ import annotations

import pytest

from adsbpc.contributions import ArrayAccounts
from adsbpc.lab.baselines.ablation import WITHOUT, without
from adsbpc.lab.catalogue import MECHANISMS
from adsbpc.mechanisms import BudgetByRows, RowsState
from adsbpc.privacy import SeededRandomness
from tests.mechanisms.personal_campaigns import SLOTS, index_of, people, planned

IDEAS = ("renewals", "sizes", "cut", "pace", "forecasts")


def found_in(mechanism: BudgetByRows) -> set[str]:
    """The ideas that a run of a mechanism has."""
    rows = [(user, slot, int(place > 4)) for place, (user, slot, _) in enumerate(people())]
    accounts, state, randomness = ArrayAccounts(index_of(rows)), RowsState(), SeededRandomness(1)
    for _ in range(mechanism.slots):
        _, state = mechanism.release(state, accounts, randomness)
    own, slot = mechanism.measurement, 4
    looks = own.needs.of_looks(slot, 1.0)
    has = {
        "renewals": any(row.is_renewal for row in state.rows),
        "sizes": any(len(set(row.sizes)) > 1 for row in state.rows),
        "cut": mechanism.estimates(state.rows).adds,
        "pace": own.terms(slot, state.rows[-1].multipliers, ()).pace is not None,
        "forecasts": len(set(looks.own)) > 1,
    }
    assert mechanism.slots == SLOTS
    return {idea for idea, there in has.items() if there}


def test_a_campaign_without_one_of_the_ideas() -> None:
    assert found_in(planned()) == {*IDEAS}


@pytest.mark.parametrize("idea", IDEAS)
def test_an_idea_that_cannot_be_switched_off(idea: str) -> None:
    # Without renewals, sizes could never change.
    gone = {"renewals", "sizes"} if idea == "renewals" else {idea}
    left = found_in(without(idea, planned()))
    assert left & gone == set()
    # Renewals may be for sizes alone.
    assert left >= {*IDEAS} - gone - {"renewals"}


def test_an_idea_without_a_name_in_the_lab() -> None:
    assert {f"personal-budget-without-{idea}" for idea in IDEAS} == {*WITHOUT} <= {*MECHANISMS}
