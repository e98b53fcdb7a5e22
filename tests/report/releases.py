"""Made-up releases with seeded noise, for everything that reads a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from adsbpc.model import (
    OTHER_PUBLISHER,
    PICO_RHO,
    Adjacency,
    Answers,
    Budget,
    CampaignSpec,
    Dimension,
    Fit,
    Guarantee,
    Measured,
    ModelShare,
    Promise,
    Release,
    RunningNoise,
)
from adsbpc.model.attribution_spec import FittedModelName
from adsbpc.model.cut import DECIDED, added_back, squared_error
from adsbpc.model.running_noise import Cut, CutColumn, Stretch
from adsbpc.report import Report

Reals = NDArray[np.float64]

PUBLISHERS = ("search", "social", "video", "newsletter", "partners")
COMPARED = ("shapley_path", "shapley", "incremental_value", "probabilistic", "logistic")
_FALLBACK = "shapley_path"
_SURGING = "video"


@dataclass(frozen=True)
class MadeUp:
    """A campaign whose truth is known, and the noise that hides it.

    Personal budgets cut the same part of every publisher, and more of it slot by slot: `most_cut`
    of the last slot. Bounds cut nothing here. A fitted model is fitted in slot `fit_slot`, or in
    some file if there is none; models compared differ in how much they give to the largest.
    """

    publishers: tuple[str, ...] = PUBLISHERS
    slots: int = 31
    released: int = 31
    slot: str = "1d"
    timezone: str = "Europe/Berlin"
    start: date = date(2026, 3, 1)
    name: str = "spring-shoes"
    metric: str = "conversions"
    value_cap: float | None = None
    volume: float = 60.0
    scale: float = 6.0
    mechanism: Literal["adsbpc", "personal-budget"] = "adsbpc"
    bounds: tuple[int, ...] = (2,)
    allowances: tuple[float, ...] = (11.3137,)
    most_cut: float = 0.2
    cut_scale: float = 9.0
    queries: tuple[str, ...] = ("prefix",)
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    epsilon: float = 5.3
    model: str = "last_touch"
    fit_slot: int | None = None
    compared: tuple[str, ...] = COMPARED
    share_error: float = 0.01
    seed: int = 7
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def spec(self) -> CampaignSpec:
        return CampaignSpec.model_validate(
            {
                "campaign": {
                    "name": self.name,
                    "scope": "acme",
                    "advertiser": "Ad-1",
                    "start": self.start,
                    "slots": self.slots,
                    "slot": self.slot,
                    "timezone": self.timezone,
                    "publishers": self.publishers,
                    "metric": self.metric,
                    "value_cap": self.value_cap,
                },
                "events": {"impressions": "impressions", "conversions": "conversions"},
                "attribution": {"model": self.model, "fit": self._fit_section},
            }
        )

    @property
    def is_fitted(self) -> bool:
        return self.model in get_args(FittedModelName)

    @property
    def _fit_section(self) -> dict[str, Any] | None:
        if not self.is_fitted:
            return None
        if self.fit_slot is None:
            return {"parameters": "fit.json"}
        return {"rho": 0.05, "slots": self.fit_slot, "fallback": _FALLBACK}

    @property
    def fit(self) -> Fit:
        names = (*self.publishers, OTHER_PUBLISHER)
        shares = []
        for place, model in enumerate(self.compared):
            weights = 0.62 ** ((0.8 + 0.1 * place) * np.arange(len(names)))
            shares += [
                ModelShare(model, name, float(share), self.share_error)
                for name, share in zip(names, weights / weights.sum(), strict=True)
            ]
        return Fit.model_validate(
            {
                "model": self.model,
                "publishers": names,
                "slots": self.fit_slot,
                "parameters": {},
                "comparison": shares,
            }
        )

    @property
    def truth(self) -> Reals:
        """A row a slot and a column a publisher: smaller down the list, with a weekly rhythm."""
        names = (*self.publishers, OTHER_PUBLISHER)
        sizes = self.volume * 0.62 ** np.arange(len(names))
        slots = np.arange(self.released)
        weekly = 1 + 0.25 * np.cos(2 * np.pi * slots / 7)
        truth: Reals = np.round(np.outer(weekly, sizes)).astype(np.float64)
        if _SURGING in names:
            truth[slots > self.slots // 2, names.index(_SURGING)] *= 2.5
        return truth

    @property
    def estimates_cut(self) -> bool:
        return self.mechanism == "personal-budget"

    @property
    def cut(self) -> Reals:
        """What of the truth is not let in."""
        if not self.estimates_cut:
            return np.zeros_like(self.truth)
        parts = self.most_cut * np.arange(1, self.released + 1) / self.released
        cut: Reals = np.round(self.truth * parts[:, None])
        return cut

    @property
    def noisy(self) -> Reals:
        """As in a release, the last column has what was cut, if that is counted."""
        random = np.random.default_rng(self.seed)
        truth = self.truth
        noisy = truth - self.cut + np.round(random.normal(0, self.scale, truth.shape))
        if self.estimates_cut:
            counted = self.cut.sum(axis=1) + np.round(
                random.normal(0, self.cut_scale, self.released)
            )
            noisy = np.column_stack([noisy, counted])
        return noisy

    def releases(self) -> tuple[Release, ...]:
        noisy = self.noisy
        return tuple(self._release(slot, noisy) for slot in range(1, self.released + 1))

    def report(self, **changes: Any) -> Report:
        limit, spent = PICO_RHO, round(0.9 * PICO_RHO * self.released / self.slots)
        guarantee = Guarantee(Fraction(1), self.adjacency, "acme")
        promise = Promise(guarantee, self.epsilon, 1e-6, Fraction(3), 14.948)
        return Report(
            self.spec,
            self.releases(),
            promise,
            Budget(limit, spent),
            Budget(3 * limit, limit + spent),
            **{"noise_of": self._noise_of, **self.options, **changes},
        )

    def _noise_of(self, _: str, boundaries: Sequence[int]) -> RunningNoise:
        """Slots have noise of their own."""
        slots = np.diff(boundaries, prepend=0)
        weights = np.tril(np.ones((len(slots), len(slots)))).tolist()
        stretch = Stretch(0, ((float(self._columns),), (1.0,)), float(self._columns))
        cut, noisy = None, self.noisy
        if self.estimates_cut:
            # Of slots to come nothing is counted yet.
            counts = np.r_[0.0, noisy[:, -1].cumsum()][np.minimum(boundaries, self.released)]
            spread = self._spread(noisy)
            own = self.cut_scale**2 * slots
            column = CutColumn(tuple(counts.tolist()), tuple(own.tolist()))
            parts = ((1.0,), tuple(spread.tolist()))
            squared = float((spread**2).sum())
            cut = Cut((column,), parts, squared, is_added=True, trust=DECIDED)
        variances = tuple((self.scale**2 * slots).tolist())
        return RunningNoise(tuple(boundaries), weights, variances, (stretch,), cut)

    def _spread(self, noisy: Reals) -> Reals:
        roots = np.sqrt(np.maximum(noisy[:, : self._columns].sum(axis=0), 1e-3))
        return np.asarray(roots / roots.sum())

    @property
    def _columns(self) -> int:
        return len(self.publishers) + 1

    def _release(self, slot: int, noisy: Reals) -> Release:
        starts_at, ends_at = self.spec.grid.bounds_text(slot)
        running = self._answers(f"prefix 1..{slot}", (1, slot), noisy)
        alone = self._answers(f"slot {slot}", (slot, slot), noisy)
        first = max(slot - 6, 1)
        answers = {
            "prefix": running,
            "slot": alone,
            "sliding": self._answers(f"window {first}..{slot}", (first, slot), noisy),
            "matrix": self._change(slot, noisy),
        }
        measured = Measured(
            measure=self.metric,
            metric="value" if self.metric == "value" else "conversions",
            dimensions=(Dimension("publisher", (*self.publishers, OTHER_PUBLISHER)),),
            weights=(0, 1),
            slot=slot,
            mechanism=self.mechanism,
            bound=None if self.estimates_cut else self.bounds[slot % len(self.bounds)],
            allowance=(
                self.allowances[slot % len(self.allowances)] if self.estimates_cut else None
            ),
            multipliers=(1, 1) if self.estimates_cut else (),
            spread=tuple(self._spread(noisy[:slot]).tolist()) if self.estimates_cut else (),
            scale=self.scale,
            values=tuple(int(value) for value in noisy[slot - 1]),
            randomness="seeded",
            charges=(),
            answers=tuple(answer for query in self.queries for answer in answers[query]),
            slot_totals=alone,
            running_totals=running,
        )
        return Release(
            scope="acme",
            campaign=self.name,
            slot=slot,
            starts_at=starts_at,
            ends_at=ends_at,
            measures=(measured,),
            attribution=self._model_of(slot),
            fit=self.fit if slot == self.fit_slot else None,
        )

    def _model_of(self, slot: int) -> str | None:
        if not self.is_fitted:
            return None
        return self.model if slot > (self.fit_slot or 0) else _FALLBACK

    def _answers(self, query: str, span: tuple[int, int], noisy: Reals) -> tuple[Answers, ...]:
        first, last = span
        sums, slots = noisy[first - 1 : last].sum(axis=0), last - first + 1
        cells, own = sums[: self._columns], self.scale**2 * slots
        if not self.estimates_cut:
            return answers_of(query, cells, own**0.5, span)
        spread, of_cut = self._spread(noisy[:last]), self.cut_scale**2 * slots
        squared = float((spread**2).sum())
        counts = [(float(sums[-1]), of_cut)]
        added = added_back(counts, squared, own * self._columns, trust=DECIDED)
        errors = [squared_error(own, part, added) ** 0.5 for part in spread.tolist()]
        total = squared_error(own * self._columns, 1.0, added) ** 0.5
        values = tuple(map(float, cells + added.total * spread))
        both: dict[str, Any] = {"span": span, "cut": added.missing, "added": added.total}
        return (
            Answers((), query, (sum(values),), total, **both),
            Answers(
                ("publisher",), query, values, float(np.sqrt(np.square(errors).mean())),
                standard_errors=tuple(errors), **both,
            ),
        )  # fmt: skip

    def _change(self, slot: int, noisy: Reals) -> tuple[Answers, ...]:
        """From the slot before to this one: a query that is no sum over slots."""
        if slot == 1:
            return ()
        change = (noisy[slot - 1] - noisy[slot - 2])[: self._columns]
        return answers_of(f"change row {slot}", change, self.scale * 2**0.5, None)


def answers_of(
    query: str,
    values: Sequence[float] | Reals,
    error: float,
    span: tuple[int, int] | None,
    cut: float = 0.0,
    cut_error: float = 0.0,
) -> tuple[Answers, ...]:
    """Everything together, and by publisher, with independent noise."""
    by_publisher = tuple(map(float, values))
    total = (sum(by_publisher),)
    return (
        Answers((), query, total, error * len(by_publisher) ** 0.5, span, cut, cut_error),
        Answers(("publisher",), query, by_publisher, error, span, cut, cut_error),
    )


def with_totals(report: Report, totals: tuple[Answers, ...]) -> Report:
    """The same, with other running totals after the newest slot."""
    measured = report.newest.measures[0].model_copy(update={"running_totals": totals})
    newest = report.newest.model_copy(update={"measures": (measured,)})
    return replace(report, releases=(*report.releases[:-1], newest))
