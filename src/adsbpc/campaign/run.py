"""A campaign on its way through the slots that are due, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adsbpc.campaign.data_path import attribute
from adsbpc.campaign.observed import observed_release
from adsbpc.campaign.overview import Overview
from adsbpc.campaign.release import Attributing, Released, Running, start
from adsbpc.engines import Engine
from adsbpc.ledger import Ledger
from adsbpc.model import CampaignSpec


class Run:
    """`waiting` are the slots that are still to be released, or to be returned as they were."""

    def __init__(
        self, running: Running, waiting: Sequence[int], shown: Callable[[Overview], None]
    ) -> None:
        self.running, self.waiting = running, list(waiting)
        self._shown = shown

    @classmethod
    def started(
        cls,
        spec: CampaignSpec,
        ledger: Ledger,
        wanted: Sequence[int],
        shown: Callable[[Overview], None],
    ) -> Run:
        """Hold the campaign to its ledger, before anything is read."""
        running = start(spec, ledger)
        running.published.mark()
        return cls(running, wanted, shown)

    def is_released(self, slot: int) -> bool:
        """Whether no events have to be read for it."""
        return slot < self.running.state().next_slot

    def release_next(
        self, engine: Callable[[], Engine], attributing: Attributing = attribute
    ) -> Released:
        """The first slot that waits."""
        running, slot = self.running, self.waiting[0]
        released = observed_release(running, slot, engine, self._shown, attributing)
        if running.opening is not None:
            # From now on by what the ledger says that it started with.
            self.running = start(running.spec, running.ledger)
        self.waiting.pop(0)
        return released
