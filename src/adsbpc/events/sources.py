"""Where events come from: Parquet, CSV, a list of files, a table that the engine already has, or
one that stands elsewhere: Delta, Iceberg, PostgreSQL."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from adsbpc.engines import CsvDialect, Engine, FileFormat, Relation, Schema
from adsbpc.engines.outer_tables import OuterTable
from adsbpc.errors import SourceError
from adsbpc.model.spec import CampaignSpec
from adsbpc.storage import check_url

_TABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}")
_CSV = (".csv", ".csv.gz")
_LIST = ".files"
_USUAL = CsvDialect()


@dataclass(frozen=True)
class Source:
    """A location of the campaign file, resolved: files of a format, or a table if there is none.

    `where` names it in messages. `base` is set where folders `name=value` below it are columns. An
    `outer` table stands outside of the engine.
    """

    file_format: FileFormat | None
    where: str
    files: tuple[str, ...] = ()
    base: str | None = None
    outer: OuterTable | None = None

    @property
    def is_csv(self) -> bool:
        return isinstance(self.file_format, CsvDialect)

    @property
    def is_table(self) -> bool:
        return self.file_format is None

    def describe(self, engine: Engine) -> list[Schema]:
        """The schema of each file, or of the table."""
        if self.outer is not None:
            return [engine.describe_outer(self.outer)]
        if self.file_format is None:
            return [engine.describe_table(self.where)]
        return engine.describe_files(self.file_format, *engine.listed(self.files, self.base))

    def open(self, engine: Engine, what: str, columns: Sequence[str]) -> Relation:
        """Columns of the source, whose schemas have been found to agree."""
        if self.outer is not None:
            return engine.read_outer(what, self.outer, columns)
        if self.file_format is None:
            return engine.read_table(what, self.where, columns)
        files, base = engine.listed(self.files, self.base, again=True)
        return engine.read_files(what, self.file_format, files, base, columns)


def dialect_of(spec: CampaignSpec) -> CsvDialect:
    """How the campaign file says that CSV files are written."""
    return CsvDialect(spec.events.csv.delimiter, spec.events.csv.quote)


def resolve_source(
    location: str, directory: Path, key: str, dialect: CsvDialect = _USUAL
) -> Source:
    """Turn `[events] impressions = "..."`, whose `key` is "[events] impressions", into files or a
    table name."""
    outer = OuterTable.at(location, directory)
    if outer is not None:
        return Source("parquet", outer.where, outer=outer)
    if "://" in location:
        check_url(location, key)
        file_format: FileFormat = dialect if location.endswith(_CSV) else "parquet"
        base = location.partition("=")[0].rpartition("/")[0] if "=" in location else None
        return Source(file_format, location, (location,), base)
    path = directory / location
    if location.endswith(_LIST):
        return Source("parquet", str(path), _listed_files(path, key))
    is_file_name = location.endswith((*_CSV, ".parquet")) or path.exists()
    if _TABLE_NAME.fullmatch(location) and not is_file_name:
        return Source(None, location)
    # Only the location is a pattern; signs in the folder of the campaign file are just signs.
    pattern = str(Path(glob.escape(str(directory))) / location)
    if path.is_dir():
        pattern = str(Path(glob.escape(str(path))) / "**" / "*.parquet")
    files = tuple(sorted(f for f in glob.glob(pattern, recursive=True) if Path(f).is_file()))
    narrow = f"Narrow the pattern of {key}."
    if not files:
        raise SourceError(
            str(path), "no file", "at least one", f"Check {key} in the campaign file."
        )
    for file in files:
        if not file.endswith((".parquet", *_CSV)):
            raise SourceError(
                file,
                "an unknown kind of file",
                "names that end in .parquet, .csv or .csv.gz",
                narrow,
            )
        _refuse_pattern(file)
    csv_files = [file for file in files if file.endswith(_CSV)]
    if csv_files and len(csv_files) < len(files):
        raise SourceError(
            str(path), "Parquet and CSV files together", "files of one format", narrow
        )
    where = files[0] if len(files) == 1 else str(path)
    file_format = dialect if csv_files else "parquet"
    return Source(file_format, where, files, _partition_base(files, directory))


def _listed_files(path: Path, key: str) -> tuple[str, ...]:
    """The Parquet files that a text file lists: each once, an absolute path a line."""
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(
            str(path), f"no list that can be read ({error})", "a text file in UTF-8",
            f"Check {key} in the campaign file.",
        ) from None  # fmt: skip
    if not content:
        raise SourceError(str(path), "an empty list", "at least one path", "List a Parquet file.")
    files = tuple(content.removesuffix("\n").split("\n"))
    for number, file in enumerate(files, start=1):
        where = f"{path}, line {number}"
        if not Path(file).is_absolute() or not file.endswith(".parquet"):
            raise SourceError(
                where, repr(file), "an absolute path that ends in .parquet", "Correct the line."
            )
        _refuse_pattern(file)
        if not Path(file).is_file():
            raise SourceError(where, f"no file {file}", "one that is there", "Correct the line.")
    repeated = len(files) - len(set(files))
    if repeated:
        raise SourceError(
            str(path), f"{repeated} paths more than once", "each file once",
            "Remove the repeated lines: their events would count twice.",
        )  # fmt: skip
    return files


def _refuse_pattern(file: str) -> None:
    if glob.has_magic(file):
        raise SourceError(
            file, "one of * ? [ in its path", "a path that no engine takes for a pattern",
            "Rename the file or folder.",
        )  # fmt: skip


def _partition_base(files: tuple[str, ...], directory: Path) -> str | None:
    """The folder above the first folder `name=value` below the campaign file, if there is one."""
    for file in files:
        folders = Path(file).parent.parts
        own = len(directory.parts) if Path(file).is_relative_to(directory) else 0
        named = [k for k, part in enumerate(folders) if k >= own and "=" in part]
        if named:
            return str(Path(*folders[: named[0]]))
    return None
