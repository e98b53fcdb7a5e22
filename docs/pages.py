"""Tables that a program writes into a page."""

from __future__ import annotations


def between(text: str, name: str, table: str) -> str:
    """The page with a new table between the marks of a name."""
    start, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, rest = text.split(start)
    _, after = rest.split(end)
    return f"{before}{start}\n{table}\n{end}{after}"
