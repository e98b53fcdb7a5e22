"""Rows of the plain-Python reference, as arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from adsbpc.contributions import ArrayContributions
from adsbpc.contributions.reference import Row


def arrays_of(rows: Sequence[Row], slots: int, publishers: tuple[str, ...]) -> ArrayContributions:
    return ArrayContributions(
        np.array([row.user for row in rows], dtype=str),
        [row.slot for row in rows],
        [row.publisher for row in rows],
        [row.weight for row in rows],
        slots,
        publishers,
    )
