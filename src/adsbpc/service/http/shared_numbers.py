"""Numbers that the processes of one server count together.

Each counts in a part of memory that only it writes, so that none waits for another; whoever is
asked adds up all parts. What a process has counted stays when it ends, and its successor goes on.
"""

from __future__ import annotations

from collections import Counter
from multiprocessing import get_context
from threading import Lock
from typing import Any

import numpy as np

_ENTRY = np.dtype([("label", "S248"), ("number", "<u8")])
# There are some tens of routes, and each has a few ways to end.
_ENTRIES = 2_048
_BETWEEN = "\t"

Labels = tuple[str, ...]


def shared_memory(processes: int) -> Any:
    """To be handed to processes when they are started."""
    return get_context("spawn").RawArray("B", processes * _ENTRIES * _ENTRY.itemsize)


class SharedNumbers:
    """`place` is the number of this process, from 0 on."""

    def __init__(self, memory: Any, place: int) -> None:
        self._parts = np.frombuffer(memory, _ENTRY).reshape(-1, _ENTRIES)
        self._own = self._parts[place]
        self._places = {label: at for at, label in enumerate(self._own["label"]) if label}
        self._lock = Lock()

    def add_one(self, *labels: str) -> None:
        label = _BETWEEN.join(labels).encode()
        with self._lock:
            at = self._places.get(label, len(self._places))
            if at == _ENTRIES:
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
