"""A limit on failed sign-ins for each address, so that nobody can go on guessing.

Each server counts for itself, in memory.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from ipaddress import IPv6Address, ip_address
from threading import Lock

from adsbpc.service.clock import Clock, now_us

_MICROSECONDS = 1_000_000
_MOST_ADDRESSES = 10_000
_LONGEST_ADDRESS = 100


class Throttle:
    """An address may fail `failures` times within `within_seconds`; then it has to wait.

    `clock` must be the time of the real world.
    """

    def __init__(self, clock: Clock, failures: int = 10, within_seconds: int = 60) -> None:
        self._clock, self._failures = clock, failures
        self._within_us = within_seconds * _MICROSECONDS
        self._lock = Lock()
        # Moments of the last failures by address; who failed last stands at the end.
        self._failed: OrderedDict[str, deque[int]] = OrderedDict()

    def refused_for(self, address: str) -> int | None:
        """Seconds until this address may try again; None if it may now."""
        now = now_us(self._clock)
        with self._lock:
            moments = self._failed.get(_counted_as(address))
            if moments is None or len(moments) < self._failures:
                return None
            # A clock that was set back must not shut anybody out for long.
            if moments[-1] > now:
                return None
            left_us = moments[0] + self._within_us - now
        return -(-left_us // _MICROSECONDS) if left_us > 0 else None

    def failed(self, address: str) -> None:
        now = now_us(self._clock)
        with self._lock:
            name = _counted_as(address)
            moments = self._failed.setdefault(name, deque(maxlen=self._failures))
            moments.append(now)
            self._failed.move_to_end(name)
            self._forget(now)

    def succeeded(self, address: str) -> None:
        with self._lock:
            self._failed.pop(_counted_as(address), None)

    def _forget(self, now: int) -> None:
        while len(self._failed) > _MOST_ADDRESSES or self._is_over(now):
            self._failed.popitem(last=False)

    def _is_over(self, now: int) -> bool:
        oldest = next(iter(self._failed.values()))
        return oldest[-1] + self._within_us <= now


def _counted_as(address: str) -> str:
    """Whoever has an IPv6 address has the 2**64 addresses around it as well.

    >>> _counted_as("2001:db8::1") == _counted_as("2001:db8::ffff:2")
    True
    >>> _counted_as("::ffff:192.0.2.1")
    '192.0.2.1'
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address[:_LONGEST_ADDRESS]
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{IPv6Address(int(parsed) >> 64 << 64)}/64"
