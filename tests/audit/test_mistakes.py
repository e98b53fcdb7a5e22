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
from adsbpc.errors import ContributionError
from adsbpc.mechanisms.by_rows.measurement import Measurement
from adsbpc.model import Adjacency, Layout
from adsbpc.privacy import Renewal, Terms, noisy_totals, row_scale
from adsbpc.privacy.gaussian import Noisy
from tests.audit.campaigns import KINDS, SUBSTITUTE, broken, chosen_renewals
from tests.campaign.files import FIXED, write_campaign

PLANNED, RENEWED = Measurement.terms, Measurement.renewal
Numbers = tuple[int, ...]


def only_rows_so_far(self: Measurement, slot: int) -> Numbers:
    """Rows of the future do not count."""
    so_far = self.strategy.matrix[:slot, :slot]
    return tuple(int(cost) for cost in (so_far.T @ so_far)[slot - 1])


def another_cost(self: Measurement, slot: int, multipliers: Numbers, sizes: Numbers) -> Terms:
    """Not those that the books were opened with."""
    planned = PLANNED(self, slot, multipliers, sizes)
    return replace(planned, costs=(*planned.listed[:-1], planned.own - 1))


def everything_at_once(self: Measurement, slot: int, multipliers: Numbers, sizes: Numbers) -> Terms:
    """The first slots may spend what only later ones are charged for."""
    return replace(PLANNED(self, self.strategy.slots, multipliers, sizes), costs=self.costs(slot))


def another_multiplier(self: Measurement, slot: int, multipliers: Numbers, sizes: Numbers) -> Terms:
    """Not the one that the public allowance means."""
    alike, *cuts = multipliers
    return PLANNED(self, slot, (alike + slot // 3, *cuts), sizes)


def forgotten_rows(self: Measurement, terms: Terms, begun: int) -> Renewal:
    """What released rows have cost is free."""
    renewal = RENEWED(self, terms, begun)
    return replace(renewal, ended=tuple((0,) * len(row) for row in renewal.ended))


def only_the_next_row(self: Measurement, terms: Terms, begun: int) -> Renewal:
    """The past is let in again for one row, and stays in all that come."""
    before = terms.slot - 1
    coming = self.gram(terms.slot, terms.slot, before)
    return replace(RENEWED(self, terms, begun), coming=coming)


def rows_of_the_first_stretch(self: Measurement, terms: Terms, begun: int) -> Renewal:
    """Rows before the last renewal are charged again, with what later ones hold: nobody costs too
    much, and the books say something else."""
    return RENEWED(self, terms, 1)


def noise_for_one_person(rho: Fraction, _adjacency: Adjacency) -> float:
    """As if replacing somebody moved no more than adding somebody."""
    return row_scale(rho, Adjacency.ADD_REMOVE)


def audited(directory: Path, privacy: str) -> dict[str, str]:
    file = write_campaign(directory, privacy=privacy)
    Campaign.load(file).release()
    return broken(Campaign.load(file).audit())


@pytest.mark.parametrize(
    ("method", "mistake", "expected"),
    [
        ("costs", only_rows_so_far, {"costs of people", "plain recount", "accounts"}),
        ("terms", everything_at_once, {"costs of people", "plain recount"}),
    ],
)
def test_a_mistake_of_the_filter(
    method: str,
    mistake: object,
    expected: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Measurement, method, mistake)
    assert audited(tmp_path, FIXED).keys() == expected


def test_two_costs_of_a_slot_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_campaign(tmp_path, privacy=FIXED)
    monkeypatch.setattr(Measurement, "terms", another_cost)
    with pytest.raises(ContributionError, match="opened with other costs of slots"):
        Campaign.load(file).release(1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        (forgotten_rows, {"costs of people", "plain recount", "accounts"}),
        (only_the_next_row, {"costs of people", "plain recount", "accounts"}),
        (rows_of_the_first_stretch, {"accounts"}),
    ],
)
def test_a_mistake_of_renewals(
    mistake: object, expected: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Measurement, "renewal", mistake)
    file = KINDS["personal, renewed"](tmp_path)
    with chosen_renewals():
        Campaign.load(file).release()
    assert broken(Campaign.load(file).audit(), chosen=True).keys() == expected


def test_a_mistake_of_the_multiplier(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Measurement, "terms", another_multiplier)
    found = audited(tmp_path, FIXED)
    assert {"cells", "kept totals"} <= found.keys() <= {"cells", "kept totals", "noise"}


def test_a_mistake_of_the_allowance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Measurement, "allowance_of", lambda self, multiplier: 1.0)
    assert audited(tmp_path, FIXED).keys() == {"multipliers"}


def test_a_mistake_of_the_noise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adsbpc.mechanisms.by_rows.measurement.row_scale", noise_for_one_person)
    found = audited(tmp_path, f"{SUBSTITUTE}\n{FIXED}")
    assert found.keys() == {"noise scale"}


def test_a_mistake_of_adsbpc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise for half of the bound."""

    def half(totals: Sequence[int], layout: Layout, bound: int, *rest: Any) -> Noisy:
        return noisy_totals(totals, layout, bound // 2, *rest)

    monkeypatch.setattr("adsbpc.mechanisms.adsbpc.noisy_totals", half)
    assert audited(tmp_path, "").keys() == {"noise scale"}
