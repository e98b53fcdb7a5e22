"""The `adsbpc lift` commands; like all others they import what they need when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

lift = typer.Typer(
    help="Arms of a trial: who is in which.", no_args_is_help=True, rich_markup_mode=None
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value for machines.")]


@lift.command()
def key(
    file: Annotated[Path, typer.Argument(metavar="KEY_FILE", help="Where to write it.")],
    as_json: AsJson = False,
) -> None:
    """Write a new secret key for the arms of a trial.

    Whoever has it knows everybody's arm, and a trial whose key is lost is over: keep it beside the
    ledger, and in its backup. A file that is there already is left as it is.
    """
    from adsbpc.cli.lift import write_key

    write_key(file, as_json)


@lift.command()
def assign(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The campaign file (TOML).")],
    users: Annotated[
        list[str] | None,
        typer.Argument(metavar="[USER]...", help="User ids; by default from stdin, one per line."),
    ] = None,
    sql: Annotated[
        str | None,
        typer.Option(metavar="ENGINE", help="Print an SQL expression for duckdb or spark instead."),
    ] = None,
    javascript: Annotated[
        bool, typer.Option("--javascript", help="Print a JavaScript module for ad servers instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say which arm of the trial people are in.

    The same function everywhere: an ad server that asks it shows ads to the people whom the
    campaign counts as treated. The SQL and the JavaScript contain the ranges of the arms, but not
    the key, which is a parameter.
    """
    from adsbpc.cli.lift import assign_arms

    assign_arms(file, users or [], sql, javascript, as_json)
