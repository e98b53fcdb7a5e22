"""What a case measures: the work as a multiple of its floor, both from one run."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    ratio: float
    floor_seconds: float
    seconds: float
    peak_mib: int

    @classmethod
    def of(cls, floor: float, seconds: float, peak_mib: int) -> Measured:
        return cls(round(seconds / floor, 2), round(floor, 3), round(seconds, 3), peak_mib)


def seconds_of(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def processor_seconds_of(work: Callable[[], object]) -> float:
    """Of all cores, which other work on the machine changes less."""
    started = time.process_time()
    work()
    return time.process_time() - started


def peak_mib() -> int:
    """The largest that this process has been."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
