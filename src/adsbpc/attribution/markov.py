"""Removal effects of a Markov chain of journeys."""

from __future__ import annotations

import numpy as np

from adsbpc.attribution.counts import Transitions
from adsbpc.attribution.games import Reals


def removal_effects(counts: Transitions, values: Reals, noise: float) -> Reals:
    """For each publisher, the share of conversions that would be lost if every journey ended
    without one where it meets that publisher (Anderl et al. 2016).

    `values` are the counts in the order of their cells. Those that noise alone could have made are
    taken for none. Without any conversion all effects are 0.
    """
    least = noise * np.sqrt(2 * np.log(len(values)))
    kept = np.where(values > least, values, 0.0)
    flows, converting, starting, members = _chain(counts, kept)
    whole = _conversion_rate(flows, converting, starting)
    if whole <= 0:
        return np.zeros(counts.players)
    without = np.empty(counts.players)
    for player in range(counts.players):
        rest = ~members[:, player]
        without[player] = _conversion_rate(
            flows[np.ix_(rest, rest)], converting[rest], starting[rest]
        )
    return np.clip(1 - without / whole, 0.0, 1.0)


def _chain(counts: Transitions, values: Reals) -> tuple[Reals, Reals, Reals, np.ndarray]:
    """Probabilities to move between states, to convert, and to begin in a state; and which
    publishers a state has."""
    runs = [run for k in range(1, counts.order + 1) for run in counts.stages(k)]
    number = {counts.state(run): position for position, run in enumerate(runs)}
    flows, ends = np.zeros((len(runs), len(runs))), np.zeros((len(runs), 2))
    starts = np.zeros(len(runs))
    for cell, value in zip(counts.cells, values, strict=True):
        before, after = divmod(cell // 2, counts.states)
        if before == 0:
            starts[number[after]] = value
        elif after == 0:
            ends[number[before], cell % 2] = value
        else:
            flows[number[before], number[after]] = value
    leaving = flows.sum(axis=1) + ends.sum(axis=1)
    leaving[leaving == 0] = 1.0
    members = np.zeros((len(runs), counts.players), dtype=bool)
    for position, run in enumerate(runs):
        members[position, list(run)] = True
    return (
        flows / leaving[:, None],
        ends[:, 1] / leaving,
        starts / max(starts.sum(), 1.0),
        members,
    )


def _conversion_rate(flows: Reals, converting: Reals, starting: Reals) -> float:
    """How often a journey converts: sum over paths, which is a linear system.

    A state that is never left, which noise can make, would hold journeys for ever; a leak far below
    any figure lets them end.
    """
    leak = np.eye(len(flows)) * (1 + 1e-9)
    reached = np.linalg.solve(leak - flows, converting) if len(flows) else converting
    return float(starting @ reached)
