"""A source of noise that writes down what it is asked for, and contributions that do the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from adsbpc.contributions import ArrayContributions
from adsbpc.model import Layout
from adsbpc.privacy.randomness import Integers


class RecordingRandomness:
    """Returns the noise that a script gives for (kind, scale, how many draws of it came before);
    no noise without a script."""

    def __init__(self, script: Callable[[str, float, int], int] | None = None) -> None:
        self.draws: list[tuple[str, float]] = []
        self._script = script or (lambda kind, scale, before: 0)

    def _draw(self, kind: str, scale: float) -> int:
        before = self.draws.count((kind, scale))
        self.draws.append((kind, scale))
        return self._script(kind, scale, before)

    def gaussian(self, scale: float, size: int) -> Integers:
        return np.full(size, self._draw("gaussian", scale), dtype=np.int64)

    def laplace(self, scale: float) -> int:
        return self._draw("laplace", scale)

    def choose(self, scores: Sequence[int], scale: float) -> int:
        self.draws.append(("choose", scale))
        return int(np.argmax(scores))

    def scales(self, kind: str) -> list[float]:
        return [scale for drawn, scale in self.draws if drawn == kind]


class RecordingContributions(ArrayContributions):
    """Writes down every question about users."""

    def __init__(
        self, rows: list[tuple[str, int, int]], unit: int, slots: int, layout: Layout
    ) -> None:
        super().__init__(
            [user for user, _, _ in rows], [slot for _, slot, _ in rows],
            [publisher for _, _, publisher in rows], [unit] * len(rows), slots, layout,
        )  # fmt: skip
        self.asked: list[tuple[str, int, int | None]] = []

    def totals(self, slot: int, bound: int | None = None) -> Integers:
        self.asked.append(("totals", slot, bound))
        return super().totals(slot, bound)

    def users_above(self, slot: int, bound: int) -> int:
        self.asked.append(("users_above", slot, bound))
        return super().users_above(slot, bound)

    def histogram(self, slot: int, edges: Sequence[int]) -> Integers:
        self.asked.append(("histogram", slot, None))
        return super().histogram(slot, edges)
