"""Lines in logs that anybody can cause: few of each address, the others counted.

Must never: let who has no key write more than so many lines a minute, from however many addresses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Final

from adsbpc.model.durations import MICROSECONDS_PER_SECOND
from adsbpc.service.clock import Clock, now_us
from adsbpc.service.http.limits import counted_as

_WITHIN_US: Final = 60 * MICROSECONDS_PER_SECOND
_EACH, _ALL = 10, 100
_MOST_ADDRESSES = 10_000
_OTHERS = "others"


class Strangers:
    """Of each address `_EACH` lines are written in a minute, of all together `_ALL`. `tell` gets a
    sentence about those that were not, once a minute while there are any.

    `clock` must be the time of the real world.
    """

    def __init__(self, clock: Clock, tell: Callable[[str], None]) -> None:
        self._clock, self._tell = clock, tell
        self._lock = Lock()
        self._since_us = 0
        self._written: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()

    def may_write(self, address: str) -> bool:
        """Whether a line about a request from this address is written; it is counted if not."""
        self._begin(now_us(self._clock))
        with self._lock:
            name = counted_as(address)
            if self._written[name] < _EACH and self._written.total() < _ALL:
                self._written[name] += 1
                return True
            if name not in self._left_out and len(self._left_out) >= _MOST_ADDRESSES:
                name = _OTHERS
            self._left_out[name] += 1
            return False

    def close(self) -> None:
        """Tell what is left to tell."""
        self._begin(self._since_us + _WITHIN_US)

    def _begin(self, now: int) -> None:
        """Another minute, if this one is over; or if the clock was set back."""
        with self._lock:
            if self._since_us <= now < self._since_us + _WITHIN_US:
                return
            left_out, self._since_us = self._left_out, now
            self._written, self._left_out = Counter(), Counter()
        if left_out:
            self._tell(_sentence(left_out))


def _sentence(left_out: Counter[str]) -> str:
    """
    >>> _sentence(Counter({"192.0.2.1": 7, "192.0.2.2": 2}))
    '9 more in a minute, from 2 addresses; 7 of them from 192.0.2.1'
    """
    ((address, most),) = left_out.most_common(1)
    return (
        f"{left_out.total()} more in a minute, from {len(left_out)} "
        f"address{'es' if len(left_out) > 1 else ''}; {most} of them from {address}"
    )
