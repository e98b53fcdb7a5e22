"""Bands: how far running totals may be off at all slots of a campaign at once.

A plain interval holds for a slot that was chosen beforehand. A band leaves more standard errors at
each slot, as many as all slots together need with the probability of the level. The noise of
running totals is jointly normal with a covariance that follows from the strategy, over slots to
come too, as if they went on as the newest one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log2

from adsbpc.model import RunningNoise
from adsbpc.report import joint_noise
from adsbpc.report.looks import critical_value, look_slots

# Sums whose rows are told apart by less have the same band: so many parts of an octave.
_ALIKE = 4


@dataclass(frozen=True)
class Bands:
    """Of all sums of a measure, by the noise of its running totals at every look of a campaign with
    so many slots, from that of none on. Long campaigns are not looked at after every slot."""

    noise: RunningNoise
    slots: int
    level: float
    _found: dict[tuple[int, ...], float] = field(default_factory=dict)

    def holds_at(self, slot: int) -> bool:
        return slot in look_slots(self.slots)

    def reach(self, depth: int, place: int) -> float:
        """How many standard errors a band leaves for the noise of one sum of a view."""
        times = [each.times[depth] for each in self.noise.stretches]
        own = [each[place] if len(each) > 1 else each[0] for each in times]
        # Only how stretches compare to one another matters.
        shape = tuple(round(_ALIKE * log2(each / own[0])) for each in own)
        if shape not in self._found:
            covariance = joint_noise.of_sum(self.noise, depth, place)[1:, 1:]
            self._found[shape] = critical_value(covariance, self.level)
        return self._found[shape]
