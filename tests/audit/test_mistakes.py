"""Releases by code with a mistake in it: everything is sealed and charged as usual, and the audit
tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from adsbpc import Campaign
from adsbpc.mechanisms import PersonalBudget
from adsbpc.model import Adjacency, Layout
from adsbpc.privacy import LIMIT, Terms, noisy_totals, row_scale
from adsbpc.privacy.gaussian import Noisy
from tests.audit.campaigns import SUBSTITUTE, broken
from tests.campaign.files import FIXED, write_campaign

PLANNED = PersonalBudget.terms


def only_rows_so_far(self: PersonalBudget, slot: int, multiplier: int) -> Terms:
    """Rows of the future do not count."""
    so_far = self.strategy.matrix[:slot, :slot]
    costs = tuple(int(cost) for cost in (so_far.T @ so_far)[slot - 1])
    return replace(PLANNED(self, slot, multiplier), costs=costs)


def everything_at_once(self: PersonalBudget, slot: int, multiplier: int) -> Terms:
    """The first slots may spend what only later ones are charged for."""
    kept = LIMIT * 19 // 20
    terms = PLANNED(self, slot, multiplier)
    return replace(terms, kept_limit=kept, cut_limit=LIMIT - kept)


def another_multiplier(self: PersonalBudget, slot: int, multiplier: int) -> Terms:
    """Not the one that the public allowance means."""
    return PLANNED(self, slot, multiplier + slot // 3)


def noise_for_one_person(rho: Fraction, _adjacency: Adjacency) -> float:
    """As if replacing somebody moved no more than adding somebody."""
    return row_scale(rho, Adjacency.ADD_REMOVE)


def audited(directory: Path, privacy: str) -> dict[str, str]:
    file = write_campaign(directory, privacy=privacy)
    Campaign.load(file).release()
    return broken(Campaign.load(file).audit())


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        (only_rows_so_far, {"costs of people", "plain recount", "accounts"}),
        (everything_at_once, {"costs of people", "plain recount"}),
    ],
)
def test_a_mistake_of_the_filter(
    mistake: object, expected: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PersonalBudget, "terms", mistake)
    assert audited(tmp_path, FIXED).keys() == expected


def test_a_mistake_of_the_multiplier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PersonalBudget, "allowance_of", lambda self, multiplier: 1.0)
    monkeypatch.setattr(PersonalBudget, "terms", another_multiplier)
    assert audited(tmp_path, FIXED).keys() == {"multipliers"}


def test_a_mistake_of_the_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adsbpc.mechanisms.personal_budget.row_scale", noise_for_one_person)
    found = audited(tmp_path, f"{SUBSTITUTE}\n{FIXED}")
    assert found.keys() == {"noise scale"}


def test_a_mistake_of_adsbpc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for half of the bound."""

    def half(totals: Sequence[int], layout: Layout, bound: int, *rest: Any) -> Noisy:
        return noisy_totals(totals, layout, bound // 2, *rest)

    monkeypatch.setattr("adsbpc.mechanisms.adsbpc.noisy_totals", half)
    assert audited(tmp_path, "").keys() == {"noise scale"}
