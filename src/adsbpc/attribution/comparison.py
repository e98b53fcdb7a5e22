"""Shares of publishers under several models, from one released set of counts: no further look at
anybody, so no further cost.

Counts of coalitions give every model whose credits depend on which publishers a journey had. Counts
of transitions give removal effects, and which publisher came last. Counts of pairs say nothing
about whole journeys, so nothing can be compared.

Figures here are for people to look at, and in floating point; the definitions that credits follow
are in `fitted_reference`.
"""

from __future__ import annotations

import numpy as np

from adsbpc.attribution.counts import Coalitions, CountSet, Pairs, Transitions
from adsbpc.attribution.estimation import (
    RATE_PARTS,
    CoalitionRates,
    Counted,
    estimate,
    pair_rates,
)
from adsbpc.attribution.games import Reals
from adsbpc.attribution.logistic import sigmoid
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
        rates = CoalitionRates(counts, counted.values, counted.noise)
        conversions = float(rates.outcomes[:, 1].sum())
        # What people would have done anyway, as a holdout group shows, is nobody's.
        found = {
            model: _parts(totals, conversions) for model, totals in _of_coalitions(rates).items()
        }
    elif isinstance(counts, Transitions):
        found = {
            "last_touch": _parts(_last_touch(counts, counted)),
            "markov": _parts(removal_effects(counts, counted.values, counted.noise)),
        }
    else:
        return {}
    return {
        (model, player): float(share)
        for model, shares in found.items()
        for player, share in enumerate(shares)
    }


def _parts(weights: Reals, least_whole: float = 0.0) -> Reals:
    """Parts of 1, or of what is more: noise may have made some negative, which count as none."""
    kept = np.maximum(weights, 0.0)
    return np.asarray(kept / max(float(kept.sum()), least_whole, 1e-12))


def _last_touch(counts: Transitions, counted: Counted) -> Reals:
    totals = np.zeros(counts.players)
    for cell, value in zip(counts.cells, counted.values, strict=True):
        before, after = divmod(cell // 2, counts.states)
        if after == 0 and cell % 2 == 1:
            totals[before % counts.base - 1] += value
    return totals


def _of_coalitions(found: CoalitionRates) -> dict[str, Reals]:
    pairs = _as_pairs(found)
    incremental = np.array(estimate("incremental_value", 1, pairs)["weights"]) / RATE_PARTS
    single, pair = pair_rates(pairs)
    added = pair - single[:, None] - single[None, :]
    np.fill_diagonal(added, 0.0)
    effects = found.effects
    totals = {model: np.zeros(found.counts.players) for model in COMPARED["coalitions"]}
    place = 0
    for members, values, wholes in found.shapley():
        size = members.shape[1]
        converting = found.outcomes[place : place + len(members), 1]
        place += len(members)
        odds = effects[0] + effects[1:][members].sum(axis=1, keepdims=True)
        lost = np.maximum(sigmoid(odds) - sigmoid(odds - effects[1:][members]), 0.0)
        rest = np.maximum(sigmoid(odds) - lost.sum(axis=1, keepdims=True), 0.0)
        together = added[members[:, :, None], members[:, None, :]].sum(axis=2)
        weights = {
            "shapley_path": np.ones(members.shape),
            "shapley": np.maximum(values, 0.0),
            "incremental_value": incremental[members],
            "probabilistic": np.maximum(2 * (size - 1) * single[members] + together, 0.0),
            "logistic": lost + rest / size,
        }
        for model, weighed in weights.items():
            least = wholes if model == "shapley" else 0.0
            credit = converting[:, None] * _in_proportion(weighed, least)
            np.add.at(totals[model], members, credit)
    return totals


def _in_proportion(weights: Reals, least_whole: Reals | float) -> Reals:
    """Rows that add up to 1, or less where the whole is more; equal ones without any whole."""
    wholes = np.maximum(weights.sum(axis=1, keepdims=True), np.reshape(least_whole, (-1, 1)))
    equal = np.full(weights.shape, 1 / weights.shape[1])
    return np.where(wholes > 0, weights / np.where(wholes > 0, wholes, 1.0), equal)


def _as_pairs(found: CoalitionRates) -> Counted:
    """Pairs are sums of coalitions; their noise is that of as many as most pairs are sums of."""
    players = found.counts.players
    counts: CountSet = Pairs(players, found.counts.holdout)
    assert isinstance(counts, Pairs)
    values = np.zeros(len(counts.cells))
    for outcome in (0, 1):
        seen = found.seen * found.outcomes[:, [outcome]]
        values[outcome] = found.outcomes[:, outcome].sum()
        together = seen.T @ found.seen
        for one in range(players):
            for other in range(one, players):
                cell = 2 * counts.code(one, other) + outcome
                values[counts.positions[cell]] = together[one, other]
    if counts.holdout:
        values[-2:] = found.values[-2:]
    terms = float((found.seen[:, 0] * found.seen[:, -1]).sum())
    return Counted(counts, values, found.noise * np.sqrt(terms))
