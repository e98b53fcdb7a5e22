"""Credits of fitted models in plain Python, one journey at a time: the definition that engines are
held to. It shares the parameters, the logistic curve and nothing else with the SQL."""

from __future__ import annotations

from collections.abc import Sequence

from adsbpc.attribution.estimation import shared_units
from adsbpc.attribution.fitted import (
    CoalitionRatesInOrder,
    CoalitionUnits,
    FittedModel,
    LogisticEffects,
    PairWeights,
    PublisherWeights,
    curve_at,
)


def member_units(model: FittedModel, members: Sequence[int]) -> list[int]:
    """Units of a conversion for each publisher of a journey. `members` are their places in the
    public list, each once, in the order of their first touches."""
    match model:
        case PublisherWeights():
            return shared_units([model.weights[member] for member in members])
        case PairWeights():
            return shared_units([_pair_weight(model, member, members) for member in members])
        case LogisticEffects():
            whole = sum(model.effects[1 + member] for member in members) + model.effects[0]
            chance = curve_at(whole)
            without = [curve_at(whole - model.effects[1 + member]) for member in members]
            lost = [max(0, chance - less) for less in without]
            rest = max(0, chance - sum(lost))
            return shared_units([one * len(members) + rest for one in lost])
        case CoalitionUnits():
            return _mean_of_parts(model, members)
        case CoalitionRatesInOrder():
            return _in_order(model, members)
        case _:
            raise TypeError(f"no reference for the attribution model {model!r}")


def _pair_weight(model: PairWeights, member: int, members: Sequence[int]) -> int:
    others = [other for other in members if other != member]
    added = sum(model.added[member * len(model.publishers) + other] for other in others)
    return max(0, 2 * len(others) * model.rates[member] + added)


def _mean_of_parts(model: CoalitionUnits, members: Sequence[int]) -> list[int]:
    count = len(members)
    starts = range(count if count > model.largest else 1)
    sums = dict.fromkeys(members, 0)
    for start in starts:
        part = [members[(start + k) % count] for k in range(min(count, model.largest))]
        for member, units in zip(sorted(part), model.of(part), strict=True):
            sums[member] += units
    return [sums[member] // len(starts) for member in members]


def _in_order(model: CoalitionRatesInOrder, members: Sequence[int]) -> list[int]:
    weights, reached = [], 0
    for place in range(len(members)):
        part = members[max(0, place + 1 - model.largest) : place + 1]
        reached = model.of(part)
        weights.append(max(0, reached - model.of(part[:-1])))
    return shared_units(weights, reached)
