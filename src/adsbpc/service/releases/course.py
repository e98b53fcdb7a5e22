"""How far a campaign of a server is, from one look at the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from adsbpc.ledger import Stage
from adsbpc.model import CampaignSpec

# Of a campaign that runs, or will.
State = Literal["open", "paused", "closed"]


@dataclass(frozen=True)
class Course:
    """`paused_us` is since when nothing is released of it, if it is paused."""

    spec: CampaignSpec
    paused_us: int | None
    stage: Stage
    now_us: int

    @property
    def state(self) -> State:
        if self.stage.closed:
            return "closed"
        return "open" if self.paused_us is None else "paused"

    @property
    def slots(self) -> int:
        """How many it will have released in the end; none more of one that was closed."""
        return self.stage.last_slot if self.stage.closed else self.spec.campaign.slots

    def due(self, after_us: int) -> int:
        """The last slot that is over for so long; of one that is paused no further one."""
        if self.paused_us is not None:
            return min(self.stage.last_slot, self.spec.last_over(self.now_us))
        return min(self.spec.last_over(self.now_us - after_us), self.slots)
