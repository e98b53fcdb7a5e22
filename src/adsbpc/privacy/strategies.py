"""Strategies of the personal budgets: which sums over slots each noisy row holds.

A strategy is a lower-triangular matrix B of whole numbers >= 0, fixed before anything of the first
slot is admitted. Row t is published after slot t. G = B^T B says what contributions cost, over
*all* rows, those of the future too. Entries >= 0 make G >= 0, on which substitution and the filter
rest. How well a strategy answers is a matter of accuracy; every strategy here is private.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from adsbpc.errors import PrivacyError
from adsbpc.privacy.randomness import Integers

Reals = NDArray[np.float64]

# The integer that stands for 1 in a strategy.
ONE = 2**10
# A slot's own cost G_tt stays below this, and the number of slots too: the filter's products then
# stay within 64 and 128 bits.
_LARGEST_OWN_COST = 2**24
MOST_SLOTS = 1_000
_WIDEST = 3.9
# Of the search for equal columns; after these nothing changes that whole numbers show.
_STEPS = 60


@dataclass(frozen=True)
class Strategy:
    """`rows[t - 1]` has the entries of row t for the slots 1..t."""

    rows: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.rows) <= MOST_SLOTS:
            raise PrivacyError(
                f"a strategy for {len(self.rows)} slots: expected 1 to {MOST_SLOTS}. Take longer "
                'slots or fewer of them, or mechanism = "adsbpc"'
            )
        for slot, row in enumerate(self.rows, start=1):
            whole = all(type(entry) is int for entry in row)
            if len(row) != slot or not whole or min(row) < 0 or row[-1] < 1:
                raise PrivacyError(
                    f"row {slot} of a strategy: expected {slot} whole numbers, none below 0, the "
                    "last one above 0"
                )
            if max(row) ** 2 > _LARGEST_OWN_COST:
                raise PrivacyError(f"row {slot} of a strategy has an entry of {max(row)}: too wide")
        if int(self.gram.diagonal().max()) > _LARGEST_OWN_COST:
            raise PrivacyError("a strategy whose columns are too wide for the filter's integers")
        if int(self.gram.min()) < 0:
            raise PrivacyError("a strategy with a negative entry in B^T B")

    @property
    def slots(self) -> int:
        return len(self.rows)

    @cached_property
    def matrix(self) -> Integers:
        full = np.zeros((self.slots, self.slots), dtype=np.int64)
        for slot, row in enumerate(self.rows):
            full[slot, : slot + 1] = row
        return full

    @cached_property
    def gram(self) -> Integers:
        """G = B^T B over all rows, exactly: entries are below 2^12 and rows below 2^10."""
        return self.matrix.T @ self.matrix


def on_grid(matrix: Reals) -> Strategy:
    """The nearest strategy of whole numbers, with a mean own cost of ONE^2, or less if some slot
    has far more than others; entries below 0 become 0."""
    positive = np.maximum(np.tril(matrix), 0)
    own = (positive**2).sum(axis=0)
    unit = max(np.sqrt(own.mean()), np.sqrt(own.max()) / _WIDEST)
    whole = np.rint(ONE / unit * positive).astype(np.int64)
    np.fill_diagonal(whole, np.maximum(whole.diagonal(), 1))
    return Strategy(tuple(tuple(map(int, row[: k + 1])) for k, row in enumerate(whole)))


def identity(slots: int) -> Strategy:
    """Every slot by itself: independent noise."""
    return on_grid(np.eye(slots))


def toeplitz(slots: int, beta: float) -> Strategy:
    """f_0 = 1, f_k = f_(k-1) (k - 1 + beta) / k down every column; beta = 0 is the identity."""
    steps = np.arange(1, slots)
    column = np.concatenate([[1.0], np.cumprod((steps - 1 + beta) / steps)])
    distance = np.arange(slots)[:, None] - np.arange(slots)[None, :]
    return on_grid(np.where(distance >= 0, column[np.abs(distance)], 0.0))


def square_root(slots: int) -> Strategy:
    """The square root of the prefix sums: what a user who appears once wants."""
    return toeplitz(slots, 0.5)


def optimised(asked: Reals, recurrence: float) -> Strategy:
    """The strategy for questions with A = Q^T diag(weights^2) Q, given how users come back.

    The weighted error is tr(A G^-1). A user with conversions spread over slots and cells
    costs <G, M> with M = I + recurrence 11^T in the mean, where `recurrence` says how often the
    same cell is met again on another slot. Least error at <G, M> = 1 is had with
    G = M^-1/2 (M^1/2 A M^1/2)^1/2 M^-1/2, and B is its lower-triangular factor.
    """
    slots = len(asked)
    root = _psd_power(np.eye(slots) + recurrence, 0.5)
    inverse = _psd_power(np.eye(slots) + recurrence, -0.5)
    gram = inverse @ _psd_power(root @ asked @ root, 0.5) @ inverse
    # A slot that nobody asks about would have no row of its own.
    gram += np.eye(slots) * 1e-6 * np.trace(gram) / slots
    factor = np.linalg.cholesky(gram[::-1, ::-1])[::-1, ::-1].T
    return on_grid(factor.astype(np.float64))


def equal_columns(asked: Reals) -> Strategy:
    """The strategy for the same questions where everybody is in one slot, once: least tr(A G^-1)
    with the same own cost G_tt = 1 in every slot.

    At the optimum G = D^-1/2 (D^1/2 A D^1/2)^1/2 D^-1/2 for a diagonal D with G_tt = 1, which
    D = diag((D^1/2 A D^1/2)^1/2) finds step by step (Denisov, McMahan, Rush, Smith and Thakurta
    2022, "Improved differential privacy for SGD via optimal private linear operators").
    """
    scales = np.sqrt(np.maximum(asked.diagonal(), 1e-9 * asked.diagonal().max()))
    for _ in range(_STEPS):
        root = np.sqrt(scales)
        inner = _psd_power(root[:, None] * asked * root, 0.5)
        scales = np.maximum(inner.diagonal(), 1e-9 * inner.diagonal().max())
    root = np.sqrt(scales)
    gram = inner / root[:, None] / root + 1e-9 * np.eye(len(asked))
    factor = np.linalg.cholesky(gram[::-1, ::-1])[::-1, ::-1].T
    return on_grid(factor.astype(np.float64))


def _psd_power(matrix: Reals, power: float) -> Reals:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    smallest = 1e-12 * max(float(values.max()), 1e-300)
    return np.asarray((vectors * np.maximum(values, smallest) ** power) @ vectors.T)
