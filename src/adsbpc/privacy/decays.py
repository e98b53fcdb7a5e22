"""Strategies of long campaigns: every column is the same sum of a few decaying powers.

B is lower-triangular, with b_0, b_1, .. down every column, and b_j is at most

    r_j = w_1 lambda_1^(j - 1) + .. + w_d lambda_d^(j - 1)    for j >= 1.

G = B^T B is then, for slots s < t of n,

    G_ts = sum over j of b_j b_(j + t - s)  <=  sum over k of c_k(t) lambda_k^(t - s),
    with c_k(t) = sum over j = 0 .. n - t of b_j w_k lambda_k^(j - 1),

so that what a user moved before slot t costs, together with what it moves there, no more than d
running sums of it say: sum over k of c_k(t) a_k, with a_k = sum over s < t of lambda_k^(t - s) z_s.
Rates and weights are whole numbers of 2^-30. Everything that a charge is made of, c_k, powers of
lambda_k and running sums, is rounded up, and the entries of B are rounded down.

Must never: use a float, round a charge down, or let two users meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from adsbpc.errors import PrivacyError

# Rates, weights and powers are whole numbers of 2^-BITS.
BITS = 30
# While they are multiplied, powers have so many bits.
_FINE_BITS = 90
# The integer that stands for 1 in such a strategy: entries of its last rows have two digits still.
ONE_LONG = 2**13
MOST_LONG_SLOTS = 10_000
MOST_SUMS = 6
# Rates are not below 2^-10. Neither slots' own costs nor factors pass these.
_SMALLEST_RATE = 2 ** (BITS - 10)
_LARGEST_OWN_COST, _LARGEST_FACTOR = 2**30, 2**36


@dataclass(frozen=True)
class Crossing:
    """What of a slot's terms is about earlier slots: `own` is G_tt, `factors` are the c_k(t), and
    `powers[k][g]` is lambda_k^g in parts of 2^BITS, all of them rounded up."""

    slot: int
    own: int
    factors: tuple[int, ...]
    powers: tuple[tuple[int, ...], ...]

    def decayed(self, sums: Iterable[int], since: int) -> list[int]:
        """Running sums as of slot `since`, brought to this one."""
        gap = self.slot - since
        return [-(-(power[gap] * a) >> BITS) for power, a in zip(self.powers, sums, strict=True)]

    def before(self, sums: Iterable[int]) -> int:
        """What running sums say that earlier slots add: at least sum over s < t of G_ts z_s."""
        return sum(factor * a for factor, a in zip(self.factors, sums, strict=True))


@dataclass
class RunningSums:
    """By cell: the slot at which it was visited last, and the sums as of that slot."""

    cells: dict[int, tuple[int, list[int]]]

    def before(self, crossing: Crossing) -> dict[int, int]:
        """By cell, for everything before the slot."""
        return {
            cell: crossing.before(crossing.decayed(sums, since))
            for cell, (since, sums) in self.cells.items()
        }

    def add(self, crossing: Crossing, moved: Mapping[int, int]) -> None:
        """Bring the cells that are visited to the slot, and add to them."""
        for cell, move in moved.items():
            since, sums = self.cells.get(cell, (crossing.slot, [0] * len(crossing.factors)))
            now = [a + move for a in crossing.decayed(sums, since)]
            self.cells[cell] = (crossing.slot, now)


@dataclass(frozen=True)
class DecayingStrategy:
    """`first` is b_0; `weights` and `rates` are the w_k and lambda_k, in parts of 2^BITS."""

    slots: int
    first: int
    weights: tuple[int, ...]
    rates: tuple[int, ...]

    def __post_init__(self) -> None:
        numbers = (self.slots, self.first, *self.weights, *self.rates)
        if not all(type(number) is int for number in numbers):
            raise PrivacyError("a strategy of decaying powers that are no whole numbers")
        if not 1 <= self.slots <= MOST_LONG_SLOTS:
            raise PrivacyError(
                f"a strategy for {self.slots} slots: expected 1 to {MOST_LONG_SLOTS}. Take longer "
                'slots or fewer of them, or mechanism = "adsbpc"'
            )
        if not 1 <= len(self.rates) == len(self.weights) <= MOST_SUMS:
            raise PrivacyError(f"{len(self.rates)} rates: expected 1 to {MOST_SUMS}, a weight each")
        if self.first < 1 or min(self.weights) < 0:
            raise PrivacyError("a strategy of decaying powers with an entry below 0")
        if not all(_SMALLEST_RATE <= rate < 2**BITS for rate in self.rates):
            raise PrivacyError(f"rates {self.rates}: expected 2^-10 or more, and below 1")
        if max(self._own) > _LARGEST_OWN_COST or max(map(max, self._factors)) > _LARGEST_FACTOR:
            raise PrivacyError("a strategy whose columns are too wide for the filter's integers")

    @cached_property
    def entries(self) -> tuple[int, ...]:
        """b_0 .. b_(n - 1), rounded down."""
        found, powers = [self.first], [2**_FINE_BITS] * len(self.rates)
        for _ in range(1, self.slots):
            exact = sum(w * power for w, power in zip(self.weights, powers, strict=True))
            found.append(exact >> (BITS + _FINE_BITS))
            powers = [p * rate >> BITS for p, rate in zip(powers, self.rates, strict=True)]
        return tuple(found)

    @cached_property
    def _fine_powers(self) -> list[list[int]]:
        """lambda_k^g for g = 0 .. n, rounded up, in parts of 2^_FINE_BITS."""
        return [
            list(accumulate([rate] * self.slots, _times_up, initial=2**_FINE_BITS))
            for rate in self.rates
        ]

    @cached_property
    def powers(self) -> tuple[tuple[int, ...], ...]:
        """lambda_k^g for g = 0 .. n, rounded up, in parts of 2^BITS."""
        return tuple(
            tuple(-(-power >> (_FINE_BITS - BITS)) for power in of_rate)
            for of_rate in self._fine_powers
        )

    @cached_property
    def _own(self) -> list[int]:
        """G_tt by how many rows come after row t."""
        return list(accumulate(entry**2 for entry in self.entries))

    @cached_property
    def _factors(self) -> list[list[int]]:
        """c_k by how many rows come after row t, rounded up."""
        found = []
        for weight, rate, powers in zip(self.weights, self.rates, self._fine_powers, strict=True):
            # In parts of 2^_FINE_BITS; the first has lambda^-1.
            first = -(-(self.first * weight << _FINE_BITS) // rate)
            later = (
                -(-(entry * weight * power) >> BITS)
                for entry, power in zip(self.entries[1:], powers, strict=False)
            )
            sums = accumulate(later, initial=first)
            found.append([-(-each >> _FINE_BITS) for each in sums])
        return found

    def crossing(self, slot: int) -> Crossing:
        """What slot t costs over all rows, those of the future too."""
        rows_after = self.slots - slot
        factors = tuple(of_rate[rows_after] for of_rate in self._factors)
        return Crossing(slot, self._own[rows_after], factors, self.powers)

    @property
    def rows(self) -> Iterable[tuple[int, ...]]:
        """Row t has b_(t - 1) .. b_0."""
        return (self.row(slot) for slot in range(1, self.slots + 1))

    def row(self, slot: int) -> tuple[int, ...]:
        return self.entries[slot - 1 :: -1]


def _times_up(power: int, rate: int) -> int:
    return -(-(power * rate) >> BITS)
