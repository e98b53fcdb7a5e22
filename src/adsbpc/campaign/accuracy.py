"""How accurate a plan is, given how much will be counted; and which budget reaches given targets.

Errors are half the width of a 95% interval for the noise. Those of a measure shrink with the root
of its budget, and nothing else of a plan depends on it, so that targets have one answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, log10, sqrt
from statistics import NormalDist
from typing import Any, Literal, cast

from adsbpc.errors import SpecError, no_such_choice
from adsbpc.mechanisms import Measures, Mechanism, fit_rho, guarantee_of
from adsbpc.mechanisms.interface import margins_of
from adsbpc.model import CampaignSpec, Layout, Measure
from adsbpc.model.layout import LARGEST_WEIGHT
from adsbpc.workloads import per_slot, prefix_sums

LEVEL = 0.95
REACH = NormalDist().inv_cdf((1 + LEVEL) / 2)
# Parts of the total that sums are shown for, besides the average one.
SMALL_PART = 0.02
_PARTS = (0.1, SMALL_PART)
_OTHERS = 8
_TARGET = re.compile(
    r"(?P<measure>[^/=@]+)/(?P<view>[^/=@]+)(@(?P<part>[0-9.]+)%)?=(?P<within>[0-9.]+)%"
)

Period = Literal["campaign", "slot"]


@dataclass(frozen=True)
class Accuracy:
    """How far a sum of a view is off, 95 times of 100: over the whole `campaign`, or in one `slot`.
    `part` is its share of the measure's total, of which `amount` is expected; `within` is the error
    as a part of the amount."""

    measure: str
    view: str
    period: Period
    part: float
    amount: float
    error: float
    within: float


@dataclass(frozen=True)
class Frontier:
    """Errors over the whole campaign, view by view, if a measure had these weights: the total
    against its parts. For people who convert once."""

    measure: str
    weights: tuple[int, ...]
    errors: dict[str, float]


@dataclass(frozen=True)
class Target:
    """`within` this part of what is expected of a sum of a view: one with `part` of the total, the
    average one if that is left out."""

    measure: str
    view: str
    within: float
    part: float | None = None

    @classmethod
    def from_text(cls, text: str) -> Target:
        """
        >>> Target.from_text("revenue/publisher@2%=9%")
        Target(measure='revenue', view='publisher', within=0.09, part=0.02)
        """
        found = _TARGET.fullmatch(text.strip())
        try:
            assert found is not None
            within, part = _percent(found["within"]), found["part"]
            return cls(
                found["measure"], found["view"], within, None if part is None else _percent(part)
            )
        except (AssertionError, ValueError):
            raise SpecError(
                f"target {text!r}: expected a measure, a view and how close, such as "
                "conversions/publisher=10%, or conversions/publisher@2%=10% for a publisher with "
                "2% of the total"
            ) from None


@dataclass(frozen=True)
class Proposal:
    """A budget and shares of it. `rho` is the campaign's, with what a fit costs."""

    rho: float
    shares: dict[str, float]

    def to_object(self) -> dict[str, Any]:
        return {"rho": self.rho, "shares": self.shares}


def expected_of(spec: CampaignSpec, given: Mapping[str, float] | None) -> dict[str, float]:
    """What is expected in the whole campaign, by measure: what is given goes before the file."""
    names = [measure.name for measure in spec.measures]
    for name, amount in (given or {}).items():
        if name not in names:
            raise no_such_choice(f"expected {name} = {amount:g}", name, names)
        if not 0 < amount < float("inf"):
            raise SpecError(f"expected {name} = {amount:g}: expected a number above 0")
    return {**spec.expected, **(given or {})}


def errors_of(mechanism: Mechanism, bound: float | None, period: Period) -> list[float]:
    """Of a sum, by how many dimensions are told apart, whatever the workload asks."""
    slots = mechanism.slots
    asked = prefix_sums(slots) if period == "campaign" else per_slot(slots)
    # Every mechanism is a dataclass, which a protocol cannot say.
    alone: Mechanism = replace(cast(Any, mechanism), workloads=(asked,))
    limit = limit_of(mechanism, bound)
    depths = range(len(mechanism.layout.dimensions) + 1)
    return [REACH * alone.expected_errors(limit, depth)[-1][2] for depth in depths]


def limit_of(mechanism: Mechanism, bound: float | None) -> float:
    """What is fixed goes before what is asked for."""
    own = mechanism.limit()
    return own.fixed or bound or own.usual


def accuracy_of(
    measures: Measures, expected: Mapping[str, float], bound: float | None
) -> Iterable[Accuracy]:
    """For measures of which something is expected."""
    periods: tuple[Period, ...] = ("campaign", "slot")
    for measure, mechanism in measures.runs:
        whole = expected.get(measure.name)
        if whole is None:
            continue
        for period in periods:
            total = whole if period == "campaign" else whole / mechanism.slots
            for depth, error in enumerate(errors_of(mechanism, bound, period)):
                average = 1 / measure.layout.sizes[depth]
                parts = [1.0] if depth == 0 else [average, *(p for p in _PARTS if p != average)]
                for part in parts:
                    yield Accuracy(
                        measure.name,
                        measure.layout.view_name(depth),
                        period,
                        part,
                        part * total,
                        error,
                        error / (part * total),
                    )


