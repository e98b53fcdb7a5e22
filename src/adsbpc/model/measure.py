"""A measure: one question of a campaign, with everything that counting it takes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from adsbpc.model.grid import UNITS_PER_CONVERSION
from adsbpc.model.layout import Layout
from adsbpc.model.measure_spec import ARM, OF_IMPRESSIONS, SQUARES, MetricName


@dataclass(frozen=True)
class Measure:
    """`share` is the part of the campaign's budget that pays for it."""

    name: str
    metric: MetricName
    value_cap: float | None
    currency: str | None
    layout: Layout
    share: Fraction

    @property
    def of_impressions(self) -> bool:
        """Whether it counts impressions, or people by them, and not conversions."""
        return self.metric in OF_IMPRESSIONS

    @property
    def by_arm(self) -> bool:
        """Whether it is of a trial: all conversions count, touched or not."""
        return self.layout.dimensions[0].name == ARM

    @property
    def tells_arms(self) -> bool:
        """Whether arms are told apart: of a trial, or of credits."""
        return any(each.name == ARM for each in self.layout.dimensions)

    @property
    def is_squared(self) -> bool:
        return self.metric in SQUARES.values()

    @property
    def one_figure_each(self) -> bool:
        """Whether everybody is in one arm, once, and in the sum of everything: nobody can ask for
        more than that."""
        return self.by_arm and self.layout.once and len(self.layout.dimensions) == 1

    @property
    def unit_value(self) -> float:
        """What one grid unit is worth in the metric."""
        worth = self.value_cap or 1.0
        return (worth**2 if self.is_squared else worth) / UNITS_PER_CONVERSION
