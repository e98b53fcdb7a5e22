"""A campaign's total as a small picture, without any script.

Its width is the whole campaign, so that it also shows how far the campaign is.
"""

from __future__ import annotations

from dataclasses import dataclass

from adsbpc.model import ALL_PUBLISHERS
from adsbpc.report import Report

WIDTH, HEIGHT = 200, 40
_MOST_POINTS = 100


@dataclass(frozen=True)
class Spark:
    """Points of an SVG: the line, and the band around it."""

    line: str
    band: str


def spark_of(report: Report) -> Spark:
    newest, slots = report.newest.slot, report.spec.campaign.slots
    every = -(-newest // _MOST_POINTS)
    cells = [
        cell
        for cell in report.running_totals(sorted(range(newest, 0, -every)))
        if cell.publisher == ALL_PUBLISHERS
    ]
    # Nothing was counted before the first slot: that is known without noise.
    rows = [
        (0, 0.0, 0.0, 0.0),
        *((cell.slot, cell.estimate, cell.low, cell.high) for cell in cells),
    ]
    lowest = min(row[2] for row in rows)
    spread = max(row[3] for row in rows) - lowest or 1.0

    def point(slot: int, value: float) -> str:
        return f"{WIDTH * slot / slots:.1f},{HEIGHT * (1 - (value - lowest) / spread):.1f}"

    upper = [point(slot, high) for slot, _, _, high in rows]
    lower = [point(slot, low) for slot, _, low, _ in reversed(rows)]
    return Spark(
        line=" ".join(point(slot, value) for slot, value, _, _ in rows),
        band=" ".join(upper + lower),
    )
