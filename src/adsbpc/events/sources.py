"""Where events come from: Parquet, CSV, or a table that the engine already has."""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from adsbpc.engines import Engine, Schema
from adsbpc.errors import SourceError

_TABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}")
_CSV = (".csv", ".csv.gz")


@dataclass(frozen=True)
class Source:
    """A location of the campaign file, resolved. `file_format` is parquet, csv or table."""

    file_format: str
    files: tuple[str, ...]
    base: str

    def describe(self, engine: Engine) -> list[Schema]:
        """The schema of each file, or of the table."""
        if self.file_format == "table":
            return [engine.describe_table(self.base)]
        return engine.describe_files(self.file_format, self.files, self.base)

    def open(self, engine: Engine, view: str) -> None:
        """Define a view over the source, whose schemas have been found to agree."""
        if self.file_format == "table":
            engine.view(view, f"SELECT * FROM {self.base}")
        else:
            engine.read_files(view, self.file_format, self.files, self.base)


def resolve_source(location: str, directory: Path, key: str) -> Source:
    """Turn `[events] impressions = "..."` into files or a table name."""
    if "://" in location:
        file_format = "csv" if location.endswith(_CSV) else "parquet"
        return Source(file_format, (location,), re.split(r"[*?\[]", location)[0].rpartition("/")[0])
    path = directory / location
    is_file_name = location.endswith((*_CSV, ".parquet")) or path.exists()
    if _TABLE_NAME.fullmatch(location) and not is_file_name:
        return Source("table", (), location)
    pattern = str(path / "**" / "*.parquet") if path.is_dir() else str(path)
    files = tuple(sorted(f for f in glob.glob(pattern, recursive=True) if Path(f).is_file()))
    if not files:
        raise SourceError(
            f"{path}", "no file", "at least one", f"Check [events] {key} in the campaign file."
        )
    odd = next((f for f in files if not f.endswith((".parquet", *_CSV))), None)
    if odd is not None:
        raise SourceError(
            odd, "an unknown kind of file", "names that end in .parquet, .csv or .csv.gz",
            f"Narrow the pattern of [events] {key}.",
        )  # fmt: skip
    formats = {"csv" if f.endswith(_CSV) else "parquet" for f in files}
    if len(formats) > 1:
        raise SourceError(
            pattern, "Parquet and CSV files together", "files of one format",
            f"Narrow the pattern of [events] {key}.",
        )  # fmt: skip
    return Source(formats.pop(), files, _fixed_part(path))


def _fixed_part(path: Path) -> str:
    """The folder above the first wildcard: partition folders are looked for below it."""
    fixed = Path(*takewhile(lambda part: not glob.has_magic(part), path.parts))
    return str(fixed if fixed.is_dir() else fixed.parent)
