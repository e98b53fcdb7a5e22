"""From counts, with noise or without, to the parameters of a model: whole numbers, so that credits
follow from them on every engine alike. Nothing here sees a user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from adsbpc.attribution.counts import HOLDOUT, Coalitions, CountSet, Pairs, Transitions
from adsbpc.attribution.games import Reals, shapley_values
from adsbpc.attribution.logistic import logistic_fit, sigmoid
from adsbpc.attribution.markov import removal_effects
from adsbpc.attribution.rates import rate, total_rate
from adsbpc.model.grid import UNITS_PER_CONVERSION

# Rates and weights are multiples of 1 / RATE_PARTS, effects of 1 / EFFECT_PARTS.
RATE_PARTS = 2**30
EFFECT_PARTS = 2**16

Parameters = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Counted:
    """Values of a set of counts, in users, and the standard deviation of their noise."""

    counts: CountSet
    values: Reals
    noise: float

    def at(self, code: int) -> Reals:
        """(not converting, converting) users of a code."""
        position = self.counts.positions[2 * code]
        return self.values[position : position + 2]

    def baseline(self) -> float:
        """How often users convert who were kept from seeing anything; 0 if nobody was."""
        if not self.counts.holdout:
            return 0.0
        others, converting = self.at(HOLDOUT)
        return total_rate(converting, others + converting)


class CoalitionRates(Counted):
    """How often users convert who saw exactly a set of publishers."""

    counts: Coalitions

    @cached_property
    def sizes(self) -> list[np.ndarray]:
        """For each size, the members of its coalitions, a row each."""
        return [np.array(self.counts.of_size(size)) for size in range(1, self.counts.largest + 1)]

    @cached_property
    def seen(self) -> Reals:
        """Which publishers each coalition has, in the order of the cells."""
        rows = []
        for members in self.sizes:
            found = np.zeros((len(members), self.counts.players))
            np.put_along_axis(found, members, 1.0, axis=1)
            rows.append(found)
        return np.concatenate(rows)

    @cached_property
    def outcomes(self) -> Reals:
        """(not converting, converting) users of each coalition."""
        return np.asarray(self.values[: 2 * len(self.seen)].reshape(-1, 2))

    @cached_property
    def effects(self) -> Reals:
        """The logistic model."""
        converting, users = self.outcomes[:, 1], self.outcomes.sum(axis=1)
        seen = self.seen
        if self.counts.holdout:
            others, held_out = self.at(HOLDOUT)
            seen = np.vstack([seen, np.zeros(self.counts.players)])
            converting = np.append(converting, held_out)
            users = np.append(users, others + held_out)
        return logistic_fit(seen, converting, users, self.noise)

    @cached_property
    def rates(self) -> Reals:
        """v(S), the empty coalition's first. Where there is noise, or nobody was seen, it leans on
        the logistic model."""
        users = self.outcomes.sum(axis=1)
        expected = sigmoid(self.effects[0] + self.seen @ self.effects[1:])
        found = rate(self.outcomes[:, 1], users, expected, self.noise)
        return np.concatenate([[self.baseline()], found])

    @cached_property
    def _masks(self) -> tuple[np.ndarray, np.ndarray]:
        """Coalitions as bits in ascending order, the empty one first, and their places."""
        masks = np.concatenate([[0], *((1 << group).sum(axis=1) for group in self.sizes)])
        order = np.argsort(masks)
        return masks[order], order

    def rates_of(self, masks: np.ndarray) -> Reals:
        ascending, order = self._masks
        return np.asarray(self.rates[order[np.searchsorted(ascending, masks)]])

    def shapley(self) -> Iterator[tuple[np.ndarray, Reals, Reals]]:
        """For each size of coalitions, their members, the Shapley values of these, both a row a
        coalition, and how often it converts."""
        for members in self.sizes:
            bits = (np.arange(1 << members.shape[1])[:, None] >> np.arange(members.shape[1])) & 1
            games = self.rates_of((1 << members) @ bits.T)
            yield members, shapley_values(games), games[:, -1]


def estimate(model: str, order: int, counted: Counted) -> Parameters:
    """The parameters of a model, from the set of counts that it needs."""
    match model:
        case "shapley":
            return _shapley(counted)
        case "shapley_ordered":
            return _shapley_ordered(counted)
        case "logistic":
            return _logistic(counted)
        case "incremental_value":
            return _incremental_value(counted)
        case "probabilistic":
            return _probabilistic(counted, order)
        case "markov":
            return _markov(counted)
        case _:
            raise TypeError(f"no estimator for the attribution model {model!r}")


def _shapley(counted: Counted) -> Parameters:
    """Units of a conversion for the members of each coalition: values below 0 count as 0, and the
    whole is what the coalition achieves, or more if its members' values above 0 add up to more."""
    found = CoalitionRates(counted.counts, counted.values, counted.noise)
    units: list[int] = []
    for _, values, wholes in found.shapley():
        for row, whole in zip(_parts(np.maximum(values, 0.0)), _parts(wholes), strict=True):
            units += shared_units(row.tolist(), int(whole))
    return {"units": tuple(units)}


