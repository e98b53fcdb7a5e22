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
from adsbpc.service.http.sharing import Note, SharedNotes

_WITHIN_US: Final = 60 * MICROSECONDS_PER_SECOND
_EACH, _ALL = 10, 100
_MOST_ADDRESSES = 10_000
_OTHERS = "others"


class Strangers:
    """Of each address `_EACH` lines are written in a minute of the clock, of all together `_ALL`;
    `notes` are of lines that other processes of the server write. `tell` gets a sentence about
    those that were not written here, once a minute while there are any.

    `clock` must be the time of the real world.
    """

    def __init__(
        self, clock: Clock, tell: Callable[[str], None], notes: SharedNotes | None = None
    ) -> None:
        self._clock, self._tell = clock, tell
        self._notes = notes or SharedNotes.alone()
        self._lock = Lock()
        self._minute = 0
        self._written: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()

    def may_write(self, address: str) -> bool:
        """Whether a line about a request from this address is written; it is counted if not."""
        name, now = counted_as(address), now_us(self._clock)
        self._begin(now // _WITHIN_US)
        with self._lock:
            self._follow()
            if self._has_room(_EACH - 1, _ALL - 1, name):
                # Told first, and then looked at again: another process may be doing the same.
                self._notes.add(Note(name, now))
                self._follow()
                self._written[name] += 1
                if self._has_room(_EACH, _ALL, name):
                    return True
            if name not in self._left_out and len(self._left_out) >= _MOST_ADDRESSES:
                name = _OTHERS
            self._left_out[name] += 1
            return False

    def close(self) -> None:
        """Tell what is left to tell."""
        self._begin(self._minute + 1)

    def _has_room(self, each: int, together: int, name: str) -> bool:
        return self._written[name] <= each and self._written.total() <= together

    def _follow(self) -> None:
        """Count what other processes have written in this minute."""
        for note in self._notes.news():
            if note.moment_us // _WITHIN_US == self._minute:
                self._written[note.name] += 1

    def _begin(self, minute: int) -> None:
        """Another minute, if this one is over; or if the clock was set back."""
        with self._lock:
            if self._minute == minute:
                return
            left_out, self._minute = self._left_out, minute
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
