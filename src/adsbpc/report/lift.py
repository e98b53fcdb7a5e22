"""Lift: what a campaign caused, from released totals by arm, with intervals and bands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from adsbpc.model import OTHER_PUBLISHER, Measure
from adsbpc.model.lift_spec import LiftSection
from adsbpc.model.measure_spec import SQUARES
from adsbpc.report import joint_noise
from adsbpc.report.contrast import ArmTotals, Contrast
from adsbpc.report.looks import Reals, look_slots

if TYPE_CHECKING:
    from adsbpc.report.report import Report

# What lift is shown for; squares and people are behind it.
_TOLD = ("converters", "conversions", "value")


@dataclass(frozen=True)
class Lift:
    """What an arm did more than it would have, after a slot, by the arm that it is compared with:
    the control, or one that sees all but the publishers `withheld`. `keys` are the values of
    further dimensions. The plain interval holds for one look, the band for all of them; there is
    none before enough people are behind both arms. `relative` figures are None where the control
    cannot be told from zero, `cost` ones without spend or where nothing was surely caused.
    `slots_needed` says after how many slots an effect would be told, if it goes on as so far."""

    measure: str
    arm: str
    control: str
    slot: int
    keys: dict[str, str]
    withheld: tuple[str, ...]
    incremental: float
    standard_error: float
    low: float
    high: float
    band_low: float | None
    band_high: float | None
    relative: float | None
    relative_low: float | None
    relative_high: float | None
    cost: float | None
    cost_low: float | None
    cost_high: float | None
    slots_needed: int | None

    @property
    def is_told(self) -> bool:
        """Whether the band excludes that nothing was caused."""
        return (
            self.band_low is not None
            and self.band_high is not None
            and (self.band_low > 0 or self.band_high < 0)
        )


def lifts_of(report: Report) -> list[Lift]:
    """For every measure of a trial, pair of arms and value of further dimensions, at every look."""
    lift = report.spec.lift
    if lift is None or report.noise_of is None:
        return []
    uncounted = [] if lift.people or lift.shares else uncounted_arms(report)
    return [
        each
        for measure in report.spec.measures
        if measure.by_arm and measure.metric in _TOLD
        for arm, control in lift.pairs
        if not {arm, control} & set(uncounted)
        for each in _Compared(report, lift, measure, arm, control).lifts()
    ]


@dataclass(frozen=True)
class _Compared:
    report: Report
    lift: LiftSection
    measure: Measure
    arm: str
    control: str

    @cached_property
    def _looks(self) -> list[int]:
        newest = self.report.newest.slot
        return [slot for slot in look_slots(self.report.spec.campaign.slots) if slot <= newest]

    def lifts(self) -> Iterator[Lift]:
        layout = self.measure.layout
        if not self._looks:
            return
        for depth in range(1, len(layout.dimensions) + 1):
            names = layout.names(depth)
            further = [each.name for each in layout.dimensions[1:depth]]
            for keys in dict.fromkeys(name[1:] for name in names):
                places = (names.index((self.arm, *keys)), names.index((self.control, *keys)))
                contrast = self._contrast(depth, places)
                yield from self._rows(dict(zip(further, keys, strict=True)), contrast)

    def _contrast(self, depth: int, places: tuple[int, int]) -> Contrast:
        report, layout, looks = self.report, self.measure.layout, self._looks
        planned = look_slots(report.spec.campaign.slots)
        assert report.noise_of is not None
        noise = report.noise_of(self.measure.name, (0, *planned))
        own = joint_noise.of_sum(noise, depth, places[0])[1:, 1:]
        of_control = joint_noise.of_sum(noise, depth, places[1])[1:, 1:]
        between = np.zeros_like(own)
        if not layout.once:
            between = joint_noise.between_sums(noise, depth, layout.sizes[depth])[1:, 1:]
        declared = self.lift.people if depth == 1 else {}
        treated, control = (
            ArmTotals(
                self._totals(self.measure, depth, place),
                self._squares(place),
                np.full(len(looks), float(declared[arm])) if declared else None,
                self.measure.value_cap or 1.0,
            )
            for place, arm in zip(places, (self.arm, self.control), strict=True)
        )
        ratio, ratio_noise = self._ratio
        return Contrast(
            treated, control, ratio, own, of_control, between, report.level, report.lens.reach,
            ratio_noise,
        )  # fmt: skip

    def _totals(self, measure: Measure, depth: int, place: int) -> Reals:
        """As they were released, with what was cut added as far as it was counted."""
        measured = self.report.of_measure(measure)
        return np.array(
            [measured[slot - 1].running_totals[depth].values[place] for slot in self._looks]
        )

    def _squares(self, place: int) -> Reals | None:
        name = SQUARES.get(self.measure.metric)
        if name is None:
            return None
        squares = next(
            each
            for each in self.report.spec.measures
            if each.metric == name and each.value_cap == self.measure.value_cap
        )
        measured = self.report.of_measure(squares)
        errors = [measured[slot - 1].running_totals[1].errors[place] for slot in self._looks]
        # Too small a sum would make intervals too short, so it is taken one error higher.
        return np.asarray(self._totals(squares, 1, place) + np.array(errors))

    @cached_property
    def _ratio(self) -> tuple[Reals, Reals | None]:
        """How many treated people there are for one of the control: as declared, or else by shares,
        which are known exactly, or else as counted."""
        looks = len(self._looks)
        known = self.lift.people or self.lift.shares
        if known:
            return np.full(looks, known[self.arm] / known[self.control]), None
        reach = reach_by_arm(self.report)
        assert reach is not None
        assert self.report.noise_of is not None
        places = [self.lift.names.index(arm) for arm in (self.arm, self.control)]
        treated, control = (np.maximum(self._totals(reach, 1, place), 1.0) for place in places)
        noise = self.report.noise_of(reach.name, (0, *self._looks))
        of_treated, of_control = (joint_noise.of_sum(noise, 1, place)[1:, 1:] for place in places)
        ratio = treated / control
        spread = of_treated * np.outer(1 / control, 1 / control)
        return ratio, spread + of_control * np.outer(ratio / control, ratio / control)

    @cached_property
    def _paid(self) -> Reals:
        """For the arm, until each look: what each publisher was paid is shared out over the arms
        that see it by their people. Of publishers whose effect this is."""
        spend, lift, looks = self.report.spend, self.lift, self._looks
        if spend is None:
            return np.zeros(len(looks))
        people = people_by_arm(self.report)
        of_slots = np.zeros(self.report.spec.campaign.slots + 1)
        for ((publisher, *_), slot), amount in spend.amounts.items():
            if self._is_about(publisher):
                seeing = sum(people[arm] for arm in lift.names if lift.shows(arm, publisher))
                of_slots[slot] += amount * people[self.arm] / seeing
        return np.asarray(of_slots.cumsum()[looks])

    def _is_about(self, publisher: str) -> bool:
        shows = self.lift.shows
        return shows(self.arm, publisher) and not shows(self.control, publisher)

    def _rows(self, keys: dict[str, str], contrast: Contrast) -> Iterator[Lift]:
        for look, slot in enumerate(self._looks):
            low, high = contrast.interval(look, contrast.reach)
            band = None
            if look >= contrast.begins:
                band = contrast.interval(look, contrast.critical)
            relative = contrast.relative(look)
            value = float(contrast.incremental[look])
            paid = float(self._paid[look])
            costs = paid > 0 and low > 0 and self.measure.metric != "value" and not keys
            needed = contrast.looks_needed if look == len(self._looks) - 1 else None
            yield Lift(
                measure=self.measure.name,
                arm=self.arm,
                control=self.control,
                slot=slot,
                keys=keys,
                withheld=self.lift.withholds.get(self.control, ()),
                incremental=value,
                standard_error=float(contrast.errors[look]),
                low=low,
                high=high,
                band_low=None if band is None else band[0],
                band_high=None if band is None else band[1],
                relative=None if relative is None else relative[0],
                relative_low=None if relative is None else relative[1],
                relative_high=None if relative is None else relative[2],
                cost=paid / value if costs else None,
                cost_low=paid / high if costs else None,
                cost_high=paid / low if costs else None,
                slots_needed=None if needed is None else ceil(min(needed * slot / (look + 1), 1e9)),
            )


def reach_by_arm(report: Report) -> Measure | None:
    found = [each for each in report.spec.measures if each.by_arm and each.metric == "reach"]
    return found[0] if found else None


def uncounted_arms(report: Report) -> list[str]:
    """Arms in which nobody can be told to be, where people are counted."""
    reach, lift = reach_by_arm(report), report.spec.lift
    if reach is None or lift is None:
        return []
    totals = report.of_measure(reach)[-1].running_totals[1]
    counts = {arm: (totals.values[k], totals.errors[k]) for k, arm in enumerate(lift.names)}
    return [arm for arm, (count, error) in counts.items() if count <= report.lens.reach * error]


def people_by_arm(report: Report) -> dict[str, float]:
    """How many people arms have, or which parts of them: as declared, by shares, or as counted."""
    lift = report.spec.lift
    assert lift is not None
    known = lift.people or lift.shares
    if known:
        return {arm: float(count) for arm, count in known.items()}
    reach = reach_by_arm(report)
    assert reach is not None
    totals = report.of_measure(reach)[-1].running_totals[1].values
    return {arm: max(totals[lift.names.index(arm)], 1.0) for arm in lift.names}


def arm_totals(report: Report) -> list[dict[str, Any]]:
    """What every arm has in the end, of the measures that lift is shown for, and of people."""
    found = []
    for measure in report.spec.measures:
        if not measure.by_arm or measure.is_squared:
            continue
        for cell in report.newest_totals(measure):
            if len(cell.keys) != 1 or cell.keys[0] == OTHER_PUBLISHER:
                continue
            found.append(
                {
                    "measure": measure.name, "metric": measure.metric, "arm": cell.keys[0],
                    "value": cell.estimate, "low": cell.low, "high": cell.high,
                }
            )  # fmt: skip
    return found
