"""What the processes of one server note for each other, so that a bound holds over all of them.

Each writes in a ring that only it writes, so that none waits for another; whoever reads goes on
where it was, and misses only what was overwritten since. What a process has noted stays when it
ends: its successor reads it as the others do.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any, Final, NamedTuple

import numpy as np

from adsbpc.service.http.shared_numbers import SharedNumbers, shared_memory

_ENTRY = np.dtype([("name", "S104"), ("moment_us", "<i8"), ("ends", "?")], align=True)
_ENTRIES: Final = 4_096
# Wrong keys, lines of the audit log, lines of the log of requests.
_TOPICS: Final = ("failures", "refusals", "requests")
_BYTES: Final = 8 + _ENTRIES * _ENTRY.itemsize


class Note(NamedTuple):
    """Something that `name` did; or what it did before, if this `ends` it."""

    name: str
    moment_us: int
    ends: bool = False


class SharedNotes:
    """Of one topic; `place` is the number of this process, from 0 on. One thread at a time."""

    def __init__(self, memory: Any, place: int, topic: str) -> None:
        parts = np.frombuffer(memory, np.uint8).reshape(-1, len(_TOPICS), _BYTES)
        own = parts[:, _TOPICS.index(topic)]
        self._written = [each[:8].view("<u8") for each in own]
        self._rings = [each[8:].view(_ENTRY) for each in own]
        self._read = [0] * len(own)
        self._place = place

    @classmethod
    def alone(cls) -> SharedNotes:
        """Of a process that shares nothing."""
        return cls(bytearray(len(_TOPICS) * _BYTES), 0, _TOPICS[0])

    def add(self, note: Note) -> None:
        """For the others; `news` are read before."""
        written, ring = self._written[self._place], self._rings[self._place]
        name = note.name.encode("ascii", "backslashreplace")
        ring[int(written[0]) % _ENTRIES] = (name, note.moment_us, note.ends)
        # Last: what is not counted yet is not read.
        written += 1
        self._read[self._place] = int(written[0])

    def news(self) -> list[Note]:
        """What others have noted since this was asked last, in order."""
        found = []
        for place, (written, ring) in enumerate(zip(self._written, self._rings, strict=True)):
            until = int(written[0])
            for at in range(max(self._read[place], until - _ENTRIES), until):
                name, moment_us, ends = ring[at % _ENTRIES].item()
                found.append(Note(name.decode("ascii"), moment_us, ends))
            self._read[place] = until
        return sorted(found, key=lambda note: note.moment_us)


@dataclass(frozen=True)
class Sharing:
    """Memory that processes are handed when they are started, and the number of one of them."""

    _numbers: Any
    _notes: Any
    place: int = 0

    @classmethod
    def among(cls, processes: int) -> Sharing:
        notes = get_context("spawn").RawArray("B", processes * len(_TOPICS) * _BYTES)
        return cls(shared_memory(processes), notes)

    def at(self, place: int) -> Sharing:
        return replace(self, place=place)

    def numbers(self) -> SharedNumbers:
        return SharedNumbers(self._numbers, self.place)

    def notes(self, topic: str) -> SharedNotes:
        return SharedNotes(self._notes, self.place, topic)
