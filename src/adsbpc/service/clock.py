"""What time it is for the server: the system's clock, or one that runs faster for a demonstration.

Must never: run ahead of the system's clock, because a slot that is not over would be released.
"""

from __future__ import annotations

import threading
import time
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


class FastClock:
    """Starts at a moment of the past and passes `speed` seconds in each; stands still at `until`,
    which may be put off, and at the present."""

    def __init__(self, start: datetime, speed: float, until: datetime) -> None:
        if start > datetime.now(UTC):
            raise ServiceError(f"a clock that starts at {start} is ahead: take an earlier one")
        self.until = until
        self._moment, self._speed, self._looked = start, speed, time.monotonic()
        self._lock = threading.Lock()

    def now(self) -> datetime:
        with self._lock:
            looked = time.monotonic()
            passed = timedelta(seconds=(looked - self._looked) * self._speed)
            self._looked = looked
            # After it stood still it goes on from there.
            self._moment = min(self._moment + passed, self.until, datetime.now(UTC))
            return self._moment