def frontier_of(measures: Measures, bound: float | None) -> Iterable[Frontier]:
    """What weights of the total make of a measure, others alike, and its own."""
    for measure, mechanism in measures.runs:
        layout = measure.layout
        if layout.once:
            # Every sum is a cell of its own, with the weight of any other.
            continue
        errors, names = errors_of(mechanism, bound, "campaign"), _views(layout)
        tried = {(weight, *[_OTHERS] * len(layout.dimensions)) for weight in (0, 1, 2, 4, 8)}
        tried |= {layout.weights} if max(layout.weights) <= LARGEST_WEIGHT else set()
        for weights in sorted(tried):
            other = Layout(layout.dimensions, weights)
            found = [
                error * sqrt(_cost(other, depth) / _cost(layout, depth))
                for depth, error in enumerate(errors)
            ]
            yield Frontier(measure.name, weights, dict(zip(names, found, strict=True)))


def _cost(layout: Layout, depth: int) -> float:
    """The variance of a sum, for a budget that one conversion fills."""
    return layout.unit * margins_of(layout).view_variance(depth)


def _views(layout: Layout) -> list[str]:
    return [layout.view_name(depth) for depth in range(len(layout.dimensions) + 1)]


def proposal_for(
    spec: CampaignSpec,
    measures: Measures,
    expected: Mapping[str, float],
    targets: Sequence[Target],
    bound: float | None,
) -> Proposal | None:
    """The smallest rho that reaches all targets, and the shares of it. Measures without a target
    stay as accurate as they are. Without targets: shares of the rho that there is, under which
    average sums of the first dimension are off by the smallest parts, added up over measures; None
    where not enough is expected to tell."""
    needed = _now(spec)
    if targets:
        factors: dict[str, list[Fraction]] = {}
        for target in targets:
            measure, mechanism = _run(measures, target)
            off = _relative(measure, mechanism, target, expected, bound)
            factors.setdefault(measure.name, []).append(Fraction(off / target.within) ** 2)
        needed |= {name: needed[name] * max(own) for name, own in factors.items()}
        return _rounded(needed, fit_rho(spec))
    if len(needed) < 2 or any(name not in expected for name in needed):
        return None
    for measure, mechanism in measures.runs:
        target = Target(measure.name, measure.layout.view_name(1), 1.0)
        off = _relative(measure, mechanism, target, expected, bound)
        # The sum of a / sqrt(share) is least for shares in proportion to a^(2/3).
        needed[measure.name] = Fraction(float(needed[measure.name] * Fraction(off) ** 2) ** (1 / 3))
    return Proposal(float(guarantee_of(spec).rho), _shares(needed))


def _now(spec: CampaignSpec) -> dict[str, Fraction]:
    """What each measure has of the budget."""
    left = guarantee_of(spec).rho - fit_rho(spec)
    return {measure.name: left * measure.share for measure in spec.measures}


def _run(measures: Measures, target: Target) -> tuple[Measure, Mechanism]:
    names = [measure.name for measure, _ in measures.runs]
    if target.measure not in names:
        raise no_such_choice(f"target for {target.measure!r}", target.measure, names)
    found = next(run for run in measures.runs if run[0].name == target.measure)
    views = _views(found[0].layout)
    if target.view not in views:
        raise no_such_choice(f"target for {target.measure}/{target.view}", target.view, views)
    return found


def _relative(
    measure: Measure,
    mechanism: Mechanism,
    target: Target,
    expected: Mapping[str, float],
    bound: float | None,
) -> float:
    """How far off a sum is, as a part of what is expected of it."""
    if measure.name not in expected:
        raise SpecError(
            f"target for {measure.name}/{target.view}: how close that is depends on how much is "
            f"counted. Say [expected] {measure.name} = ... in the campaign file, or --expect "
            f"{measure.name}=..."
        )
    depth = _views(measure.layout).index(target.view)
    part = target.part or 1 / measure.layout.sizes[depth]
    error = errors_of(mechanism, bound, "campaign")[depth]
    return error / (part * expected[measure.name])


def _rounded(needed: Mapping[str, Fraction], fit: Fraction) -> Proposal:
    """Up, to four digits: no measure gets less than it needs."""
    shares = _shares(needed)
    rho = max(need / Fraction(str(shares[name])) for name, need in needed.items()) + fit
    step = Fraction(10) ** (floor(log10(rho)) - 3)
    return Proposal(float(ceil(rho / step) * step), shares)


def _shares(needed: Mapping[str, Fraction]) -> dict[str, float]:
    """In thousandths that add up to 1, none of them 0: what rounding leaves goes to the largest."""
    whole = sum(needed.values())
    parts = {name: max(1, round(1000 * need / whole)) for name, need in needed.items()}
    largest = max(parts, key=lambda name: parts[name])
    parts[largest] += 1000 - sum(parts.values())
    return {name: part / 1000 for name, part in parts.items()}


def _percent(text: str) -> float:
    found = float(text) / 100
    if not 0 < found <= 10:
        raise ValueError(text)
    return found
