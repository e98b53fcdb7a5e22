"""The `adsbpc` program. Commands import what they need when they run, so that --help is quick."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from adsbpc import __version__
from adsbpc.cli import campaign_commands, reading_commands, service_commands
from adsbpc.cli.lab_commands import lab
from adsbpc.cli.lift_commands import lift
from adsbpc.errors import AdsbpcError

app = typer.Typer(
    help="Private ad measurement that runs every day.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

app.add_typer(lab, name="lab")
app.add_typer(lift, name="lift")
app.add_typer(service_commands.keys, name="keys")
app.add_typer(service_commands.campaigns, name="campaigns")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"adsbpc {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Private ad measurement that runs every day."""


# In the order in which --help lists them.
for _command in (
    campaign_commands.init,
    campaign_commands.plan,
    campaign_commands.release,
    campaign_commands.close,
    campaign_commands.restore,
    campaign_commands.status,
    reading_commands.audit,
    reading_commands.statement,
    reading_commands.verify,
    reading_commands.report,
    reading_commands.doctor,
    reading_commands.demo,
    reading_commands.budget,
    reading_commands.fit,
    reading_commands.attribute,
    service_commands.serve,
    service_commands.move,
    service_commands.forget,
):
    app.command()(_command)


def _start_quickly() -> None:
    """Much of a short command would go into collecting what libraries leave as they load, into
    collecting it again at the end, and into a search for plugins of pydantic."""
    gc.set_threshold(20_000)
    atexit.register(_leave_quickly)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")


def _leave_quickly() -> None:
    # DuckDB complains on stderr about whatever is not collected.
    if "duckdb" not in sys.modules:
        gc.freeze()


@contextmanager
def _prepared(word: str) -> Iterator[None]:
    """Nothing but what the first word names is made ready, if it names something: typer prepares
    every command that it knows, with all its options, before it runs one."""
    known = app.registered_commands, app.registered_groups
    commands = [
        each
        for each in app.registered_commands
        if each.callback and word == (each.name or each.callback.__name__)
    ]
    groups = [each for each in app.registered_groups if each.name == word]
    if commands or groups:
        app.registered_commands, app.registered_groups = commands, groups
    try:
        yield
    finally:
        app.registered_commands, app.registered_groups = known


def main() -> None:
    """Run the program; errors go to stderr and set the exit code: 1 refused, 2 bad usage."""
    _start_quickly()
    try:
        with _prepared(sys.argv[1] if len(sys.argv) > 1 else ""):
            app()
    except AdsbpcError as error:
        typer.echo(f"adsbpc: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # Whoever reads the output has enough of it; what was committed stays committed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        typer.echo(f"adsbpc: {error}", err=True)
        os._exit(1)


if __name__ == "__main__":
    main()
