"""Where the commands write: results to stdout, notes for the operator to stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

# What a shell reports for a program that was stopped with Ctrl-C.
_STOPPED = 130


def results() -> Console:
    """For tables; names are shown as they are, whatever brackets they hold."""
    return Console(markup=False, highlight=False)


def notes() -> Console:
    return Console(stderr=True, markup=False, highlight=False)


@contextmanager
def stoppable(
    said: str = "Stopped. What was released is in the ledger: run it again to go on.",
) -> Iterator[None]:
    """Ctrl-C ends a run of releases between two slots, or rolls the current one back."""
    try:
        yield
    except KeyboardInterrupt:
        notes().print(said)
        raise typer.Exit(_STOPPED) from None


def counted(number: int, thing: str) -> str:
    """'1 slot', '2 slots'."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