def shared_units(weights: list[int], least_whole: int = 0) -> list[int]:
    """A conversion's units in proportion to weights >= 0, rounded down; equally if there is nothing
    to share. With a larger whole the rest is nobody's."""
    whole = max(sum(weights), least_whole)
    if whole == 0:
        return [UNITS_PER_CONVERSION // len(weights)] * len(weights)
    return [UNITS_PER_CONVERSION * weight // whole for weight in weights]


def _shapley_ordered(counted: Counted) -> Parameters:
    found = CoalitionRates(counted.counts, counted.values, counted.noise)
    return {"rates": tuple(_parts(found.rates).tolist())}


def _logistic(counted: Counted) -> Parameters:
    found = CoalitionRates(counted.counts, counted.values, counted.noise)
    return {"effects": tuple(np.rint(found.effects * EFFECT_PARTS).astype(np.int64).tolist())}


def _incremental_value(counted: Counted) -> Parameters:
    """What is lost without a publisher: how often everybody converts who saw anything, less how
    often those do who did not see it."""
    counts = counted.counts
    assert isinstance(counts, Pairs)
    anybody = counted.at(0)
    everybody = total_rate(anybody[1], anybody.sum())
    unseen = np.array([anybody - counted.at(counts.code(p, p)) for p in range(counts.players)])
    if counts.holdout:
        unseen = unseen + counted.at(HOLDOUT)
    noise = counted.noise * np.sqrt(2 + counts.holdout)
    expected = np.full(counts.players, everybody)
    without = rate(unseen[:, 1], unseen.sum(axis=1), expected, noise)
    return {"weights": tuple(_parts(np.maximum(everybody - without, 0.0)).tolist())}


def pair_rates(counted: Counted) -> tuple[Reals, Reals]:
    """How often users convert who saw a publisher, and who saw two."""
    counts = counted.counts
    assert isinstance(counts, Pairs)
    anybody = counted.at(0)
    everyone = np.full(counts.players, total_rate(anybody[1], anybody.sum()))
    alone = np.array([counted.at(counts.code(p, p)) for p in range(counts.players)])
    single = rate(alone[:, 1], alone.sum(axis=1), everyone, counted.noise)
    both = np.array(
        [[counted.at(counts.code(p, q)) for q in range(counts.players)]
         for p in range(counts.players)]
    )  # fmt: skip
    expected = 1 - (1 - single[:, None]) * (1 - single[None, :])
    return single, rate(both[:, :, 1], both.sum(axis=2), expected, counted.noise)


def _probabilistic(counted: Counted, order: int) -> Parameters:
    """The model of Shao and Li 2011: a publisher's own rate, and of second order half of what each
    pair adds to the rates of its two, averaged over the others of the journey."""
    single, pair = pair_rates(counted)
    added = pair - single[:, None] - single[None, :]
    if order == 1:
        added = np.zeros_like(added)
    return {
        "rates": tuple(_parts(single).tolist()),
        "added": tuple(_parts(added).ravel().tolist()),
    }


def _markov(counted: Counted) -> Parameters:
    counts = counted.counts
    assert isinstance(counts, Transitions)
    effects = removal_effects(counts, counted.values, counted.noise)
    return {"weights": tuple(_parts(effects).tolist())}


def _parts(rates: Reals) -> np.ndarray:
    return np.rint(rates * RATE_PARTS).astype(np.int64)
