"""What time it is for the server: the system's clock, or one that runs faster for a demonstration.

Must never: run ahead of the system's clock, because a slot that is not over would be released.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from adsbpc.errors import ServiceError
from adsbpc.model.slots import to_microseconds


class Clock(Protocol):
    def now(self) -> datetime:
        """The moment, with a zone."""


def now_us(clock: Clock) -> int:
    return to_microseconds(clock.now())


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


@dataclass(frozen=True)
class FastClock:
    """Starts at a moment of the past and passes `speed` seconds in each; stands still at `until`,
    and at the present."""

    start: datetime
    speed: float
    until: datetime
    _began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if self.start > datetime.now(UTC):
            raise ServiceError(f"a clock that starts at {self.start} is ahead: take an earlier one")

    def now(self) -> datetime:
        passed = timedelta(seconds=(time.monotonic() - self._began) * self.speed)
        return min(self.start + passed, self.until, datetime.now(UTC))
