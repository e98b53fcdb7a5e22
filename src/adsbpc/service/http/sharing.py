"""What the processes of one server share: numbers that they count together, and notes for each
other, so that a bound holds over all of them.

Each writes in a part of memory that only it writes, so that none waits for another; whoever is
asked adds up all parts, or reads on from where it was. What a process has written stays when it
ends, and its successor goes on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from multiprocessing import get_context
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np

_NUMBER = np.dtype([("label", "S248"), ("number", "<u8")])
# There are some tens of routes, and each has a few ways to end.
_NUMBERS = 2_048
_BETWEEN = "\t"

Labels = tuple[str, ...]


def shared_memory(processes: int) -> Any:
    """To be handed to processes when they are started."""
    return get_context("spawn").RawArray("B", processes * _NUMBERS * _NUMBER.itemsize)


class SharedNumbers:
    """`place` is the number of this process, from 0 on."""

    def __init__(self, memory: Any, place: int) -> None:
        self._parts = np.frombuffer(memory, _NUMBER).reshape(-1, _NUMBERS)
        self._own = self._parts[place]
        self._places = {label: at for at, label in enumerate(self._own["label"]) if label}
        self._lock = Lock()

    def add_one(self, *labels: str) -> None:
        label = _BETWEEN.join(labels).encode()
        with self._lock:
            at = self._places.get(label, len(self._places))
            if at == _NUMBERS:
                return
            if label not in self._places:
                self._own[at]["label"] = label
                self._places[label] = at
            # Last: what has no number yet is not looked at.
            self._own[at]["number"] += 1

    def totals(self) -> dict[Labels, int]:
        """Of all processes."""
        found: Counter[Labels] = Counter()
        for label, number in self._parts[self._parts["number"] > 0].tolist():
            found[tuple(label.decode().split(_BETWEEN))] += number
        return dict(found)


_NOTE = np.dtype([("name", "S104"), ("moment_us", "<i8"), ("ends", "?")], align=True)
_NOTES: Final = 4_096
# Wrong keys, lines of the audit log, lines of the log of requests.
_TOPICS: Final = ("failures", "refusals", "requests")
_BYTES: Final = 8 + _NOTES * _NOTE.itemsize


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
        self._rings = [each[8:].view(_NOTE) for each in own]
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
        ring[int(written[0]) % _NOTES] = (name, note.moment_us, note.ends)
        # Last: what is not counted yet is not read.
        written += 1
        self._read[self._place] = int(written[0])

    def news(self) -> list[Note]:
        """What others have noted since this was asked last, in order."""
        found = []
        for place, (written, ring) in enumerate(zip(self._written, self._rings, strict=True)):
            until = int(written[0])
            for at in range(max(self._read[place], until - _NOTES), until):
                name, moment_us, ends = ring[at % _NOTES].item()
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
