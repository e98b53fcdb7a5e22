"""Slots that were released before are taken up again: the same state, without a draw."""

from __future__ import annotations

from typing import Any

import pytest

from adsbpc.contributions import ArrayAccounts
from adsbpc.errors import PrivacyError
from adsbpc.mechanisms import BoundedState, RowsState
from adsbpc.mechanisms.bounds import QuantileAndSparseVector
from adsbpc.model import PICO_RHO, ChargeLine, Drawn, Measured, Release
from adsbpc.privacy import SeededRandomness
from tests.mechanisms.campaigns import Given, conversions, planned
from tests.mechanisms.personal_campaigns import index_of, people
from tests.mechanisms.personal_campaigns import planned as planned_personal

SLOTS = 30
SVT = {"bounds": "svt", "quantile_slots": 2, "max_reports": 3, "threshold": 5}


def release_of(drawn: Drawn, **fields: Any) -> Measured:
    """As it would be read from its file."""
    measured = Measured(**dict(drawn), measure="conversions", metric="conversions")
    text = Release(
        scope="acme", campaign="test", slot=drawn.slot, starts_at="", ends_at="",
        measures=(measured,),
    ).to_text()  # fmt: skip
    return Release.from_text(text).measures[0].model_copy(update=fields)


def crowd(slots: int) -> list[tuple[str, int, int]]:
    """More and more conversions a slot, so that bounds move."""
    return [
        (f"u{user}", slot, user % 2)
        for slot in range(1, slots + 1)
        for user in range(40)
        for _ in range(1 + user * slot // 200)
    ]


@pytest.mark.parametrize(
    "section", [{"bounds": "histogram"}, {"bounds": "fixed", "bound": 2}, SVT], ids=str
)
def test_adsbpc_goes_on_from_what_was_released(section: dict[str, Any]) -> None:
    data = conversions(crowd(SLOTS), SLOTS)
    mechanism = planned(SLOTS, adsbpc=section)
    reported = 0
    for seed in range(5):
        state, randomness = BoundedState(), SeededRandomness(seed)
        for slot in range(1, SLOTS + 1):
            drawn, after = mechanism.release(state, data, randomness)
            if section is SVT and slot == 3:
                with pytest.raises(PrivacyError, match="drew the secret thresholds"):
                    mechanism.adopt(state, Given(), release_of(drawn))
            else:
                found = mechanism.adopt(state, Given(), release_of(drawn))
                assert found.count(after) == 1
                assert len(found) <= 2
                reported += slot > 3 and after.secret != state.secret
            state = after
    assert (reported > 0) == (section is SVT), "no sparse vector reported: this tests nothing"


@pytest.mark.parametrize(
    ("bound", "before", "after"),
    [
        # The bound stays if both report, or neither: the release does not tell.
        (10, (3, 2), [(3, 2), (2, 1)]),
        (13, (3, 2), [(2, 2)]),
        (8, (3, 2), [(3, 1)]),
        (10, (0, 2), [(0, 2)]),
        (13, (0, 2), []),
        (8, (3, 0), []),
        (11, (3, 2), []),
    ],
)
def test_what_a_bound_tells_of_the_reports(
    bound: int, before: tuple[int, int], after: list[tuple[int, int]]
) -> None:
    tracker = planned(SLOTS, adsbpc=SVT).tracker
    assert isinstance(tracker, QuantileAndSparseVector)
    secret = {"up": [before[0], -7], "down": [before[1], 9]}
    found = tracker.secrets_after(9, [10] * 8, secret, bound)
    assert found == [{"up": [up, -7], "down": [down, 9]} for up, down in after]


def test_a_bound_of_one_is_never_lowered() -> None:
    tracker = planned(SLOTS, adsbpc=SVT).tracker
    assert isinstance(tracker, QuantileAndSparseVector)
    secret = {"up": [3, 1], "down": [3, 1]}
    assert tracker.secrets_after(9, [1] * 8, secret, 1) == [secret]


@pytest.mark.parametrize("allowance", [None, 1.5])
def test_personal_budgets_go_on_from_what_was_released(allowance: float | None) -> None:
    section = {} if allowance is None else {"allowance": allowance}
    mechanism = planned_personal(personal_budget=section)
    index, state = index_of(people()), RowsState()
    accounts, again, randomness = ArrayAccounts(index), ArrayAccounts(index), SeededRandomness(1)
    for _ in range(mechanism.slots):
        drawn, after = mechanism.release(state, accounts, randomness)
        assert mechanism.adopt(state, Given(again), release_of(drawn)) == [after]
        state = after
    cut = any(row[-1] for row in state.kept)
    assert cut or allowance is None, "nobody was cut: this tests little"


def test_a_release_without_multipliers() -> None:
    mechanism = planned_personal()
    index = index_of(people())
    drawn, _ = mechanism.release(RowsState(), ArrayAccounts(index), SeededRandomness(1))
    other = release_of(drawn, multipliers=())
    with pytest.raises(PrivacyError, match="has no multipliers"):
        mechanism.adopt(RowsState(), Given(ArrayAccounts(index)), other)


def test_a_release_of_the_other_mechanism() -> None:
    adsbpc, personal = planned(8), planned_personal()
    index, data = index_of(people()), conversions(people(), 8)
    drawn, _ = adsbpc.release(BoundedState(), data, SeededRandomness(1))
    with pytest.raises(PrivacyError, match="was released by adsbpc, not personal-budget"):
        personal.adopt(RowsState(), Given(ArrayAccounts(index)), release_of(drawn))
    kept, _ = personal.release(RowsState(), ArrayAccounts(index), SeededRandomness(1))
    with pytest.raises(PrivacyError, match="was released by personal-budget, not adsbpc"):
        adsbpc.adopt(BoundedState(), Given(), release_of(kept))


def test_charges_that_would_pass_the_promise() -> None:
    mechanism = planned(8)
    drawn, _ = mechanism.release(BoundedState(), conversions(people(), 8), SeededRandomness(1))
    dear = release_of(drawn, charges=(ChargeLine("measurement", 2.0, 2 * PICO_RHO),))
    with pytest.raises(PrivacyError, match="but rho = 1 is promised"):
        mechanism.adopt(BoundedState(), Given(), dear)
