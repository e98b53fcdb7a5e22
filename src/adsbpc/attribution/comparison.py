"""Shares of publishers under several models, from one released set of counts: no further look at
anybody, so no further cost.

Counts of coalitions give every model whose credits depend on which publishers a journey had. Counts
of transitions give removal effects, and which publisher came last. Counts of pairs say nothing
about whole journeys, so nothing can be compared.
"""

from __future__ import annotations

import numpy as np

from adsbpc.attribution.counts import Coalitions, CountSet, Pairs, Transitions
from adsbpc.attribution.estimation import CoalitionRates, Counted, estimate
from adsbpc.attribution.fitted import (
    CoalitionUnits,
    FittedModel,
    LogisticEffects,
    PairWeights,
    PublisherWeights,
)
from adsbpc.attribution.fitted_reference import member_units
from adsbpc.attribution.games import Reals
from adsbpc.attribution.markov import removal_effects

# Models that a set of counts gives shares of.
COMPARED = {
    "coalitions": ("shapley_path", "shapley", "incremental_value", "probabilistic", "logistic"),
    "pairs": (),
    "transitions": ("last_touch", "markov"),
}


def model_shares(counted: Counted) -> dict[tuple[str, int], float]:
    """Each publisher's share of the conversions counted, by model and place in the list."""
    counts = counted.counts
    if isinstance(counts, Coalitions):
        found = _of_coalitions(CoalitionRates(counts, counted.values, counted.noise))
    elif isinstance(counts, Transitions):
        found = {
            "last_touch": _last_touch(counts, counted),
            "markov": removal_effects(counts, counted.values, counted.noise),
        }
    else:
        return {}
    return {
        (model, player): float(share)
        for model, weights in found.items()
        for player, share in enumerate(_shares(weights))
    }


def _shares(weights: Reals) -> Reals:
    """Parts of 1: noise may have made some of them negative, which count as none."""
    kept = np.maximum(weights, 0.0)
    return kept / kept.sum() if kept.sum() > 0 else np.full(len(kept), 1 / len(kept))


def _last_touch(counts: Transitions, counted: Counted) -> Reals:
    totals = np.zeros(counts.players)
    for cell, value in zip(counts.cells, counted.values, strict=True):
        before, after = divmod(cell // 2, counts.states)
        if after == 0 and cell % 2 == 1:
            totals[before % counts.base - 1] += value
    return totals


def _of_coalitions(found: CoalitionRates) -> dict[str, Reals]:
    names = tuple(str(player) for player in range(found.counts.players))
    pairs = _as_pairs(found)
    weights = estimate("incremental_value", 1, pairs)
    models: dict[str, FittedModel] = {
        "shapley": CoalitionUnits(names, **estimate("shapley", 1, found)),
        "incremental_value": PublisherWeights(names, **weights),
        "probabilistic": PairWeights(names, **estimate("probabilistic", 2, pairs)),
        "logistic": LogisticEffects(names, **estimate("logistic", 1, found)),
    }
    converting = found.outcomes[:, 1]
    totals = {"shapley_path": converting @ (found.seen / found.seen.sum(axis=1, keepdims=True))}
    for name, model in models.items():
        totals[name] = np.zeros(found.counts.players)
        for seen, count in zip(found.seen, converting, strict=True):
            members = np.flatnonzero(seen).tolist()
            totals[name][members] += count * np.array(member_units(model, members))
    return totals


def _as_pairs(found: CoalitionRates) -> Counted:
    """Pairs are sums of coalitions; their noise is that of as many as most pairs are sums of."""
    counts: CountSet = Pairs(found.counts.players, found.counts.holdout)
    assert isinstance(counts, Pairs)
    values = np.zeros(len(counts.cells))
    together = [(found.seen[:, :, None] * found.seen[:, None, :] * found.outcomes[:, None, None, k])
                .sum(axis=0) for k in (0, 1)]  # fmt: skip
    for outcome in (0, 1):
        values[outcome] = found.outcomes[:, outcome].sum()
        for one in range(counts.players):
            for other in range(one, counts.players):
                cell = 2 * counts.code(one, other) + outcome
                values[counts.positions[cell]] = together[outcome][one, other]
    if counts.holdout:
        values[-2:] = found.values[-2:]
    terms = float((found.seen[:, 0] * found.seen[:, -1]).sum()) if counts.players > 1 else 1.0
    return Counted(counts, values, found.noise * np.sqrt(terms))
