"""Processes that work on a store until they are killed in the middle of it.

They start from a process that has imported everything, so that a hundred of them take seconds.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

from adsbpc.service.clock import SystemClock
from adsbpc.service.ingest.compaction import Sizes, compact
from adsbpc.service.ingest.intake import Intake
from adsbpc.service.store import open_store
from tests.service.pushed import PATIENT, batch, files_in, numbered

ROWS = 5
_CONTEXT: ForkServerContext = multiprocessing.get_context("forkserver")
# pyarrow imports pandas at its first use, where it is installed.
_CONTEXT.set_forkserver_preload([__name__, "pandas", "tests.service.keeping"])


@contextmanager
def killed(
    work: object, *arguments: object, after: tuple[float, float], number: int = 1
) -> Iterator[None]:
    """Start processes, run the block, and kill each of them some time after it has begun."""
    began = [_CONTEXT.Event() for _ in range(number)]
    processes: list[ForkServerProcess] = [
        _CONTEXT.Process(target=work, args=(event, *arguments), daemon=True)  # type: ignore[arg-type]
        for event in began
    ]
    for process in processes:
        process.start()
    try:
        yield
        for event in began:
            assert event.wait(60)
        for process in processes:
            time.sleep(random.uniform(*after))
            assert process.is_alive()
    finally:
        for process in processes:
            process.kill()
            process.join()


def compact_for_ever(began: object, location: str, folder: Path) -> None:
    store = open_store(location, folder)
    files = files_in(store, folder, SystemClock())
    began.set()  # type: ignore[attr-defined]
    while True:
        compact(files, store, "impressions", Sizes(rows=200, files=20, large=5_000, own=3))


def push_for_ever(began: object, location: str, folder: Path, life: int) -> None:
    """Push batches, several at a time, and write down which were begun and which were answered.
    Every fourth one is sent again."""
    store = open_store(location, folder)
    clock = SystemClock()
    intake = Intake(store, files_in(store, folder, clock), clock, 64, PATIENT)
    intake.start()
    begun, answered = (
        os.open(folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        for name in ("begun", "answered")
    )

    async def push(sender: int) -> None:
        for number in range(10_000):
            key = f"{life}-{sender}-{number}"
            first = (life * 100 + sender) * 1_000_000 + number * ROWS
            one = batch(key, numbered(first, ROWS), clock=clock)
            os.write(begun, f"{key} {first}\n".encode())
            for _ in range(2 if number % 4 == 0 else 1):
                answer = await intake.add(one)
                assert answer.accepted == ROWS
            os.write(answered, f"{key} {first}\n".encode())
            began.set()  # type: ignore[attr-defined]

    async def push_all() -> None:
        await asyncio.gather(*map(push, range(3)))

    asyncio.run(push_all())
