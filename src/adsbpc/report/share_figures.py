"""Shares drawn along an axis without any script: of publishers, and of one under several models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from adsbpc.report.charts import PublisherLine
from adsbpc.report.model_comparison import Compared
from adsbpc.report.numbers import decimals_of

if TYPE_CHECKING:
    from adsbpc.report.report import Report

_STEPS, _MOST_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2), 5


@dataclass(frozen=True)
class Scale:
    """An axis from 0 to the tick past every interval, with a tick every `step`."""

    step: float
    end: float

    @classmethod
    def over(cls, highs: Iterable[float]) -> Scale:
        widest = max(highs)
        step = next(step for step in _STEPS if widest <= _MOST_STEPS * step)
        return cls(step, step * ceil(widest / step - 1e-9))

    @property
    def ticks(self) -> list[float]:
        return [tick * self.step for tick in range(round(self.end / self.step) + 1)]

    def place(self, share: float) -> str:
        """How far along the axis, for a style."""
        return f"{100 * share / self.end:.6g}%"


@dataclass(frozen=True)
class ModelFigure:
    """A publisher's shares, model by model; all with as many digits, so that columns line up."""

    publisher: str
    colour: str
    shares: Sequence[Compared]
    scale: Scale
    digits: int


def scale_of_shares(report: Report, drawn: int) -> Scale | None:
    """None where the total cannot be told from zero, so that there are no shares."""
    shares = [each.share for each in report.standings.publishers[:drawn]]
    known = [share.high for share in shares if share is not None]
    return Scale.over(known) if known else None


def model_figures(report: Report, drawn: Sequence[PublisherLine]) -> list[ModelFigure]:
    """None where there is no comparison."""
    shares: dict[str, list[Compared]] = {}
    for each in report.models.comparison if report.models else ():
        shares.setdefault(each.publisher, []).append(each)
    return [
        ModelFigure(
            each.publisher,
            each.colour,
            found,
            Scale.over(share.high for share in found),
            decimals_of("conversions", 100 * min(share.standard_error for share in found)),
        )
        for each in drawn
        if (found := shares.get(each.publisher))
    ]
