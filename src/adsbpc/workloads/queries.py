"""Linear questions about the slots: which there are, when each is answered, what noise does to it.

A workload is a matrix Q with a row a query and a column a slot. Sums over ranges of slots, which
nearly all are, are kept as their two ends, so that a year of hours needs no matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adsbpc.errors import WorkloadError

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]

_LARGEST_ENTRY = 1e6


class Workload(Protocol):
    """Queries in the order of their answers; `names[j]` and `slots[j]` belong to row j."""

    @property
    def slot_count(self) -> int: ...

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def slots(self) -> Integers: ...

    def span(self, row: int) -> tuple[int, int] | None:
        """(first, last) if query j is the sum over those slots."""

    def column_weights(self, weights_squared: Reals) -> Reals:
        """sum_j gamma_j^2 Q_ji^2, for every slot i."""

    def variances(self, slot_variances: Reals) -> Reals:
        """sum_i Q_ji^2 s_i, for every query j."""

    def lengths(self) -> Reals:
        """sum_i |Q_ji|, for every query j: how a constant error in each slot adds up."""

    def answers(self, values: Reals) -> Reals:
        """Q X for a column per cell; slots that are not there yet may be left out if no
        query that is read needs them."""


@dataclass(frozen=True)
class RangeSums:
    """Each query is the sum over the slots first..last, and is answered at `last`."""

    slot_count: int
    names: tuple[str, ...]
    first: Integers
    last: Integers

    @property
    def slots(self) -> Integers:
        return self.last

    def span(self, row: int) -> tuple[int, int]:
        return int(self.first[row]), int(self.last[row])

    def column_weights(self, weights_squared: Reals) -> Reals:
        steps = np.zeros(self.slot_count + 1)
        np.add.at(steps, self.first - 1, weights_squared)
        np.subtract.at(steps, self.last, weights_squared)
        return np.cumsum(steps)[:-1]

    def variances(self, slot_variances: Reals) -> Reals:
        return self.answers(slot_variances[:, None])[:, 0]

    def lengths(self) -> Reals:
        return (self.last - self.first + 1).astype(np.float64)

    def answers(self, values: Reals) -> Reals:
        sums = np.zeros((self.slot_count + 1, values.shape[1]))
        sums[1 : len(values) + 1] = np.cumsum(values, axis=0)
        return sums[self.last] - sums[self.first - 1]


@dataclass(frozen=True)
class MatrixQueries:
    """Any rows, each answered at the slot that goes with it."""

    slot_count: int
    names: tuple[str, ...]
    slots: Integers
    matrix: Reals

    def __post_init__(self) -> None:
        for row, entries in enumerate(self.matrix):
            if not np.isfinite(entries).all():
                raise WorkloadError(
                    f"query {self.names[row]!r} has an entry that is no finite number: correct it"
                )
            sizes = np.abs(entries[entries != 0])
            if sizes.size and (sizes.max() > _LARGEST_ENTRY or sizes.min() < 1 / _LARGEST_ENTRY):
                raise WorkloadError(
                    f"query {self.names[row]!r} has entries from {sizes.min():g} to "
                    f"{sizes.max():g} in size: expected {1 / _LARGEST_ENTRY:g} to "
                    f"{_LARGEST_ENTRY:g}, or 0"
                )
        for row, slot in enumerate(self.slots):
            later = np.flatnonzero(self.matrix[row, int(slot) :])
            if later.size:
                raise WorkloadError(
                    f"query {self.names[row]!r} is answered at slot {slot} but looks at slot "
                    f"{int(slot) + later[0] + 1}, which is in its future: set that entry to 0 or "
                    "answer the query later"
                )
            if not self.matrix[row].any():
                raise WorkloadError(f"query {self.names[row]!r} is all zeros: remove it")

    def span(self, row: int) -> None:
        return None

    def column_weights(self, weights_squared: Reals) -> Reals:
        return np.asarray(weights_squared @ self.matrix**2)

    def variances(self, slot_variances: Reals) -> Reals:
        return np.asarray(self.matrix**2 @ slot_variances)

    def lengths(self) -> Reals:
        return np.asarray(np.abs(self.matrix).sum(axis=1))

    def answers(self, values: Reals) -> Reals:
        return np.asarray(self.matrix[:, : len(values)] @ values)


def prefix_sums(slot_count: int) -> RangeSums:
    """From the first slot to each slot."""
    last = np.arange(1, slot_count + 1)
    names = tuple(f"prefix 1..{slot}" for slot in last)
    return RangeSums(slot_count, names, np.ones_like(last), last)


def sliding_windows(slot_count: int, window: int) -> RangeSums:
    """The last `window` slots at each slot; fewer at the start."""
    if not 1 <= window <= slot_count:
        raise WorkloadError(f"window = {window}: expected a number of slots from 1 to {slot_count}")
    last = np.arange(1, slot_count + 1)
    first = np.maximum(last - window + 1, 1)
    names = tuple(f"window {a}..{b}" for a, b in zip(first, last, strict=True))
    return RangeSums(slot_count, names, first, last)


def per_slot(slot_count: int) -> RangeSums:
    """Each slot by itself."""
    last = np.arange(1, slot_count + 1)
    return RangeSums(slot_count, tuple(f"slot {slot}" for slot in last), last, last)


def slot_ranges(slot_count: int, ranges: tuple[tuple[int, int], ...]) -> RangeSums:
    """Sums from one slot to another, both included."""
    for first, last in ranges:
        if not 1 <= first <= last <= slot_count:
            raise WorkloadError(
                f"range [{first}, {last}]: expected 1 <= first <= last <= {slot_count}"
            )
    if not ranges:
        raise WorkloadError("ranges = []: expected at least one range, for example [[1, 7]]")
    ordered = sorted(ranges, key=lambda ends: (ends[1], ends[0]))
    ends = np.array(ordered, dtype=np.int64)
    names = tuple(f"range {a}..{b}" for a, b in ordered)
    return RangeSums(slot_count, names, ends[:, 0], ends[:, 1])


def matrix_queries(path: Path, slot_count: int) -> MatrixQueries:
    """Queries from a CSV file without header: a row a query, a column a slot.

    With one column more, the first one says at which slot a query is answered. Without it there
    is a row a slot, in order.
    """
    try:
        table = np.loadtxt(path, delimiter=",", dtype=np.float64, ndmin=2)
    except OSError as error:
        raise WorkloadError(f"{path}: cannot be read ({error}). Check the path") from None
    except ValueError as error:
        raise WorkloadError(
            f"{path}: is not a table of numbers ({error}). Write numbers with commas between"
        ) from None
    rows, columns = table.shape
    if columns == slot_count + 1:
        slots, matrix = table[:, 0], table[:, 1:]
    elif columns == slot_count and rows == slot_count:
        slots, matrix = np.arange(1.0, slot_count + 1), table
    else:
        raise WorkloadError(
            f"{path}: found {rows} rows and {columns} columns; expected {slot_count} of both, or "
            f"{slot_count + 1} columns of which the first is the slot of the answer"
        )
    if not np.isin(slots, np.arange(1, slot_count + 1)).all():
        raise WorkloadError(
            f"{path}: the first column must hold slot numbers from 1 to {slot_count}"
        )
    order = np.argsort(slots, kind="stable")
    whole = slots[order].astype(np.int64)
    names = tuple(f"{path.stem} row {row + 1}" for row in order)
    return MatrixQueries(slot_count, names, whole, matrix[order])
