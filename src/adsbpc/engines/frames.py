"""Tables in memory, of pandas, polars or Arrow, as files that any engine reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from adsbpc.engines.session_folder import SessionFolder
from adsbpc.errors import SourceError


def check_frame(name: str, frame: Any) -> None:
    _table(name, frame)


@contextmanager
def written_frames(frames: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """A Parquet file of each table, by name, in a folder that nobody else may open."""
    with SessionFolder("frames") as folder:
        found = {name: str(folder / f"{name}.parquet") for name in frames}
        for name, frame in frames.items():
            try:
                pq.write_table(_table(name, frame), found[name])
            except pa.ArrowException as error:
                raise SourceError(
                    name,
                    f"a column that files cannot hold ({error})",
                    "plain types, such as texts, numbers and timestamps",
                    "Convert the column.",
                ) from None
        yield found


def _table(name: str, frame: Any) -> pa.Table:
    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, AttributeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise SourceError(
            name,
            f"a {type(frame).__name__} that is no table ({reason})",
            "a DataFrame of pandas or polars, or a table of Arrow",
            "Convert it.",
        ) from None
    twice = [column for column, count in Counter(table.column_names).items() if count > 1]
    if twice:
        raise SourceError(
            name, f"the column {twice[0]!r} more than once", "each once", "Rename or drop one."
        )
    return table


def parquet_rows(file: Path) -> tuple[list[str], list[dict[str, Any]]]:
    """Columns and rows of a small file that is no source of events; raises ValueError, OSError."""
    table = pq.read_table(file)
    return table.column_names, table.to_pylist()
