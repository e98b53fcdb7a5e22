"""Copies of files that an engine cannot be trusted to read, as Parquet in a folder of the session.

CSV is always read from a copy: what an engine makes of a line may depend on other lines. Parquet is
read as it is, and from a copy only once a value has stopped a scan. Copies hold what the files hold
and go with the session.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from io import BufferedIOBase, BufferedReader
from itertools import count
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from adsbpc.engines.csv_dialect import LONGEST_LINE, UNREADABLE, CsvDialect, Header
from adsbpc.engines.csv_lines import header_of, tables_of
from adsbpc.engines.parquet_mending import mend
from adsbpc.errors import SourceError
from adsbpc.storage import RemotePath, has_client, is_remote


class FileCopies:
    """A file that has not changed is copied once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[tuple[object, ...], str] = {}
        self._numbers = count(1)

    def of_csv(
        self, files: Sequence[str], base: str | None, columns: Sequence[str], dialect: CsvDialect
    ) -> list[str]:
        """A Parquet file for each file, with the columns that do not come from folders."""
        return [self._of_csv(file, base, columns, dialect) for file in files]

    def _of_csv(
        self, file: str, base: str | None, columns: Sequence[str], dialect: CsvDialect
    ) -> str:
        key = (file, _version(file), tuple(columns), dialect)
        if key not in self._made:
            header = header_in(file, dialect)
            wanted = [name for name in columns if name in header.names]
            copy = self._place(file, base)
            copy.parent.mkdir(parents=True, exist_ok=True)
            schema = pa.schema([(name, pa.string()) for name in [*wanted, UNREADABLE]])
            with _opened(file) as stream, pq.ParquetWriter(copy, schema) as writer:
                stream.readline(LONGEST_LINE)
                for table in tables_of(stream, header, dialect, wanted):
                    writer.write_table(table)
            self._made[key] = str(copy)
        return self._made[key]

    def mended(self, files: Sequence[str], base: str | None, columns: Sequence[str]) -> list[str]:
        """The same Parquet files, with copies in place of those that hold unreadable values."""
        return [self._mended(file, base, columns) for file in files]

    def _mended(self, file: str, base: str | None, columns: Sequence[str]) -> str:
        key = (file, _version(file), tuple(columns))
        if key not in self._made:
            copy = self._place(file, base)
            try:
                self._made[key] = str(copy) if mend(file, columns, copy) else file
            except (OSError, pa.ArrowException) as error:
                raise _unreadable(file, str(error)) from None
        return self._made[key]

    def _place(self, file: str, base: str | None) -> Path:
        """Below the same folders `name=value` as the file."""
        folders = Path(file).parent.relative_to(base) if base is not None else Path()
        return self._folder / f"copy-{next(self._numbers)}" / folders / "rows.parquet"


def header_in(file: str, dialect: CsvDialect) -> Header:
    """The columns that a CSV file has."""
    with _opened(file) as stream:
        try:
            return header_of(stream.readline(LONGEST_LINE), dialect)
        except ValueError as error:
            raise bad_header(file, str(error), dialect) from None


def bad_header(file: str, found: str, dialect: CsvDialect) -> SourceError:
    return SourceError(
        file, found, f"names of columns, each once, in UTF-8, with {dialect}",
        "Correct the file, or [events.csv] in the campaign file.",
    )  # fmt: skip


def folder_columns(file: str, base: str | None) -> dict[str, str]:
    """What the folders `name=value` below a base say."""
    if base is None:
        return {}
    named = [part.partition("=") for part in Path(file).parent.relative_to(base).parts]
    return {name: unquote(value) for name, sign, value in named if sign}


@contextmanager
def _opened(file: str) -> Iterator[BufferedIOBase]:
    try:
        with ExitStack() as stack:
            if is_remote(file) and has_client(file):
                plain = stack.enter_context(RemotePath(file).open())
            elif "://" in file:
                system, path = pyarrow.fs.FileSystem.from_uri(file)
                raw = system.open_input_stream(path, compression=None)
                plain = stack.enter_context(BufferedReader(stack.enter_context(raw)))
            else:
                plain = stack.enter_context(Path(file).open("rb"))
            yield gzip.GzipFile(fileobj=plain) if file.endswith(".gz") else plain
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        raise _unreadable(file, str(error)) from None


def _unreadable(file: str, why: str) -> SourceError:
    return SourceError(
        file,
        f"a source that cannot be read ({' '.join(why.split())[:400]})",
        "a readable Parquet file, CSV file or table",
        "Replace or remove it, or correct [events] in the campaign file.",
    )


def _version(file: str) -> tuple[object, ...]:
    """Changes when a file does; of a file elsewhere nothing is known."""
    if is_remote(file) and has_client(file):
        stamp = RemotePath(file).stamp()
        return stamp.size, stamp.version
    if "://" in file:
        return ()
    stat = Path(file).stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
