"""Memory for bodies that are on their way, counted by what has come of them: who sends slowly
holds little, and keeps nobody out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from adsbpc.service.http.problems import Problem
from adsbpc.service.settings import IngestSection

_SHARE = 8


class BodyRoom:
    """As much as all batches that may wait can take. One sender has an eighth of it, and room for
    one body at least."""

    def __init__(self, limits: IngestSection) -> None:
        self._room = limits.waiting_batches * limits.max_body_bytes
        self._share = max(limits.max_body_bytes, self._room // _SHARE)
        self._held: Counter[str] = Counter()
        self._lock = Lock()

    @contextmanager
    def taken_by(self, owner: str) -> Iterator[Callable[[int], None]]:
        """Around a body as it comes: what comes back takes bytes for it, or sends it away."""
        own = 0

        def take(size: int) -> None:
            nonlocal own
            with self._lock:
                if self._held[owner] + size > self._share:
                    raise _no_room(f"bodies of {owner} take {self._share} bytes already")
                if self._held.total() + size > self._room:
                    raise _no_room(f"bodies take {self._room} bytes already")
                self._held[owner] += size
                own += size

        try:
            yield take
        finally:
            with self._lock:
                self._held[owner] -= own
                # Keeps nothing of who is not here.
                self._held += Counter()


def _no_room(why: str) -> Problem:
    return Problem(
        429, "Too many bodies", why, "Send the same batch again, with the same key.",
        {"Retry-After": "1"},
    )  # fmt: skip
