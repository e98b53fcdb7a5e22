"""Multipliers, sizes, renewals and what is asked of accounts follow from what was released, and
from nothing else: campaigns about other people, made to release the same figures, choose the same.
Choices that look at anything that was not released are planted, and each must be found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from adsbpc.contributions import ArrayAccounts, ArrayContributions, CellIndex
from adsbpc.mechanisms import BudgetByRows, RowsState
from adsbpc.mechanisms.by_rows import mechanism as by_rows
from adsbpc.mechanisms.by_rows.allowance import Standing
from adsbpc.mechanisms.by_rows.outlook import Outlook
from adsbpc.mechanisms.by_rows.planning import plan_by_rows
from adsbpc.mechanisms.by_rows.sizes import sizes_of
from adsbpc.mechanisms.by_rows.state import Row
from adsbpc.mechanisms.planning import question_of
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import Drawn, Layout
from adsbpc.model.release_spec import PersonalBudgetSection
from adsbpc.privacy import SeededRandomness, noisy_histogram, noisy_row
from tests.mechanisms.campaigns import spec_of

SLOTS = 9
FINEST = Layout.of_publishers(("A", "B", "other"))
LAYOUTS = {"cells": FINEST, "sums": replace(FINEST, weights=(1, 2))}
# People, how much each does, and how unlike publishers are.
CROWDS = {"many": (3_000, 0.4, 0.3), "few": (60, 0.5, 0.9), "heavy": (500, 0.02, 0.5)}
Choice = tuple[str, Any]


def planned(layout: Layout) -> BudgetByRows:
    spec = spec_of(SLOTS, mechanism="personal-budget", publishers=("A", "B"))
    question = replace(question_of(spec, spec.measures[0]), layout=layout)
    return plan_by_rows(question, PersonalBudgetSection())


def accounts_of(crowd: str, layout: Layout) -> RecordingAccounts:
    people, rate, unlike = CROWDS[crowd]
    rng = np.random.default_rng(people)
    users = np.repeat(np.arange(people), rng.geometric(rate, people))
    cells = np.minimum(rng.geometric(unlike, users.size) - 1, 2)
    slots = rng.integers(1, SLOTS + 1, users.size)
    rows = ArrayContributions(
        [f"u{user}" for user in users], slots.tolist(), cells.tolist(), [UNIT] * users.size,
        SLOTS, FINEST,
    )  # fmt: skip
    return RecordingAccounts(CellIndex.of(rows, layout))


class RecordingAccounts(ArrayAccounts):
    """Writes down every question with all that is asked: all of it must be public."""

    def __init__(self, index: CellIndex) -> None:
        super().__init__(index)
        self.asked: list[Choice] = []

    def open(self, *given: Any) -> None:
        self.asked.append(("open", given))
        super().open(*given)

    def needs(self, *given: Any) -> Any:
        self.asked.append(("needs", given))
        return super().needs(*given)

    def renew(self, renewal: Any) -> list[list[int]]:
        self.asked.append(("renew", renewal))
        return super().renew(renewal)

    def admit(self, terms: Any) -> list[int]:
        self.asked.append(("admit", terms))
        return super().admit(terms)


@dataclass
class Door:
    """The door that figures leave by. It writes down what leaves, or lets out a script in place of
    what came: noise that happens to be the difference."""

    script: Iterator[tuple[int, ...]] | None = None

    def __post_init__(self) -> None:
        self.left: list[tuple[int, ...]] = []

    def __call__(self, leave: Callable[..., Any]) -> Callable[..., Any]:
        def noisy(*given: Any) -> Any:
            found = leave(*given)
            if self.script is not None:
                found = replace(found, values=next(self.script))
            self.left.append(tuple(map(int, found.values)))
            return found

        return noisy


@dataclass(frozen=True)
class Ran:
    releases: list[Drawn]
    asked: list[Choice]
    left: list[tuple[int, ...]]
    kept: tuple[tuple[int, ...], ...]


def run(layout: Layout, crowd: str, script: list[tuple[int, ...]] | None = None) -> Ran:
    """A campaign, whose figures are those of a script if there is one."""
    mechanism = planned(layout)
    accounts = accounts_of(crowd, mechanism.counted)
    door = Door(None if script is None else iter(script))
    state, releases = RowsState(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_rows, "noisy_row", door(noisy_row))
        patch.setattr(by_rows, "noisy_histogram", door(noisy_histogram))
        for _ in range(SLOTS):
            released, state = mechanism.release(state, accounts, SeededRandomness(len(crowd)))
            releases.append(released)
    return Ran(releases, accounts.asked, door.left, state.kept)


def differences(layout: Layout) -> list[str]:
    """What campaigns about other people choose otherwise, though they release the same."""
    first = run(layout, "many")
    assert len({release.sizes for release in first.releases}) > 1, "sizes never change"
    assert any(release.is_renewal for release in first.releases), "nothing is renewed"
    found = []
    for crowd in ("few", "heavy"):
        other = run(layout, crowd, first.left)
        assert other.left == first.left
        assert other.kept != first.kept
        found += [
            f"{crowd}: {name} of slot {one.slot}"
            for one, two in zip(first.releases, other.releases, strict=True)
            for name in ("allowance", "multipliers", "sizes", "is_renewal")
            if getattr(one, name) != getattr(two, name)
        ]
        # Nothing else of a release, and nothing that accounts are asked, may differ either.
        found += [f"{crowd}: releases"] if other.releases != first.releases else []
        found += [f"{crowd}: questions"] if other.asked != first.asked else []
    return found


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_choices_that_follow_what_was_not_released(layout: Layout) -> None:
    assert differences(layout) == []


# ---- choices that look at what was not released --------------------------------------------------

STANDING, LOOK, CHOOSE = BudgetByRows._standing, BudgetByRows._look, Outlook.choose
RENEW = BudgetByRows._is_renewal


def exact_totals(self: BudgetByRows, state: RowsState) -> Any:
    return np.array(state.kept, dtype=np.float64)[:, : len(self.layout)].sum(axis=0) / UNIT


def allowance_of_exact_totals(patch: pytest.MonkeyPatch) -> None:
    def standing(self: BudgetByRows, state: RowsState) -> tuple[Standing, tuple[int, ...]]:
        found, sizes = STANDING(self, state)
        return (replace(found, totals=exact_totals(self, state)) if state.kept else found), sizes

    patch.setattr(BudgetByRows, "_standing", standing)


def sizes_of_exact_totals(patch: pytest.MonkeyPatch) -> None:
    def standing(self: BudgetByRows, state: RowsState) -> tuple[Standing, tuple[int, ...]]:
        found, sizes = STANDING(self, state)
        if state.next_slot in (2, 4, 8):
            totals = 1 + exact_totals(self, state)
            sizes = sizes_of(totals, np.ones(len(totals)), sizes, self.counted)
        return found, sizes

    patch.setattr(BudgetByRows, "_standing", standing)


def allowance_of_a_look_without_noise(patch: pytest.MonkeyPatch) -> None:
    """The histogram is published with noise, and used without."""
    exact: list[int] = []

    def look(self: BudgetByRows, slot: int, accounts: Any, doubt: float, source: Any) -> Any:
        own = self.measurement
        if slot in self.looks:
            growth = own.needs.of_looks(slot, doubt)
            exact[:] = map(int, accounts.needs(own.costs(slot), self._edges, growth))
        return LOOK(self, slot, accounts, doubt, source)

    def choose(
        self: Outlook, rows: list[Row], histogram: list[int], standing: Standing, sizes: Any
    ) -> float:
        return CHOOSE(self, rows, exact if histogram else [], standing, sizes)

    patch.setattr(BudgetByRows, "_look", look)
    patch.setattr(Outlook, "choose", choose)


def renewal_when_much_was_cut(patch: pytest.MonkeyPatch) -> None:
    cut: list[int] = [0]

    def standing(self: BudgetByRows, state: RowsState) -> tuple[Standing, tuple[int, ...]]:
        cut[0] = sum(sum(row[len(self.counted) :]) for row in state.kept)
        return STANDING(self, state)

    def is_renewal(self: BudgetByRows, *given: Any) -> bool:
        return cut[0] > 5 * UNIT or RENEW(self, *given)

    patch.setattr(BudgetByRows, "_standing", standing)
    patch.setattr(BudgetByRows, "_is_renewal", is_renewal)


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        (allowance_of_exact_totals, "allowance"),
        (sizes_of_exact_totals, "sizes"),
        (allowance_of_a_look_without_noise, "allowance"),
        (renewal_when_much_was_cut, "is_renewal"),
    ],
)
def test_a_choice_that_looks_is_found(
    mistake: Callable[[pytest.MonkeyPatch], None], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)
    assert any(expected in each for each in differences(FINEST))
