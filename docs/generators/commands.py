"""The reference of the command line, from the program's own parser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from adsbpc.cli.main import app
from generators.tables import table


def page() -> str:
    return "\n\n".join(part for _, command in commands() for part in _section(command))


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its context, by its full name, in the order of --help."""
    root = get_command(app)
    for context in _contexts(root, root.make_context("adsbpc", [], resilient_parsing=True)):
        yield context.command_path, context


def _contexts(command: Any, context: Any) -> Iterator[Any]:
    for name in getattr(command, "list_commands", lambda _: ())(context):
        each = command.get_command(context, name)
        below = each.make_context(name, [], parent=context, resilient_parsing=True)
        if hasattr(each, "list_commands"):
            yield from _contexts(each, below)
        else:
            yield below


def _section(context: Any) -> Iterator[str]:
    command = context.command
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"## {context.command_path}"
    yield _prose(command.help or "")
    yield f"```text\n{context.command_path} {usage}\n```"
    records = [each.get_help_record(context) for each in command.params]
    rows = [(f"`{name}`", _prose(text)) for name, text in filter(None, records)]
    if rows:
        yield table(["argument or option", "meaning"], rows)


def _prose(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))
