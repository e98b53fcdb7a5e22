"""What each user adds to a set of counts, in plain Python: the oracle for every engine.

Slow and short on purpose. It shares the declared cells with the SQL, which are definitions, and the
way that journeys are made with the reference of attribution.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from adsbpc.attribution.counts import HOLDOUT, Coalitions, CountSet, Pairs, Transitions
from adsbpc.attribution.journeys import Journeys
from adsbpc.attribution.reference import Conversion, Impression, journey_before
from adsbpc.model.slots import SlotGrid


def user_cells(
    impressions: Iterable[Impression],
    conversions: Iterable[Conversion],
    publishers: Sequence[str],
    grid: SlotGrid,
    slots: int,
    journeys: Journeys,
    counts: CountSet,
    holdout: Iterable[str] = (),
) -> dict[str, Counter[int]]:
    """Cells and amounts of every user, from journeys that ended in slots 1 to `slots`.

    `publishers` is the public list; what is not in it takes the place after its last.
    """
    edges = grid.boundaries
    touches: dict[str, list[Impression]] = defaultdict(list)
    for impression in impressions:
        if impression.time_us < edges[slots]:
            touches[impression.user_id].append(impression)
    converted: dict[str, list[int]] = defaultdict(list)
    for conversion in conversions:
        if edges[0] <= conversion.arrived_us < edges[slots]:
            converted[conversion.user_id].append(conversion.time_us)
    held_out = set(holdout) if counts.holdout else set()
    found = {user: Counter([2 * HOLDOUT + bool(converted.get(user))]) for user in held_out}
    for user in {*touches, *converted} - held_out:
        last = max((touch.time_us for touch in touches[user]), default=None)
        if converted[user]:
            end = min(converted[user])
        elif last is not None and last >= edges[0]:
            end = last + 1
        else:
            continue
        journey = [
            publishers.index(touch.publisher_id)
            if touch.publisher_id in publishers
            else len(publishers)
            for touch in journey_before(end, touches[user], journeys)
        ]
        if journey:
            found[user] = cells_of(counts, journey, bool(converted[user]))
    return found


def cells_of(counts: CountSet, journey: Sequence[int], converted: bool) -> Counter[int]:
    """What a journey, touch by touch, adds to a set of counts."""
    match counts:
        case Coalitions():
            latest = list(dict.fromkeys(reversed(journey)))[: counts.largest]
            return Counter([2 * sum(1 << member for member in latest) + converted])
        case Pairs():
            members = sorted(set(journey))
            pairs = [
                counts.code(one, other)
                for position, one in enumerate(members)
                for other in members[position:]
            ]
            return Counter(2 * code + converted for code in [0, *pairs])
        case Transitions():
            return _transitions(counts, journey, converted)
        case _:
            raise TypeError(f"no reference for {counts!r}")


def _transitions(counts: Transitions, journey: Sequence[int], converted: bool) -> Counter[int]:
    stages = [player for k, player in enumerate(journey) if k == 0 or journey[k - 1] != player]
    states = [
        counts.state(tuple(stages[max(0, place + 1 - counts.order) : place + 1]))
        for place in range(len(stages))
    ]
    found: Counter[int] = Counter()
    for before, after in zip([0, *states], [*states, 0], strict=True):
        code = before * counts.states + after
        found[2 * code + (converted if after == 0 else 0)] += 1
    return found
