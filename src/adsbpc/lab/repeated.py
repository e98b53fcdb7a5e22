"""Campaigns that can be repeated: made-up people of whom some do ten times as much as most, or
those of a data set of the lab, with what is true of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from adsbpc.contributions import ArrayContributions
from adsbpc.errors import SpecError
from adsbpc.lab.datasets import load_dataset
from adsbpc.model import UNITS_PER_CONVERSION, CampaignSpec, Measure

Whole = NDArray[np.int64]

PUBLISHERS, COUNTRIES = ("search", "social", "video", "news"), ("DE", "FR")
_OF_PUBLISHERS, _OF_COUNTRIES = (0.4, 0.25, 0.15, 0.1, 0.1), (0.5, 0.3, 0.2)
# Conversions and impressions of a person on average, and how much people differ in both: as a
# standard deviation of logarithms.
_CONVERSIONS, _IMPRESSIONS, _SPREAD = 3.0, 12.0, 1.0
_PRICE, _PRICE_SPREAD, _VALUE_CAP = 40.0, 0.7, 150.0
# Keys of a sum, and what is true of it.
Truth = dict[tuple[str, ...], float]


@dataclass(frozen=True)
class RepeatedCampaign:
    """So many people in each campaign, over so many days, for a budget: with measures of a
    made-up month, or with conversions of one of the lab's data sets."""

    people: int = 4_000
    slots: int = 31
    rho: str = "1"
    mechanism: str = "personal-budget"
    dataset: str | None = None

    def draw(self, seed: int) -> tuple[CampaignSpec, People]:
        """A campaign, and people for it."""
        if self.dataset is None:
            return self.spec, Month.of(self, np.random.default_rng((seed, 1)))
        own_size = self.dataset == "facebook"
        found = load_dataset(self.dataset, self.slots, seed, None if own_size else self.people)
        if len(found.contributions.layout.dimensions) > 1:
            raise SpecError(
                f"--datasets {self.dataset}: expected sets that tell publishers apart and nothing "
                "else. Remove it: `adsbpc lab compare` has its errors, view by view"
            )
        return self._spec_of(list(found.publishers), {}), Stream(found.contributions)

    @property
    def spec(self) -> CampaignSpec:
        by_country = ["publisher", "country"]
        measures: list[dict[str, Any]] = [
            {"name": "conversions", "by": by_country},
            {"name": "revenue", "metric": "value", "value_cap": _VALUE_CAP, "by": by_country},
            {"name": "impressions", "metric": "impressions"},
        ]
        if self.mechanism != "adsbpc":
            # Which has no books of who was counted before.
            measures.append({"name": "reach", "metric": "reach"})
        countries = {"column": "country", "values": list(COUNTRIES)}
        return self._spec_of(
            list(PUBLISHERS), {"dimensions": {"country": countries}, "measure": measures}
        )

    def _spec_of(self, publishers: list[str], more: dict[str, Any]) -> CampaignSpec:
        return CampaignSpec.model_validate(
            {
                "campaign": {
                    "name": "coverage", "advertiser": "lab", "start": "2026-03-01",
                    "slots": self.slots, "publishers": publishers,
                },
                "events": {"impressions": "none.parquet", "conversions": "none.parquet"},
                "privacy": {"rho": float(Fraction(self.rho)), "mechanism": self.mechanism},
                **more,
            }
        )  # fmt: skip


class People(Protocol):
    """What people of a campaign did."""

    def rows(self, measure: Measure, slots: int) -> ArrayContributions:
        """As a campaign would contribute them."""

    def truth(self, measure: Measure, through: int) -> Truth:
        """From the first slot to this one, for the sums of all views."""


@dataclass(frozen=True)
class Stream:
    """Conversions of a data set."""

    conversions: ArrayContributions

    def rows(self, measure: Measure, slots: int) -> ArrayContributions:
        slot, user, cell, weight = self.conversions.cells()
        return ArrayContributions(user, slot, cell, weight, slots, measure.layout)

    def truth(self, measure: Measure, through: int) -> Truth:
        totals = sum(self.conversions.totals(slot) for slot in range(1, through + 1))
        cells = [*(np.asarray(totals) / UNITS_PER_CONVERSION).tolist(), 0.0]
        return {(): sum(cells)} | dict(zip(measure.layout.names(1), cells, strict=True))


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

    def truth(self, measure: Measure, through: int) -> Truth:
        """People are told apart by themselves."""
        found: Truth = {}
        lists = [each.values for each in measure.layout.dimensions]
        bought_by_then, seen_by_then = self.bought_on < through, self.seen_on < through
        for depth in range(len(lists) + 1):
            for place, keys in enumerate(product(*lists[:depth])):
                stride = measure.layout.sizes[-1] // measure.layout.sizes[depth]
                if measure.of_impressions:
                    mine = self.viewer[seen_by_then & (self.seen // stride == place)]
                    found[keys] = float(np.unique(mine).size if measure.layout.once else mine.size)
                    continue
                bought = bought_by_then & (self.bought // stride == place)
                cap = measure.value_cap
                found[keys] = float(
                    bought.sum() if cap is None else np.minimum(self.price[bought], cap).sum()
                )
        return found
