"""Removal effects of a Markov chain of journeys."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from adsbpc.attribution.counts import Transitions
from adsbpc.attribution.games import Reals
from adsbpc.attribution.rates import rate

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Journeys are followed until fewer than this share are still on their way, or for so many steps.
_STILL_GOING = 1e-9
_MOST_STEPS = 1_000

_Stages = tuple[int, ...]


def removal_effects(counts: Transitions, values: Reals, noise: float) -> Reals:
    """For each publisher, the share of conversions that would be lost if every journey ended
    without one where it meets that publisher (Anderl et al. 2016).

    `values` are the counts in the order of their cells, and `noise` the standard deviation of each.
    Without any conversion all effects are 0.
    """
    chain = _chain(counts, values, noise)
    if counts.order == 1:
        return _effects_of_single_stages(chain)
    everything = np.ones((1, len(chain.converting)), dtype=bool)
    whole, *without = chain.conversion_rates(np.vstack([everything, ~chain.members.T]))
    if whole <= 0:
        return np.zeros(counts.players)
    return np.clip(1 - np.array(without) / whole, 0.0, 1.0)


def _effects_of_single_stages(chain: _Chain) -> Reals:
    """Where a state is a publisher, one inverse has all of it: how often a journey ever comes
    there, times how often it converts from there."""
    moves = np.asarray(chain.moving.todense()) * (1 - _STILL_GOING)
    visits = np.linalg.inv(np.eye(len(moves)) - moves)
    onwards = visits @ chain.converting
    whole = float(chain.starting @ onwards)
    if whole <= 0:
        return np.zeros(len(moves))
    ever = chain.starting @ visits / np.diag(visits)
    return np.clip(ever * onwards / whole, 0.0, 1.0)


@dataclass(frozen=True)
class _Chain:
    """Chances to begin in a state, to move from one to another, and to convert in it; and which
    publishers a state has."""

    starting: Reals
    moving: csr_array
    converting: Reals
    members: NDArray[np.bool_]

    def conversion_rates(self, kept: NDArray[np.bool_]) -> list[float]:
        """For each row of `kept`, how often a journey converts that ends where it meets a state
        that is not kept."""
        there = self.starting * kept
        converted = np.zeros(len(kept))
        for _ in range(_MOST_STEPS):
            converted += there @ self.converting
            there = (there @ self.moving) * kept
            if there.sum(axis=1).max() < _STILL_GOING:
                break
        return [float(found) for found in converted]


def _chain(counts: Transitions, values: Reals, noise: float) -> _Chain:
    """A state's outcomes are each publisher that may follow, the end, and the end with a
    conversion. How often they come is drawn to how often they come after the latest stages of the
    state, as far as noise asks; that to how often they come after fewer; and so on."""
    runs = [run for length in range(1, counts.order + 1) for run in counts.stages(length)]
    number = {counts.state(run): position for position, run in enumerate(runs)}
    starts, outcomes = np.zeros(counts.players), np.zeros((len(runs), counts.players + 2))
    for cell, value in zip(counts.cells, values, strict=True):
        before, after = divmod(cell // 2, counts.states)
        outcome = counts.players + cell % 2 if after == 0 else after % counts.base - 1
        if before == 0:
            starts[outcome] = value
        else:
            outcomes[number[before], outcome] = value
    chances = _chances(counts.order, runs, outcomes, noise)
    members = np.zeros((len(runs), counts.players), dtype=bool)
    for position, run in enumerate(runs):
        members[position, list(run)] = True
    return _Chain(
        _starting(len(runs), starts),
        _moving(counts, runs, number, chances),
        chances[:, -1],
        members,
    )


def _chances(order: int, runs: list[_Stages], outcomes: Reals, noise: float) -> Reals:
    following: dict[_Stages, list[int]] = defaultdict(list)
    for position, run in enumerate(runs):
        for length in range(len(run) + 1):
            following[run[len(run) - length :]].append(position)
    known: dict[_Stages, Reals] = {}
    for latest in sorted(following, key=len):
        states = following[latest]
        expected = known[latest[1:]].copy() if latest else np.full(outcomes.shape[1], 0.5)
        if latest:
            # Nobody follows itself: its own touches are one stage.
            expected[latest[-1]] = 0.0
        known[latest] = _drawn(outcomes[states].sum(axis=0), expected, noise * len(states) ** 0.5)
    return np.array(
        [
            known[run] if len(run) == order else _drawn(outcomes[position], known[run], noise)
            for position, run in enumerate(runs)
        ]
    )


def _drawn(counted: Reals, expected: Reals, noise: float) -> Reals:
    """Chances that add up to 1, or to 0 if nothing at all is known."""
    whole = expected.sum()
    expected = expected / whole if whole > 0 else expected
    users = np.full(len(counted), max(float(counted.sum()), 0.0))
    found = rate(counted, users, expected, noise)
    return np.asarray(found / found.sum() if found.sum() > 0 else found)


def _starting(states: int, starts: Reals) -> Reals:
    """Journeys begin in the states of one stage, which come first."""
    found, kept = np.zeros(states), np.maximum(starts, 0.0)
    found[: len(starts)] = kept / kept.sum() if kept.sum() > 0 else 0.0
    return found


def _moving(
    counts: Transitions, runs: list[_Stages], number: dict[int, int], chances: Reals
) -> csr_array:
    from scipy.sparse import csr_array

    before, after, chance = [], [], []
    for position, run in enumerate(runs):
        for player in range(counts.players):
            if player != run[-1]:
                before.append(position)
                after.append(number[counts.state((*run, player)[-counts.order :])])
                chance.append(chances[position, player])
    return csr_array((chance, (before, after)), shape=(len(runs), len(runs)))
