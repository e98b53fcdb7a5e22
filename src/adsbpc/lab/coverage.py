"""How often intervals hold what they should: campaigns with several measures, repeated on made-up
people of whom some do ten times as much as most. Nothing touches a file or a ledger."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from adsbpc.contributions import ArrayAccounts, ArrayContributions, CellIndex
from adsbpc.mechanisms import (
    Measures,
    PersonalBudget,
    PersonalState,
    guarantee_of,
    plan_measures,
    promise_with,
)
from adsbpc.model import (
    ALL_PUBLISHERS,
    PICO_RHO,
    UNITS_PER_CONVERSION,
    Budget,
    CampaignSpec,
    Measure,
    Measured,
    Release,
)
from adsbpc.privacy import SeededRandomness
from adsbpc.report import Report

Whole = NDArray[np.int64]

PUBLISHERS, COUNTRIES = ("search", "social", "video", "news"), ("DE", "FR")
_OF_PUBLISHERS, _OF_COUNTRIES = (0.4, 0.25, 0.15, 0.1, 0.1), (0.5, 0.3, 0.2)
# Conversions and impressions of a person on average, and how much people differ in both: as a
# standard deviation of logarithms.
_CONVERSIONS, _IMPRESSIONS, _SPREAD = 3.0, 12.0, 1.0
_PRICE, _PRICE_SPREAD, _VALUE_CAP = 40.0, 0.7, 150.0
_LEVEL = 0.95

# Keys of a sum, and what is true of it.
Truth = dict[tuple[str, ...], float]


@dataclass(frozen=True)
class RepeatedCampaign:
    """So many people in each campaign, over so many days, for a budget."""

    people: int = 4_000
    slots: int = 31
    rho: str = "1"

    @property
    def spec(self) -> CampaignSpec:
        by_country = ["publisher", "country"]
        return CampaignSpec.model_validate(
            {
                "campaign": {
                    "name": "coverage", "advertiser": "lab", "start": "2026-03-01",
                    "slots": self.slots, "publishers": list(PUBLISHERS),
                },
                "events": {"impressions": "none.parquet", "conversions": "none.parquet"},
                "privacy": {"rho": float(Fraction(self.rho))},
                "dimensions": {"country": {"column": "country", "values": list(COUNTRIES)}},
                "measure": [
                    {"name": "conversions", "by": by_country},
                    {"name": "revenue", "metric": "value", "value_cap": _VALUE_CAP,
                     "by": by_country},
                    {"name": "impressions", "metric": "impressions"},
                    {"name": "reach", "metric": "reach"},
                ],
            }
        )  # fmt: skip


@dataclass(frozen=True)
class Month:
    """What everybody did, an entry each; days are counted from 0, `place` is that in the product of
    publishers and countries, or in the list of publishers."""

    buyer: Whole
    bought_on: Whole
    bought: Whole
    price: NDArray[np.float64]
    viewer: Whole
    seen_on: Whole
    seen: Whole

    @classmethod
    def of(cls, campaign: RepeatedCampaign, rng: Generator) -> Month:
        activity = np.exp(rng.normal(-(_SPREAD**2) / 2, _SPREAD, campaign.people))
        country = rng.choice(len(_OF_COUNTRIES), campaign.people, p=_OF_COUNTRIES)
        buyer, viewer = (
            np.repeat(np.arange(campaign.people), rng.poisson(mean * activity))
            for mean in (_CONVERSIONS, _IMPRESSIONS)
        )
        sold_by, seen = (
            rng.choice(len(_OF_PUBLISHERS), each.size, p=_OF_PUBLISHERS) for each in (buyer, viewer)
        )
        price = _PRICE * np.exp(rng.normal(-(_PRICE_SPREAD**2) / 2, _PRICE_SPREAD, buyer.size))
        return cls(
            buyer, rng.integers(0, campaign.slots, buyer.size),
            sold_by * len(_OF_COUNTRIES) + country[buyer], price,
            viewer, rng.integers(0, campaign.slots, viewer.size), seen,
        )  # fmt: skip

    def rows(self, measure: Measure, slots: int) -> ArrayContributions:
        """As a campaign would contribute them."""
        layout = measure.layout
        user, day, cell = self.buyer, self.bought_on, self.bought
        if measure.of_impressions:
            user, day, cell = self.viewer, self.seen_on, self.seen
        weight = np.full(user.size, UNITS_PER_CONVERSION)
        if measure.value_cap is not None:
            share = np.minimum(self.price, measure.value_cap) / measure.value_cap
            weight = np.floor(UNITS_PER_CONVERSION * share).astype(np.int64)
        if layout.once:
            starts = [sum(layout.sizes[:depth]) for depth in range(len(layout.sizes))]
            cell = np.concatenate(
                [
                    start + cell // (layout.sizes[-1] // size)
                    for start, size in zip(starts, layout.sizes, strict=True)
                ]
            )
            views = len(layout.sizes)
            user, day, weight = (np.tile(each, views) for each in (user, day, weight))
        return ArrayContributions(user, day + 1, cell, weight, slots, layout)

    def truth(self, measure: Measure) -> Truth:
        """Of all slots, for the sums of all views; people are told apart by themselves."""
        found: Truth = {}
        lists = [each.values for each in measure.layout.dimensions]
        for depth in range(len(lists) + 1):
            for place, keys in enumerate(product(*lists[:depth])):
                stride = measure.layout.sizes[-1] // measure.layout.sizes[depth]
                if measure.of_impressions:
                    mine = self.viewer[self.seen // stride == place]
                    found[keys] = float(np.unique(mine).size if measure.layout.once else mine.size)
                    continue
                bought = self.bought // stride == place
                cap = measure.value_cap
                found[keys] = float(
                    bought.sum() if cap is None else np.minimum(self.price[bought], cap).sum()
                )
        return found


def released(spec: CampaignSpec, measures: Measures, month: Month, seed: int) -> Report:
    """A campaign from the first slot to the last."""
    randomness, slots = SeededRandomness(seed), spec.campaign.slots
    by_slot: list[list[Measured]] = [[] for _ in range(slots)]
    for measure, mechanism in measures.runs:
        assert isinstance(mechanism, PersonalBudget)
        accounts = ArrayAccounts(CellIndex.of(month.rows(measure, slots)))
        state = PersonalState()
        for found in by_slot:
            drawn, state = mechanism.release(state, accounts, randomness)
            found.append(Measured(**dict(drawn), measure=measure.name, metric=measure.metric))
    releases = tuple(
        _release(spec, slot, tuple(found)) for slot, found in enumerate(by_slot, start=1)
    )
    rho = guarantee_of(spec).rho
    budget = Budget(int(rho * PICO_RHO), int(rho * PICO_RHO))
    return Report(spec, releases, promise_with(spec, rho), budget, budget, _LEVEL)


def _release(spec: CampaignSpec, slot: int, found: tuple[Measured, ...]) -> Release:
    starts_at, ends_at = spec.grid.bounds_text(slot)
    return Release(
        scope=spec.campaign.scope,
        campaign=spec.campaign.name,
        slot=slot,
        starts_at=starts_at,
        ends_at=ends_at,
        measures=found,
    )


@dataclass(frozen=True)
class Held:
    """Figures of one kind in one campaign: how many there are, how many are told, and how many of
    those have an interval below, around and above what is true."""

    figures: int = 0
    told: int = 0
    below: int = 0
    above: int = 0


# By measure or ratio, and view.
Trial = dict[tuple[str, str], Held]


def one_trial(campaign: RepeatedCampaign, seed: int) -> Trial:
    spec = campaign.spec
    month = Month.of(campaign, np.random.default_rng((seed, 1)))
    report = released(spec, plan_measures(spec), month, seed)
    truths = {measure.name: month.truth(measure) for measure in spec.measures}
    found: Trial = {}
    for measure in spec.measures:
        for cell in report.newest_totals(measure, len(measure.layout.dimensions)):
            truth = truths[measure.name][cell.keys]
            view = measure.layout.view_name(len(cell.keys))
            _add(found, (measure.name, view), cell.low, cell.high, truth)
    above_and_below = {
        "value per conversion": ("revenue", "conversions"),
        "conversion rate": ("conversions", "reach"),
        "frequency": ("impressions", "reach"),
    }
    for ratio in report.ratios:
        keys = () if ratio.publisher == ALL_PUBLISHERS else (ratio.publisher,)
        above, below = (truths[name][keys] for name in above_and_below[ratio.name])
        view = "publisher" if keys else "total"
        _add(found, (ratio.name, view), ratio.low, ratio.high, above / below)
    return found


def _add(
    found: Trial, kind: tuple[str, str], low: float | None, high: float | None, truth: float
) -> None:
    before = found.get(kind, Held())
    told = low is not None and high is not None
    found[kind] = Held(
        before.figures + 1,
        before.told + told,
        before.below + (high is not None and high < truth),
        before.above + (low is not None and low > truth),
    )


def trials_of(campaign: RepeatedCampaign, trials: int, seed: int, jobs: int) -> Iterator[Trial]:
    """As they are done, in order."""
    seeds = range(seed * 1_000_000, seed * 1_000_000 + trials)
    if jobs <= 1:
        yield from map(partial(one_trial, campaign), seeds)
        return
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        yield from pool.map(partial(one_trial, campaign), seeds)


def rows_of(trials: list[Trial]) -> list[dict[str, Any]]:
    """For each measure or ratio, and view: the part of its intervals that hold the truth. Figures
    of one campaign go together, so that the standard error is that of campaigns."""
    found = []
    for name, view in trials[0]:
        held: list[Held] = [trial[name, view] for trial in trials]
        told = sum(each.told for each in held)
        parts = [1 - (each.below + each.above) / each.told for each in held if each.told]
        found.append(
            {
                "figure": name, "view": view, "campaigns": len(trials),
                "intervals": told, "cannot_be_told": sum(each.figures for each in held) - told,
                "coverage": sum(parts) / len(parts) if parts else None,
                "standard_error": _error(parts),
                "too_low": sum(each.below for each in held),
                "too_high": sum(each.above for each in held),
            }
        )  # fmt: skip
    return found


def _error(parts: list[float]) -> float | None:
    return float(np.std(parts, ddof=1)) / sqrt(len(parts)) if len(parts) > 1 else None
