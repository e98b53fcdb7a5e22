"""A measure: one question of a campaign, with everything that counting it takes."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from adsbpc.model.grid import UNITS_PER_CONVERSION
from adsbpc.model.layout import Layout
from adsbpc.model.measure_spec import OF_IMPRESSIONS, MetricName


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
    def unit_value(self) -> float:
        """What one grid unit is worth in the metric."""
        return (self.value_cap or 1.0) / UNITS_PER_CONVERSION
