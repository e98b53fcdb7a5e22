"""Sizes of cells: small ones are measured more finely than large ones, because people who do much
are where much is done. From public weights and released figures alone."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np

from adsbpc.model.layout import Layout
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


def counted_layout(layout: Layout) -> Layout:
    """The cells that are measured: sums that have columns are cells of their own, each of its size,
    as long as there are not too many."""
    is_small = layout.columns <= MOST_SIZED
    return layout.taken_apart() if len(layout.views) > 1 and is_small else layout


def first_sizes(layout: Layout) -> tuple[int, ...]:
    """Of the cells that are measured, before anything was released: alike but for what weights of
    their views say."""
    if not layout.apart:
        return (ONE_SIZE,) * len(layout)
    return tuple(
        size
        for view, part in zip(layout.stood_for, unit_parts(layout), strict=True)
        for size in [max(1, round(ONE_SIZE * part))] * view.columns
    )


def unit_parts(layout: Layout) -> list[float]:
    """By view that is taken apart, how finely it is measured beside the finest of them."""
    finest = max(view.weight for view in layout.stood_for)
    return [view.weight / finest for view in layout.stood_for]


def sizes_of(
    totals: Reals, errors: Reals, current: tuple[int, ...], layout: Layout
) -> tuple[int, ...]:
    """Whole numbers by cell, from released totals with their standard errors; those in use where
    the difference is small. What is hardly seen counts as two standard errors. Sums of one view are
    told apart from one another, and not from those of other views."""
    ratio, seen = np.ones(len(layout)), np.maximum(totals, 2 * errors)
    for part in _views(layout):
        own = (seen[part] / np.exp(np.log(seen[part]).mean())) ** _POWER
        own = np.clip(own, _FINEST, _COARSEST)
        own = 2.0 ** (np.rint(np.log2(own) * _STEPS_PER_OCTAVE) / _STEPS_PER_OCTAVE)
        ratio[part] = own / np.sqrt((own**2).mean())
    wanted = np.array(first_sizes(layout)) / ratio
    if float(np.abs(np.log2(wanted / np.array(current))).mean()) <= _WORTHWHILE:
        return current
    return tuple(max(1, round(each)) for each in wanted)


def _views(layout: Layout) -> list[slice]:
    """Cells that are compared with one another."""
    if not layout.apart:
        return [slice(None)]
    ends = accumulate((view.columns for view in layout.stood_for), initial=0)
    return [slice(*each) for each in pairwise(ends)]


def coarseness(sizes: tuple[int, ...], layout: Layout) -> Reals:
    """How much more coarsely each cell is measured than it would be if all were alike; of a layout
    that is taken apart, each of the finest cells."""
    finest = _views(layout)[-1]
    if not sizes:
        return np.ones(len(layout))[finest]
    return np.asarray(np.array(first_sizes(layout)) / np.array(sizes, dtype=np.float64))[finest]


def multipliers_of(multiplier: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Of each cell, where they are not alike."""
    return tuple(max(1, multiplier * size // ONE_SIZE) for size in sizes)
