"""The door through which the lab reads files of other people: DuckDB, and errors that help."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from adsbpc.errors import SourceError


def check_file(path: Path) -> None:
    """Refuse what is not a file, and what DuckDB would take for a pattern of many."""
    if not path.is_file():
        found = "a folder" if path.is_dir() else "no file"
        raise SourceError(str(path), found, "one file", "Check the path.")
    if glob.has_magic(str(path)):
        raise SourceError(
            str(path),
            "one of * ? [ in its path",
            "a path that is not taken for a pattern",
            "Rename the file or folder.",
        )
    if path.stat().st_size == 0:
        raise SourceError(str(path), "an empty file", "rows", "Check how it was written.")


@contextmanager
def reading(path: Path, expected: str) -> Iterator[Any]:
    """A DuckDB connection of its own; whatever it cannot read of the file becomes a SourceError."""
    import duckdb

    check_file(path)
    with duckdb.connect() as connection:
        try:
            yield connection
        except duckdb.Error as error:
            reason = str(error).strip().splitlines()[0]
            raise SourceError(
                str(path),
                f"what DuckDB cannot read ({reason})",
                expected,
                "Check that the file is whole and of the format its name says.",
            ) from None
