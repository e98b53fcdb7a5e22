"""The strategy of a long campaign, as its plan tells it: one column, again and again.

Entry b_0 is given. b_j is the sum over k of w_k lambda_k^(j - 1), rounded down, where weights and
rates are whole numbers of 2^-30, and powers are multiplied with 90 bits and rounded down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from operator import mul
from typing import overload

_BITS, _POWER_BITS = 30, 90


class ShiftedRow(Sequence[int]):
    """Row t: b_(t - 1) .. b_0."""

    def __init__(self, entries: Sequence[int], slot: int) -> None:
        self._entries, self._slot = entries, slot

    def __len__(self) -> int:
        return self._slot

    @overload
    def __getitem__(self, place: int) -> int: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[int]: ...

    def __getitem__(self, place: int | slice) -> int | Sequence[int]:
        if isinstance(place, slice):
            return list(self)[place]
        if not -self._slot <= place < self._slot:
            raise IndexError(place)
        return self._entries[self._slot - 1 - place % self._slot]

    def __iter__(self) -> Iterator[int]:
        return iter(self._entries[self._slot - 1 :: -1])


class ShiftedRows(Sequence[ShiftedRow]):
    """All rows, none of which is written down."""

    def __init__(
        self, slots: int, first: int, weights: tuple[int, ...], rates: tuple[int, ...]
    ) -> None:
        self._slots = slots
        self.numbers = (first, *weights, *rates)
        self._first, self._weights, self._rates = first, weights, rates

    @cached_property
    def entries(self) -> list[int]:
        found, powers = [self._first], [1 << _POWER_BITS for _ in self._rates]
        while len(found) < self._slots:
            found.append(sum(map(mul, self._weights, powers)) >> (_BITS + _POWER_BITS))
            powers = [
                power * rate >> _BITS for power, rate in zip(powers, self._rates, strict=True)
            ]
        return found

    def __len__(self) -> int:
        return self._slots

    @overload
    def __getitem__(self, place: int) -> ShiftedRow: ...

    @overload
    def __getitem__(self, place: slice) -> list[ShiftedRow]: ...

    def __getitem__(self, place: int | slice) -> ShiftedRow | list[ShiftedRow]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(self._slots))]
        if not -self._slots <= place < self._slots:
            raise IndexError(place)
        return ShiftedRow(self.entries, place % self._slots + 1)

    def gram(self, last: int, slots: int) -> dict[tuple[int, int], int]:
        """Sums over the rows to a last one of products of two of their entries, for the first
        slots.

        >>> ShiftedRows(2, 3, (2**30,), (2**29,)).gram(2, slots=2)
        {(1, 1): 10, (2, 1): 3, (2, 2): 9}
        """
        found: dict[tuple[int, int], int] = {}
        entries = self.entries[:last]
        by_gap = [
            list(accumulate(map(mul, entries, entries[gap:]))) for gap in range(min(slots, last))
        ]
        for t in range(1, min(slots, last) + 1):
            for s in range(1, t + 1):
                found[t, s] = by_gap[t - s][last - t]
        return found
