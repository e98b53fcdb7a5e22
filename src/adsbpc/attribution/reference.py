"""Attribution in plain Python, one conversion at a time: the oracle for every engine.

Slow and short on purpose. It shares no code with the SQL but the decay table and the shares of
`Position`, which are definitions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from adsbpc.attribution.fitted import FittedModel
from adsbpc.attribution.fitted_reference import member_units
from adsbpc.attribution.journeys import Journeys
from adsbpc.attribution.models import (
    AttributionModel,
    DistinctPublishers,
    FirstTouch,
    LastTouch,
    Position,
    TimeDecay,
    Uniform,
    decay_weight,
)
from adsbpc.model.grid import UNITS_PER_CONVERSION
from adsbpc.model.slots import SlotGrid


@dataclass(frozen=True)
class Impression:
    user_id: str
    publisher_id: str
    time_us: int
    is_click: bool
    # None if it arrived when it happened.
    arrived_us: int | None = None

    @property
    def arrival(self) -> int:
        return self.time_us if self.arrived_us is None else self.arrived_us


@dataclass(frozen=True)
class Conversion:
    user_id: str
    conversion_id: str
    time_us: int
    arrived_us: int


@dataclass(frozen=True, order=True)
class Credit:
    user_id: str
    conversion_id: str
    slot: int
    publisher_id: str
    credit_units: int


def attribute(
    impressions: Iterable[Impression],
    conversions: Iterable[Conversion],
    grid: SlotGrid,
    journeys: Journeys,
    model: AttributionModel,
    max_conversions: int,
    settle: int | None = None,
    wait: int = 0,
) -> list[Credit]:
    """Credits of every conversion that arrives within the campaign, sorted; of a user in a slot, of
    the first `max_conversions`. With `settle` touches count that arrived up to so long after the
    end of the slot, and a conversion without any waits for one."""
    seen: dict[str, list[Impression]] = defaultdict(list)
    for impression in impressions:
        seen[impression.user_id].append(impression)
    credits = []
    counted: Counter[tuple[str, int]] = Counter()
    for conversion in sorted(conversions, key=lambda each: (each.time_us, each.conversion_id)):
        own = seen[conversion.user_id]
        slot = grid.slot_of(conversion.arrived_us)
        if slot is not None and settle is not None:
            arrivals = [each.arrival for each in touches_before(conversion.time_us, own, journeys)]
            ready = min(arrivals, default=0) - settle
            if conversion.arrived_us < ready <= conversion.arrived_us + wait:
                slot = grid.slot_of(ready)
        if slot is None:
            continue
        counted[conversion.user_id, slot] += 1
        if counted[conversion.user_id, slot] > max_conversions:
            continue
        if settle is not None:
            own = [each for each in own if each.arrival < grid.boundaries[slot] + settle]
        journey = journey_before(conversion.time_us, own, journeys)
        for publisher_id, units in _shares(journey, model).items():
            if units > 0:
                credits.append(
                    Credit(conversion.user_id, conversion.conversion_id, slot, publisher_id, units)
                )
    return sorted(credits)


def journey_before(
    moment: int, impressions: list[Impression], journeys: Journeys
) -> list[Impression]:
    """The touches of somebody who converts at a moment, the latest ones of many."""
    touches = touches_before(moment, impressions, journeys)
    touches.sort(key=lambda touch: (touch.time_us, touch.publisher_id))
    return touches[-journeys.max_touches :]


def touches_before(
    moment: int, impressions: list[Impression], journeys: Journeys
) -> list[Impression]:
    return [
        impression
        for impression in impressions
        if impression.time_us < moment
        and moment - impression.time_us <= journeys.lookback(impression.is_click)
    ]


def _shares(journey: list[Impression], model: AttributionModel) -> dict[str, int]:
    if not journey:
        return {}
    publishers = [touch.publisher_id for touch in journey]
    match model:
        case LastTouch():
            return {publishers[-1]: UNITS_PER_CONVERSION}
        case FirstTouch():
            return {publishers[0]: UNITS_PER_CONVERSION}
        case DistinctPublishers():
            distinct = list(set(publishers))
            return _proportional(distinct, [1] * len(distinct))
        case FittedModel():
            return _fitted(publishers, model)
        case Uniform():
            return _proportional(publishers, [1] * len(journey))
        case TimeDecay():
            newest = journey[-1].time_us
            ages = [newest - touch.time_us for touch in journey]
            return _proportional(publishers, [decay_weight(a, model.half_life) for a in ages])
        case Position():
            return _by_position(publishers, model)
        case _:
            raise TypeError(f"no reference for the attribution model {model!r}")


def _proportional(publishers: list[str], weights: list[int]) -> dict[str, int]:
    sums: dict[str, int] = defaultdict(int)
    for publisher, weight in zip(publishers, weights, strict=True):
        sums[publisher] += weight
    total = sum(weights)
    return {p: UNITS_PER_CONVERSION * weight // total for p, weight in sums.items()}


def _fitted(publishers: list[str], model: FittedModel) -> dict[str, int]:
    """Publishers outside the public list are one member, and share its credit."""
    listed = model.publishers[:-1]
    names: dict[int, list[str]] = {}
    for publisher in dict.fromkeys(publishers):
        place = listed.index(publisher) if publisher in listed else len(listed)
        names.setdefault(place, []).append(publisher)
    units = member_units(model, list(names))
    return {
        name: unit // len(shared)
        for unit, shared in zip(units, names.values(), strict=True)
        for name in shared
    }


def _by_position(publishers: list[str], model: Position) -> dict[str, int]:
    if len(publishers) == 1:
        return {publishers[0]: UNITS_PER_CONVERSION}
    units: dict[str, int] = defaultdict(int)
    if len(publishers) == 2:
        first, last = model.pair_shares()
        middle = 0
    else:
        first, last, middle = model.unit_shares()
    units[publishers[0]] += first
    units[publishers[-1]] += last
    between = publishers[1:-1]
    for publisher in set(between):
        units[publisher] += middle * between.count(publisher) // len(between)
    return dict(units)
