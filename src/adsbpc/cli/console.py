"""Where the commands write: results to stdout, notes for the operator to stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

# Between two lines of a log that say how far something is.
_CALM_SECONDS = 5.0
# What a shell reports for a program that was stopped with Ctrl-C.
_STOPPED = 130


def results() -> Console:
    """For tables; names are shown as they are, whatever brackets they hold."""
    return Console(markup=False, highlight=False)


def say(sentence: str) -> None:
    """Wrapped between words in a terminal; elsewhere a line is a line."""
    out = results()
    out.print(sentence, soft_wrap=not out.is_terminal)


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


@contextmanager
def progress(
    what: str, total: int | None, *columns: ProgressColumn, **fields: Any
) -> Iterator[Callable[..., None]]:
    """A bar that is one further whenever the step is called, or as far as that says; without a
    total, one that counts. Where no terminal is, a line now and then for whoever reads the log;
    short work says nothing there."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    shown_on = notes()
    quiet = not shown_on.is_terminal
    begun = (TextColumn(what), MofNCompleteColumn(), BarColumn())
    with Progress(*begun, *columns, console=shown_on, transient=True, disable=quiet) as shown:
        # Nothing is drawn where there is nothing to do.
        task = shown.add_task(what, total=total, visible=total is not None, **fields)
        told = monotonic()

        def step(**changed: Any) -> None:
            nonlocal told
            shown.update(task, visible=True, **changed)
            if "completed" not in changed:
                shown.advance(task)
            if quiet and monotonic() - told >= _CALM_SECONDS:
                done = shown.tasks[0]
                whole = "" if done.total is None else f" of {done.total:.0f}"
                shown_on.print(f"{what}: {done.completed:.0f}{whole}")
                told = monotonic()

        yield step


def named_run(slots: Sequence[int]) -> str:
    """'slot 3', 'slots 3 to 5'."""
    return f"slot {slots[0]}" if len(slots) == 1 else f"slots {slots[0]} to {slots[-1]}"


def counted(number: int, thing: str) -> str:
    """'1 slot', '2 slots'."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
