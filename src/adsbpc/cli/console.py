"""Where the commands write: results to stdout, notes for the operator to stderr."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

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


def progress_bar(*columns: ProgressColumn) -> Progress:
    """Nothing is drawn where nobody looks."""
    from rich.progress import Progress

    shown_on = notes()
    return Progress(*columns, console=shown_on, transient=True, disable=not shown_on.is_terminal)


def named_run(slots: Sequence[int]) -> str:
    """'slot 3', 'slots 3 to 5'."""
    return f"slot {slots[0]}" if len(slots) == 1 else f"slots {slots[0]} to {slots[-1]}"


def counted(number: int, thing: str) -> str:
    """'1 slot', '2 slots'."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
