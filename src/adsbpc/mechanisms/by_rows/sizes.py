"""Sizes of cells: small ones are measured more finely than large ones, because people who do much
are where much is done. From released figures alone."""

from __future__ import annotations

import numpy as np

from adsbpc.workloads.queries import Reals

# The size of a cell like the others; smaller numbers are coarser, for larger cells.
ONE_SIZE = 64
# More cells than this are all alike: the filter's sums would leave their bits.
MOST_SIZED = 4096
_POWER = 0.3
_COARSEST, _FINEST = 12.0, 0.25
_STEPS_PER_OCTAVE = 8
# Sizes that differ from those in use by less, in octaves in the mean, are not worth a renewal.
_WORTHWHILE = 0.06


def sizes_of(totals: Reals, errors: Reals, current: tuple[int, ...]) -> tuple[int, ...]:
    """Whole numbers by cell, from released totals with their standard errors; those in use where
    the difference is small. What is hardly seen counts as two standard errors."""
    seen = np.maximum(totals, 2 * errors)
    ratio = np.clip((seen / np.exp(np.log(seen).mean())) ** _POWER, _FINEST, _COARSEST)
    ratio = 2.0 ** (np.rint(np.log2(ratio) * _STEPS_PER_OCTAVE) / _STEPS_PER_OCTAVE)
    ratio /= np.sqrt((ratio**2).mean())
    change = np.log2(ratio / coarseness(current, len(totals)))
    if float(np.abs(change).mean()) <= _WORTHWHILE:
        return current
    return tuple(max(1, round(ONE_SIZE / each)) for each in ratio)


def coarseness(sizes: tuple[int, ...], cells: int) -> Reals:
    """How much more coarsely each cell is measured than it would be if all were alike."""
    return ONE_SIZE / np.array(sizes, dtype=np.float64) if sizes else np.ones(cells)


def multipliers_of(multiplier: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Of each cell, where they are not alike."""
    return tuple(max(1, multiplier * size // ONE_SIZE) for size in sizes)
