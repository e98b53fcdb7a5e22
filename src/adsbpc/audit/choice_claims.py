"""The claim that what personal budgets by rows choose follows from what was released before, and
from the histogram of the slot itself.

Sizes of cells, multipliers of what was cut, and from what allowance to what the past is let in
again are computed anew from released figures. Of the allowance itself it is checked that it is one
of those that may be chosen: a few hundred public numbers, none below the least that released
figures allow. Which of them the histograms ask for is NOT recomputed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log2, sqrt

from adsbpc.audit.claims import Claim, claim, require
from adsbpc.audit.multiplier_claims import LARGEST_MULTIPLIER, MOST_SIZED, allowance_of_one
from adsbpc.audit.promised_plan import CONVERSION, LIMIT, PromisedPlan
from adsbpc.audit.record import Record, Slot
from adsbpc.audit.released_figures import Released, ReleasedFigures
from adsbpc.audit.stretches import ONE_SIZE

# Sizes may change at these slots.
_SIZE_SLOTS = (2, 4, 8)
# The past is let in again if the allowance should be less or more by this, or if sizes change; less
# by the last of these where plans name no looks.
_LESS, _MORE, _LESS_UNNAMED = 1.01, 1.10, 1.025
# Allowances that may be chosen, and of the least one what people need who are spread out or loyal.
_STEPS = 96
_ALLOWANCES = tuple(0.52 * 2.0 ** (step / _STEPS) for step in range(-3, 16 * _STEPS))
_SPREAD_OUT, _LOYAL = 0.35, 1.5
_HEAVY_USER = 30
# Before this slot allowances are so many times as large where there are so few cells, and less so
# with the square of more, in whole steps of the allowances; not where plans name no looks.
_TOLD_FROM, _ROOM, _FEW_CELLS = 4, 1.4, 50
# Somebody who is counted once is taken to be in everything, and in so many sums of each list.
_SUMS_OF_A_LIST = 4
# Above every rounding of the allowance of those who are in two figures, once.
_A_LITTLE_MORE = 1 + 1e-6
# How much more coarsely than cells what was cut is counted.
_COARSER, _FAR_COARSER = (1.0, 3.0), 24.0
# Or, where it is counted finely, for every view in which somebody is cut.
_FINE = 1.5
# Room for rounding.
_ROUNDING = 1e-7


def choices(record: Record, plan: PromisedPlan) -> Claim:
    def check() -> str:
        slots = record.in_order()
        figures, choice = ReleasedFigures(record, plan), _Choices(plan, record.opening.get("start"))
        renewals = 0
        for number, slot in enumerate(slots, start=1):
            before = slots[number - 2] if number > 1 else None
            choice.check(number, slot, before, figures.before(number))
            renewals += slot.release["is_renewal"]
        return f"{renewals} renewals of the past; which allowance looks ask for is NOT CHECKED"

    checked = f"{len(record.slots):,} slots: sizes, renewals and multipliers from earlier releases"
    return claim("choices", checked, check)


@dataclass(frozen=True)
class _Choices:
    """What may be chosen under a plan, which starts with an allowance if an earlier campaign gave
    one."""

    plan: PromisedPlan
    start: float | None

    def check(self, number: int, slot: Slot, before: Slot | None, known: Released) -> None:
        told, looks = slot.release, self._looks(number)
        require(
            bool(told["histogram"]) == looks,
            f"slot {number} has {'no' if looks else 'a'} histogram, and looks are public",
        )
        sizes = self._sizes(number, before, known)
        require(
            told["sizes"] == sizes,
            f"slot {number} has sizes {told['sizes']}, and what was released before says {sizes}",
        )
        coarse = known.mean_coarseness(_beside(self._first_sizes, sizes))
        fitting = [
            allowance
            for allowance in self._allowances(number, before, known, coarse)
            if self._renews(allowance, slot, before)
            and (
                self._multipliers(allowance, told["multipliers"], coarse)
                if before is None or told["is_renewal"]
                else told["multipliers"] == before.release["multipliers"]
            )
        ]
        require(
            bool(fitting),
            f"slot {number} has multipliers {told['multipliers']} and "
            f"{'renews' if told['is_renewal'] else 'does not renew'} the past: no allowance that "
            "may be chosen from what was released before means that",
        )

    # ---- looks and sizes -----------------------------------------------------------------------

    @property
    def _is_fixed(self) -> bool:
        """Whether the allowance is public, and nothing is chosen."""
        return self.plan.privacy.personal_budget.allowance is not None or self.plan.one_figure_each

    def _looks(self, slot: int) -> bool:
        """Whether people are counted by need at a slot: those that the plan names, or in campaigns
        of early versions, which named none, by a rule and never at the end."""
        if self.plan.looks is not None:
            return slot in self.plan.looks
        is_last = slot == self.plan.slots > 1
        return not self._is_fixed and not is_last and is_look(slot)

    @property
    def _first_sizes(self) -> list[int]:
        """Before anything was released: alike but for the weights of views."""
        columns = self.plan.columns
        if columns.apart:
            finest = max(columns.weights)
            return [
                max(1, round(ONE_SIZE * weight / finest))
                for size, weight in zip(columns.sizes, columns.weights, strict=True)
                if weight
                for _ in range(size)
            ]
        is_sized = 1 < columns.cells <= MOST_SIZED and len(columns.views) == 1
        return [ONE_SIZE] * columns.cells if is_sized and not self._is_fixed else []

    def _sizes(self, number: int, before: Slot | None, known: Released) -> list[int]:
        if before is None:
            return self._first_sizes
        current: list[int] = before.release["sizes"]
        if self._is_fixed or number not in _SIZE_SLOTS or not self._looks(number) or not current:
            return current
        return known.sizes(self._first_sizes, current)

    # ---- allowances ----------------------------------------------------------------------------

    def _allowances(
        self, number: int, before: Slot | None, known: Released, coarse: float
    ) -> Iterator[float]:
        """That may be chosen at a slot, before they are rounded to a whole multiplier."""
        section = self.plan.privacy.personal_budget
        if self.plan.one_figure_each:
            yield sqrt(2 * self._dearest()) * _A_LITTLE_MORE
        elif section.allowance is not None:
            yield section.allowance
        elif before is not None and not self._looks(number):
            yield float(before.release["allowance"])
        else:
            least = self._least() * known.doubt() / coarse
            room = self._room(number) if self.start is None else 1.0
            yield least * room
            yield from (each * room for each in _ALLOWANCES if each > least)
            if self.start is not None:
                yield self.start / coarse

    def _room(self, slot: int) -> float:
        if slot >= _TOLD_FROM or self.plan.looks is None:
            return 1.0
        octaves = log2(_ROOM) * min(1.0, (_FEW_CELLS / self.plan.finest_cells) ** 2)
        return float(2.0 ** (round(_STEPS * octaves) / _STEPS))

    def _least(self) -> float:
        """Whatever histograms show, where forecasts are in doubt and cells are alike."""
        columns, section = self.plan.columns, self.plan.privacy.personal_budget
        if columns.once:
            sums = min(1 + _SUMS_OF_A_LIST * len(columns.lengths), self.plan.finest_cells)
            return sqrt(_SPREAD_OUT * sums)
        heavy = _HEAVY_USER if section.heavy_user is None else section.heavy_user
        return sqrt(
            _SPREAD_OUT * heavy + _LOYAL * self._met_again() * heavy**2 / self.plan.finest_cells
        )

    def _met_again(self) -> float:
        """What two slots of the strategy have in common, by what one has with itself: means."""
        rows, slots = self.plan.rows, self.plan.slots
        if slots == 1:
            return 0.0
        own = sum(entry**2 for row in rows for entry in row)
        across = sum(sum(row) ** 2 for row in rows) - own
        return across / (slots - 1) / own

    def _dearest(self) -> float:
        """The largest sum of squares of a column of the strategy."""
        rows, slots = self.plan.rows, self.plan.slots
        sums = [sum(rows[t][s] ** 2 for t in range(s, slots)) for s in range(slots)]
        return max(sums) / self.plan.one**2

    def _renews(self, allowance: float, slot: Slot, before: Slot | None) -> bool:
        """Whether the slot renews the past where it has to, and not otherwise."""
        told: bool = slot.release["is_renewal"]
        # Early versions renewed under a fixed allowance that rounding had moved far enough.
        if before is None or (self._is_fixed and not told):
            return not told
        last = float(before.release["allowance"])
        less = _LESS_UNNAMED if self.plan.looks is None else _LESS
        changed = allowance < last / less or allowance > last * _MORE
        return told == (changed or slot.release["sizes"] != before.release["sizes"])

    def _multipliers(self, allowance: float, told: Sequence[int], coarse: float) -> bool:
        """Whether these are what an allowance means, rounded down."""
        plan = self.plan
        cells = plan.columns.cells
        ratios = [min(max(sqrt(cells / 100), _COARSER[0]), _COARSER[1]), _FAR_COARSER]
        if plan.has_fine_cut:
            views = sum(weight > 0 for weight in plan.columns.weights)
            ratios[0] = _FINE * (views if plan.columns.apart else 1)
        wanted = [allowance_of_one(plan) / allowance] + [
            sqrt(LIMIT * share) / (allowance * ratio * coarse * plan.one * CONVERSION)
            for share, ratio in zip(plan.shares[1:], ratios, strict=False)
        ]
        return all(_is_rounded(a, b) for a, b in zip(told, wanted, strict=True))


def is_look(slot: int) -> bool:
    """Whether a slot is a power of two, or one and a half of one from 12 on.

    >>> [slot for slot in range(1, 50) if is_look(slot)]
    [1, 2, 4, 8, 12, 16, 24, 32, 48]
    """
    odd = slot // (slot & -slot)
    return odd == 1 or (odd == 3 and slot >= 12)


def _is_rounded(multiplier: int, wanted: float) -> bool:
    low = multiplier if multiplier > 1 else 0
    high = multiplier + 1 if multiplier < LARGEST_MULTIPLIER else float("inf")
    return low * (1 - _ROUNDING) <= wanted < high * (1 + _ROUNDING)


def _beside(first: Sequence[int], sizes: Sequence[int]) -> list[float]:
    """How much more coarsely cells are measured than at first."""
    return [one / size for one, size in zip(first, sizes, strict=True)]
