"""Rows of the plain-Python reference, as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adsbpc.contributions import ArrayContributions
from adsbpc.contributions.reference import Row
from adsbpc.model import Layout


def arrays_of(rows: Sequence[Row], slots: int, layout: Layout) -> ArrayContributions:
    return ArrayContributions(
        np.array([row.user for row in rows], dtype=str),
        [row.slot for row in rows],
        [row.cell for row in rows],
        [row.weight for row in rows],
        slots,
        layout,
    )
