"""What was released before a slot, as choices for the slot see it: totals of cells with their
errors, sizes that follow from them, and how surely people come back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, log2, sqrt

from adsbpc.audit.added_cut import precisions_of, solved
from adsbpc.audit.answer_claims import estimates
from adsbpc.audit.promised_plan import HISTOGRAM, PICO, PromisedPlan
from adsbpc.audit.record import Record, Slot
from adsbpc.audit.stretches import ReleasedRow, released_rows

# A cell is measured more coarsely by its size to this power, within these factors, in steps of so
# many to an octave; what is hardly seen counts as so many standard errors.
_POWER, _FACTORS, _STEPS, _HARDLY_SEEN = 0.3, (0.25, 12.0), 8, 2.0
# Other sizes are taken if they are so many octaves off, in the mean.
_WORTHWHILE = 0.06
# Forecasts are so much in doubt as people stay away; and wholly, if fewer people were seen than so
# many times what noise may hide.
_IN_DOUBT, _MANY = 2.0, 5.0


class ReleasedFigures:
    """Of a campaign by rows."""

    def __init__(self, record: Record, plan: PromisedPlan) -> None:
        self._plan, self._slots = plan, record.in_order()
        self._rows, self._cells = released_rows(record, plan), estimates(record, plan)

    def before(self, slot: int) -> Released:
        known = slot - 1
        return Released(self._plan, self._slots[:known], self._rows[:known], self._cells[:known])


@dataclass(frozen=True)
class Released:
    """`cells` are noisy totals by slot and finest cell, of the rows so far."""

    plan: PromisedPlan
    slots: Sequence[Slot]
    rows: Sequence[ReleasedRow]
    cells: Sequence[Sequence[float]]

    @property
    def _totals(self) -> list[float]:
        return [sum(own) for own in zip(*self.cells, strict=True)]

    def mean_coarseness(self, coarseness: Sequence[float]) -> float:
        """Of what people do: cells count by what was released of them. Where sums are cells of
        their own, the finest ones count, which come last."""
        shares = [max(total, 0.0) for total in self._totals]
        if not coarseness or not any(shares):
            return 1.0
        finest = coarseness[-len(shares) :]
        squared = sum(a / b**2 for a, b in zip(shares, finest, strict=True)) / sum(shares)
        return 1 / sqrt(squared)

    def doubt(self) -> float:
        """1 where anybody may come or stay away, 0 where those come who came."""
        looked = [n for n, slot in enumerate(self.slots, start=1) if slot.release["histogram"]]
        by_slot = [sum(own) for own in self.cells]
        if looked[1:] == [] or self.plan.columns.once or by_slot[0] <= 0:
            return 1.0
        bins = self.slots[0].release["histogram"]
        deviation = sqrt(self.plan.two / (2 * self.slots[0].charged(HISTOGRAM) / PICO))
        hidden = 2 * deviation * sqrt(len(bins))
        first, newest = sum(bins), sum(self.slots[looked[-1] - 1].release["histogram"])
        if first < _MANY * hidden:
            return 1.0
        visits = sum(by_slot[: looked[-1]]) / by_slot[0] * (first - hidden)
        doubt = _IN_DOUBT * (1 - visits / (looked[-1] * (newest + hidden)))
        return float(min(max(doubt, 0.0), 1.0))

    # ---- sizes ---------------------------------------------------------------------------------

    def sizes(self, first: Sequence[int], current: list[int]) -> list[int]:
        """Of the cells of the books, where they were `first` before anything was released: cells of
        a view are told apart from one another."""
        wanted: list[float] = []
        for totals, errors in self._by_view():
            seen = [max(a, _HARDLY_SEEN * b) for a, b in zip(totals, errors, strict=True)]
            usual = exp(sum(map(log, seen)) / len(seen))
            factors = [_step((each / usual) ** _POWER) for each in seen]
            root = sqrt(sum(factor**2 for factor in factors) / len(factors))
            wanted += [root / factor for factor in factors]
        wanted = [one * each for one, each in zip(first, wanted, strict=True)]
        off = sum(abs(log2(a / b)) for a, b in zip(wanted, current, strict=True)) / len(wanted)
        return [max(1, round(each)) for each in wanted] if off > _WORTHWHILE else current

    def _by_view(self) -> list[tuple[list[float], list[float]]]:
        """Totals so far and their standard errors, in grid units, for cells of the books."""
        columns, weights = self.plan.columns, self._weights_of_rows()
        if not columns.apart:
            of_rows = [[[1 / each for each in precisions_of(row, columns)]] for row in self.rows]
            sums = [self._totals]
        else:
            depths = [depth for depth, weight in enumerate(columns.weights) if weight]
            everything = [columns.variances(precisions_of(row, columns)) for row in self.rows]
            of_rows = [[own[depth] for depth in depths] for own in everything]
            views = columns.views_of(self._totals)
            sums = [views[depth] for depth in depths]
        scale = float(self.slots[0].release["scale"])
        return [
            (
                totals,
                [
                    scale * sqrt(sum(w**2 * v for w, v in zip(weights, own, strict=True)))
                    for own in zip(*(row[place] for row in of_rows), strict=True)
                ],
            )
            for place, totals in enumerate(sums)
        ]

    def _weights_of_rows(self) -> list[float]:
        """How often the total of all slots so far has each row: sums of columns of B^-1."""
        rows = self.plan.rows[: len(self.rows)]
        return [
            sum(
                solved(
                    [row[start:] for row in rows[start:]], [1.0] + [0.0] * len(rows[start + 1 :])
                )
            )
            for start in range(len(rows))
        ]


def _step(factor: float) -> float:
    """
    >>> _step(1.1), _step(100.0)
    (1.0905077326652577, 12.337686603263526)
    """
    least, most = _FACTORS
    return 2 ** float(round(log2(min(max(factor, least), most)) * _STEPS) / _STEPS)
