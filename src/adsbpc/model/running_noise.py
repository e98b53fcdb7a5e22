"""How far running totals are off together, so that the noise of any range of slots is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Matrix = Sequence[Sequence[float]]


@dataclass(frozen=True)
class RunningNoise:
    """Covariances of running totals after so many slots, 0 to the newest: `boundaries` says after
    how many. `column` is that of one noisy column; a sum that keeps k dimensions has `views[k]`
    times it. `cut` is that of what was cut, which besides differs between cells by `uneven` times
    itself, as a standard deviation.
    """

    boundaries: tuple[int, ...]
    column: Matrix
    cut: Matrix
    views: tuple[float, ...]
    uneven: float = 0.0

    def of_range(self, first: int, last: int) -> tuple[float, float]:
        """Variances of the sum from one boundary's place to another's: of a column, of the cut."""
        return self.together((first, last), (first, last))

    def together(self, one: tuple[int, int], other: tuple[int, int]) -> tuple[float, float]:
        """Covariances of two such sums."""
        (a, b), (c, d) = one, other
        column, cut = (m[b][d] - m[b][c] - m[a][d] + m[a][c] for m in (self.column, self.cut))
        return column, cut
