"""Which impressions arrive after a release, by what campaigns say in public of how long they wait.

Must never: tell a sender of a campaign that does not name it, or anything that follows from events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adsbpc.model import CampaignSpec
from adsbpc.service.logs import log_failure

# How long what campaigns say is known before it is asked for again: no slot is shorter.
_KNOWN_US = 60 * 1_000_000


class Missed(NamedTuple):
    """When impressions happened that come too late for a campaign: `released`, so that conversions
    they led to may have been released without them; `counted`, after impressions, clicks and reach
    of their slot were. Both from a moment on, and before another."""

    released: tuple[int, int]
    counted: tuple[int, int]


_NOTHING = Missed((0, 0), (0, 0))


@dataclass(frozen=True)
class Waiting:
    """How long slots are held back for touches, and conversions wait for the first one."""

    settle_us: int
    wait_us: int


class Lateness:
    """`campaigns` are those that are open; what none of them that names its sender is of is judged
    by `otherwise`."""

    def __init__(self, campaigns: Callable[[], Iterable[CampaignSpec]], otherwise: Waiting) -> None:
        self._campaigns, self._otherwise = campaigns, otherwise
        self._known: list[CampaignSpec] = []
        self._asked_us = -_KNOWN_US

    def renew(self, moment_us: int) -> None:
        """Ask which campaigns are open, if that was long ago."""
        if 0 <= moment_us - self._asked_us < _KNOWN_US:
            return
        try:
            self._known = list(self._campaigns())
        # Rows are stored all the same, and judged by what was known before.
        except Exception as error:  # noqa: BLE001
            log_failure("open campaigns are not known", error)
        self._asked_us = moment_us

    def counts_of(self, table: pa.Table, moment_us: int, closed_until_us: int) -> tuple[int, int]:
        """Of impressions of one publisher that arrive at a moment: how many came after release, and
        how many others after impressions of their slot were counted."""
        if not table.num_rows:
            return 0, 0
        publisher = table["publisher_id"][0].as_py()
        naming: dict[str, list[Missed]] = {}
        for spec in self._known:
            if publisher in spec.campaign.publishers:
                naming.setdefault(spec.campaign.advertiser, []).append(missed_by(spec, moment_us))
        happened = table["timestamp"].cast(pa.int64()).to_numpy()
        settle_us, wait_us = self._otherwise.settle_us, self._otherwise.wait_us
        released = happened < min(moment_us - settle_us - wait_us, closed_until_us - settle_us)
        counted = np.zeros(table.num_rows, bool)
        for advertiser, missed in naming.items():
            own = pc.equal(table["advertiser_id"], advertiser).to_numpy()
            released[own] = _in_any(happened[own], [each.released for each in missed])
            counted[own] = _in_any(happened[own], [each.counted for each in missed])
        return int(released.sum()), int((counted & ~released).sum())


def _in_any(moments: NDArray[np.int64], spans: Iterable[tuple[int, int]]) -> NDArray[np.bool_]:
    found = np.zeros(len(moments), bool)
    for first, last in spans:
        found |= (first <= moments) & (moments < last)
    return found


def missed_by(spec: CampaignSpec, moment_us: int) -> Missed:
    """Which impressions come too late for a campaign that arrive at a moment. A conversion right
    after one is in the same slot, or in the first if the campaign had not begun."""
    edges, events = spec.grid.boundaries, spec.events
    settled = spec.grid.last_ended(moment_us - events.held_back)
    if not settled:
        return _NOTHING
    released_us = edges[settled]
    if settled < spec.grid.count:
        # After the last slot there is none in which a conversion that waits could count.
        released_us = min(released_us, moment_us - events.held_back - events.wait)
    reached_us = edges[0] - spec.attribution.longest_lookback
    return Missed(
        (reached_us, released_us) if released_us > edges[0] else _NOTHING.released,
        (edges[0], edges[settled]) if spec.counts_impressions else _NOTHING.counted,
    )
