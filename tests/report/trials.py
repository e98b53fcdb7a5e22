"""A trial with a known effect of every publisher, by the mechanism of campaigns, without files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from adsbpc.contributions import ArrayAccounts, ArrayContributions, CellIndex
from adsbpc.mechanisms import BudgetByRows, Measures, RowsState, plan_measures
from adsbpc.model import (
    PICO_RHO,
    UNITS_PER_CONVERSION,
    Adjacency,
    Budget,
    CampaignSpec,
    Guarantee,
    Layout,
    Measured,
    Promise,
    Release,
    RunningNoise,
)
from adsbpc.model.spend import Spend
from adsbpc.privacy import SeededRandomness
from adsbpc.report import Report

PUBLISHERS = ("search", "social")
COUNTRIES = ("DE", "other")
# Parts of people who buy without any ad, and because of one, in the campaign.
ANYWAY, BY_SEARCH, BY_SOCIAL = 0.02, 0.012, 0.006
# Of those who buy anyway and see everything, credited to search and to social all the same.
TO_SEARCH, TO_SOCIAL = 0.5, 0.2
PEOPLE = {"treatment": 20_000, "no_search": 10_000, "control": 10_000}


@dataclass(frozen=True)
class Purchase:
    user: int
    arm: str
    slot: int
    country: str
    credited: str


@dataclass(frozen=True)
class MadeUpTrial:
    rho: float = 20.0
    slots: int = 31
    released: int = 31
    seed: int = 3
    people: dict[str, int] = field(default_factory=lambda: dict(PEOPLE))
    # By arm, where they are counted by an event.
    eligible: dict[str, int] | None = None
    # Other keys of the campaign file's section; None for one that is left out.
    lift: dict[str, Any] = field(default_factory=dict)
    credits_by: tuple[str, ...] = ("publisher", "arm")
    # Of every publisher on every day.
    daily_spend: float = 0.0

    @cached_property
    def spec(self) -> CampaignSpec:
        by_arm = {"by": ["arm"]}
        measures: list[dict[str, Any]] = [
            {"name": "credits", "by": self.credits_by},
            {"name": "buyers", "metric": "converters", **by_arm},
            {"name": "buyers by country", "metric": "converters", "by": ["arm", "country"]},
            {"name": "purchases", **by_arm},
            {"name": "purchases squared", "metric": "squared_conversions", **by_arm},
        ]
        if self.eligible is not None:
            measures.append({"name": "people", "metric": "reach", **by_arm})
        whole = sum(self.people.values())
        lift = {
            "key_file": "none.key", "shares": {a: n / whole for a, n in self.people.items()},
            "people": self.people, "withholds": {"no_search": ["search"]}, **self.lift,
        }  # fmt: skip
        return CampaignSpec.model_validate(
            {
                "campaign": {
                    "name": "spring-shoes", "scope": "acme", "advertiser": "Ad-1",
                    "start": "2026-03-01", "slots": self.slots, "publishers": list(PUBLISHERS),
                },
                "events": {"impressions": "none.parquet", "conversions": "none.parquet"},
                "privacy": {"rho": self.rho, "personal_budget": {"allowance": 6.0}},
                "lift": {key: value for key, value in lift.items() if value is not None},
                "measure": measures,
                "dimensions": {"country": {"column": "country", "values": ["DE"]}},
            }
        )  # fmt: skip

    @cached_property
    def purchases(self) -> list[Purchase]:
        """In the order of time."""
        rng, found, first = np.random.default_rng(self.seed), list[Purchase](), 0
        for arm, people in self.people.items():
            causes = {"": ANYWAY}
            if arm != "control":
                causes["social"] = BY_SOCIAL
            if arm == "treatment":
                causes["search"] = BY_SEARCH
            for cause, rate in causes.items():
                for user in rng.choice(people, rng.binomial(people, rate), replace=False):
                    credited = cause
                    if not cause and arm == "treatment":
                        luck = rng.random()
                        to_social = "social" if luck < TO_SEARCH + TO_SOCIAL else ""
                        credited = "search" if luck < TO_SEARCH else to_social
                    slot = int(rng.integers(1, self.slots + 1))
                    country = str(rng.choice(COUNTRIES))
                    found.append(Purchase(first + int(user), arm, slot, country, credited))
            first += people
        return sorted(found, key=lambda each: each.slot)

    def truth(self, arm: str, until: int, measure: str = "purchases", country: str = "") -> int:
        own = [
            each
            for each in self.purchases
            if each.arm == arm and each.slot <= until and country in ("", each.country)
        ]
        return len({each.user for each in own}) if measure == "buyers" else len(own)

    def credited(self, arm: str, publisher: str) -> int:
        return sum((each.arm, each.credited) == (arm, publisher) for each in self.purchases)

    @cached_property
    def measures(self) -> Measures:
        return plan_measures(self.spec)

    @cached_property
    def releases(self) -> list[Release]:
        measured = [
            self._measured(place, measure.name, mechanism)
            for place, (measure, mechanism) in enumerate(self.measures.runs)
        ]
        return [
            Release(
                scope="acme", campaign="spring-shoes", slot=slot,
                starts_at=self.spec.grid.bounds_text(slot)[0],
                ends_at=self.spec.grid.bounds_text(slot)[1],
                measures=tuple(own[slot - 1] for own in measured),
            )
            for slot in range(1, self.released + 1)
        ]  # fmt: skip

    def _measured(self, place: int, name: str, mechanism: Any) -> list[Measured]:
        assert isinstance(mechanism, BudgetByRows)
        measure = self.spec.measures[place]
        user, slot, cell, weight = np.array(list(self._rows(place)), dtype=np.int64).T
        rows = ArrayContributions(user, slot, cell, weight, self.slots, measure.layout)
        index = CellIndex.of(rows, mechanism.counted)
        accounts, state, found = ArrayAccounts(index), RowsState(), []
        randomness = SeededRandomness(self.seed * 100 + place)
        for _ in range(self.released):
            drawn, state = mechanism.release(state, accounts, randomness)
            found.append(Measured(**dict(drawn), measure=name, metric=measure.metric))
        return found

    def _rows(self, place: int) -> Iterator[tuple[int, int, int, int]]:
        """User, slot, cell and weight, as the data path makes them."""
        measure = self.spec.measures[place]
        layout, so_far = measure.layout, dict[int, int]()
        if measure.metric == "reach":
            yield from self._eligible_rows(layout)
            return
        met = set[tuple[int, tuple[str, ...]]]()
        for each in self.purchases:
            values = {"publisher": each.credited, "arm": each.arm, "country": each.country}
            keys = tuple(values[dimension.name] for dimension in layout.dimensions)
            if layout.once:
                for depth in range(len(keys) + 1):
                    if (each.user, keys[:depth]) not in met:
                        met.add((each.user, keys[:depth]))
                        cell = sum(layout.sizes[:depth]) + layout.names(depth).index(keys[:depth])
                        yield each.user, each.slot, cell, UNITS_PER_CONVERSION
                continue
            if "" in keys:
                continue
            before = so_far.get(each.user, 0)
            so_far[each.user] = before + 1
            times = 2 * before + 1 if measure.is_squared else 1
            yield each.user, each.slot, layout.names(len(keys)).index(keys), (
                times * UNITS_PER_CONVERSION
            )  # fmt: skip

    def _eligible_rows(self, layout: Layout) -> Iterator[tuple[int, int, int, int]]:
        first = 0
        for arm, count in (self.eligible or {}).items():
            for user in range(first, first + count):
                yield user, 1 + user % self.slots, 0, UNITS_PER_CONVERSION
                cell = 1 + layout.names(1).index((arm,))
                yield user, 1 + user % self.slots, cell, UNITS_PER_CONVERSION
            first += count

    @property
    def noise_of(self) -> Callable[[str, Sequence[int]], RunningNoise]:
        def noise(measure: str, boundaries: Sequence[int]) -> RunningNoise:
            to_come = [self.releases[-1]] * max(0, max(boundaries) - self.released)
            return self.measures.running_noise([*self.releases, *to_come], measure, boundaries)

        return noise

    def report(self) -> Report:
        spent = round(PICO_RHO * self.rho)
        guarantee = Guarantee(Fraction(self.rho), Adjacency.ADD_REMOVE, "acme")
        spend = None
        if self.daily_spend:
            slots = range(1, self.slots + 1)
            spend = Spend({((name,), k): self.daily_spend for name in PUBLISHERS for k in slots})
        return Report(
            self.spec, tuple(self.releases), Promise(guarantee, 9.0, 1e-6, Fraction(9), 30.0),
            Budget(spent, spent), Budget(spent, spent), noise_of=self.noise_of, spend=spend,
        )  # fmt: skip
