"""What people will need until the end, if they go on as so far: public factors by how often
somebody was seen. A forecast can be wrong, but not unsafe: it says in which bin of a histogram
somebody is, or makes somebody be let in more slowly."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from adsbpc.privacy import Growth, Strategy
from adsbpc.privacy.filter import FORECAST_BITS
from adsbpc.workloads.queries import Reals

# Who was seen k times is expected to come back as if it had been so many roots of k fewer.
LOOK_CAUTION, PACE_CAUTION = 0.5, 0.7
# After one slot, somebody's norm at the end is taken to be this many times what it is.
_FIRST = 3.0
# What an engine's whole numbers hold.
_LARGEST_FACTOR = 2**62


@dataclass(frozen=True)
class Needs:
    """Forecasts under a strategy."""

    strategy: Strategy

    def of_looks(self, slot: int, doubt: float) -> Growth:
        """Needs at the end, as far as it is in doubt that people come back as they did."""
        own, across = self._more(slot, doubt * LOOK_CAUTION, sees_regulars=True)
        first = _FIRST**2 if slot == 1 else 1.0
        return _growth(first * (1 + own), first * (1 + across))

    def of_pace(self, slot: int, moved_per_need: float) -> Growth:
        """What is still to come, where so much is moved for a need of one."""
        own, across = self._more(slot, PACE_CAUTION, sees_regulars=False)
        return _growth(own * moved_per_need**2, across * moved_per_need**2)

    def _more(self, slot: int, caution: float, sees_regulars: bool) -> tuple[Reals, Reals]:
        """How much more than so far is to come after a slot, for own needs and those across slots,
        by how often somebody was seen."""
        slots = self.strategy.slots
        seen = np.arange(1.0, slot + 1)
        rate = np.maximum(seen - 1 - caution * np.sqrt(seen), 0) / max(slot - 1, 1)
        more = rate * (slots - slot)
        if sees_regulars and 2 * slot > slots:
            # Who came every time will not stay away.
            more[-1] = slots - slot
        if slot == 1 or slot == slots:
            return np.zeros(slot), np.zeros(slot)
        gram = self.strategy.gram.astype(np.float64)
        own = gram.diagonal()
        dearer = own[slot:].mean() / own[:slot].mean()
        pairs = (seen + more) * (seen + more - 1) / np.maximum(seen * (seen - 1), 1)
        so_far = _mean_of_pairs(gram, slot)
        farther = _mean_of_pairs(gram, slots) / so_far if so_far else 1.0
        across = np.where((seen > 1) & (more > 0), np.maximum(pairs * farther - 1, 0), 0.0)
        return more / seen * dearer, across


def _mean_of_pairs(gram: Reals, slots: int) -> float:
    part = gram[:slots, :slots]
    return float(part.sum() - np.trace(part)) / (slots * (slots - 1))


def _growth(own: Reals, across: Reals) -> Growth:
    def whole(factors: Reals) -> tuple[int, ...]:
        return tuple(min(int(factor * 2**FORECAST_BITS), _LARGEST_FACTOR) for factor in factors)

    return Growth(whole(own), whole(across))


def meets_again(strategy: Strategy) -> float:
    """What two conversions with one cell on different slots cost beside one alone, in the mean."""
    if strategy.slots == 1:
        return 0.0
    gram = strategy.gram.astype(np.float64)
    return _mean_of_pairs(gram, strategy.slots) / (float(np.trace(gram)) / strategy.slots)


def conversions_of(norms: Reals, met_again: float) -> Reals:
    """Those w of somebody with this norm, if w + met_again w^2 = norm^2."""
    if met_again < 1e-9:
        return np.asarray(norms**2)
    return np.asarray((np.sqrt(1 + 4 * met_again * norms**2) - 1) / (2 * met_again))


def norm_of(conversions: float, met_again: float) -> float:
    return sqrt(conversions + met_again * conversions**2)
