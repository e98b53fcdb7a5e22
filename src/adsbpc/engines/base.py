"""What every engine offers, and the words that the portable SQL may use besides standard SQL.

Texts are the same for every engine. They stay within a common subset and these functions, which
each engine defines when it opens, or writes out where a text uses them:

    whole_div(a, b)        integer division of non-negative BIGINTs, rounded down
    wide(x)                a 128-bit integer
    high(x), low(x)        a 128-bit integer from 0 to 2^106 - 1 as two BIGINTs, x = high 2^53 + low
    wide_of(h, l)          and back; files hold the two, because Parquet has no such integers
    micros(t)              microseconds since 1970 of a TIMESTAMP, whose session zone is UTC
    timestamp_of(m)        and back
    moment_text(m)         such microseconds between 1900 and 2200 as a text, for people
    is_text(s)             whether a text is valid UTF-8; some engines never hold another
    fingerprint(s, t)      a 64-bit hash of two texts; differs between engines, so it may only
                           narrow down what is then compared exactly
    sha256_digits(s)       SHA-256 of a text in UTF-8, as 64 hexadecimal digits in lower case

A row of a file that cannot be read never stops a run: it comes as nulls, with the reason in the
column UNREADABLE, which every view over files has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from adsbpc.engines.csv_dialect import CsvDialect
from adsbpc.storage import Place, hashes_of

if TYPE_CHECKING:
    import pyarrow as pa

    from adsbpc.engines.outer_tables import OuterCopies, OuterTable

FileFormat = Literal["parquet"] | CsvDialect


class ColumnKind(Enum):
    TEXT = "text"
    INTEGER = "an integer"
    NUMBER = "a number"
    TIMESTAMP = "a timestamp"
    ZONED_TIMESTAMP = "a timestamp with zone"
    OTHER = "something else"


@dataclass(frozen=True)
class Column:
    """A column's kind, and the type as the engine spells it for messages."""

    kind: ColumnKind
    declared: str


@dataclass(frozen=True)
class Schema:
    """Columns of one file or table, in the words of the engine."""

    where: str
    columns: dict[str, Column]


@dataclass(frozen=True)
class Relation:
    """A handle on rows: what a text says after FROM. Rows that stand in an engine's session have a
    name that nothing else has, and in a table they are computed once; those of a query are computed
    wherever it is used."""

    text: str
    is_table: bool = False

    @classmethod
    def of(cls, query: str) -> Relation:
        return cls(f"(\n{query}\n)")

    def __str__(self) -> str:
        return self.text


class Engine(ABC):
    """Runs SQL texts; only aggregates come back through `rows`. `what` names a step in messages."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self._made: list[Relation] = []
        self._count = 0
        self._outer: OuterCopies | None = None

    def describe_outer(self, table: OuterTable) -> Schema:
        """The columns of a table that stands outside of the engine."""
        empty = self._outer_copies().without_rows(table)
        (found,) = self.describe_files("parquet", [empty], None)
        return replace(found, where=table.where)

    def read_outer(self, what: str, table: OuterTable, columns: Sequence[str]) -> Relation:
        """Columns of such a table, from a copy that lasts as long as the session."""
        return self.read_files(
            what, "parquet", [self._outer_copies().of(table, columns)], None, columns
        )

    def _outer_copies(self) -> OuterCopies:
        if self._outer is None:
            from adsbpc.engines.outer_tables import OuterCopies

            self._outer = OuterCopies()
        return self._outer

    def _new(self, what: str, *, is_table: bool = False) -> Relation:
        self._count += 1
        relation = Relation(f"adsbpc_{self._count}_{what}", is_table)
        self._made.append(relation)
        return relation

    @contextmanager
    def scratch(self) -> Iterator[None]:
        """Rows that are made inside are dropped at the end."""
        before = len(self._made)
        try:
            yield
        finally:
            for relation in reversed(self._made[before:]):
                self.drop(relation)

    def drop(self, relation: Relation) -> None:
        """Forget rows and free their memory."""
        self._made.remove(relation)
        self._drop(relation)

    @abstractmethod
    def _drop(self, relation: Relation) -> None: ...

    @abstractmethod
    def table(self, what: str, sql: str, row_key: str | None = None) -> Relation:
        """Compute a temporary table, with a unique BIGINT column per row if one is named."""

    def numbers(self, what: str, columns: Mapping[str, Sequence[int]]) -> Relation:
        """Define a small temporary table of BIGINT columns. No other numbers are taken."""
        import pyarrow as pa

        # From buffers, because pyarrow loads pandas for anything else.
        given = [array("q", column) for column in columns.values()]
        arrays = [
            pa.Array.from_buffers(pa.int64(), len(each), [None, pa.py_buffer(each)])
            for each in given
        ]
        return self._given(what, pa.Table.from_arrays(arrays, names=list(columns)))

    def secret(self, what: str, text: str) -> Relation:
        """Define a temporary table with one row and the column `secret`: for what must stand in no
        text of a query, because errors and logs of engines quote those."""
        import pyarrow as pa

        return self._given(what, pa.table({"secret": pa.array([text], pa.string())}))

    @abstractmethod
    def _given(self, what: str, rows: pa.Table) -> Relation:
        """Define a temporary table of rows in memory."""

    @abstractmethod
    def rows(self, what: str, sql: str) -> list[tuple[Any, ...]]:
        """Run a query whose answer is small."""

    def listed(
        self, files: Sequence[str], base: str | None, again: bool = False
    ) -> tuple[list[str], str | None]:
        """The files that names stand for, some of which may be URLs of folders or patterns, and the
        folder below which folders `name=value` are columns. If this is asked `again`, the answer is
        the same, whatever has arrived meanwhile. Some engines find files themselves."""
        return list(files), base

    @abstractmethod
    def describe_files(
        self, file_format: FileFormat, files: Sequence[str], base: str | None
    ) -> list[Schema]:
        """Schema of each file. Folders `name=value` below `base`, if there is one, are columns."""

    @abstractmethod
    def describe_table(self, table: str) -> Schema:
        """Schema of a table that the engine already has."""

    @abstractmethod
    def read_files(
        self,
        what: str,
        file_format: FileFormat,
        files: Sequence[str],
        base: str | None,
        columns: Sequence[str],
    ) -> Relation:
        """A view over these columns of files, matched by name, and UNREADABLE; folders as above."""

    def read_written(self, what: str, files: Sequence[str], columns: Sequence[str]) -> Relation:
        """The same of files that `write_parquet` has written, of one kind, by whatever engine: they
        have the same types, and nothing in them has to be mended."""
        return self.read_files(what, "parquet", files, None, columns)

    @abstractmethod
    def read_table(self, what: str, table: str, columns: Sequence[str]) -> Relation:
        """A view over these columns of a table that the engine already has, and UNREADABLE."""

    @abstractmethod
    def write_parquet(self, what: str, sql: str, path: Place) -> None:
        """Write a query's rows to one Parquet file, whole or not at all; a cluster, to a folder of
        files in a store, each of which it notes in `path.uploaded`. They are of people: nobody but
        the owner can read them."""

    def write_all(self, queries: Mapping[Place, str]) -> None:
        """The same for several files. Steps are named after them."""
        for path, sql in queries.items():
            self.write_parquet(f"write {path.name}", sql, path)

    def hashes(self, files: Sequence[Place]) -> list[str | OSError]:
        """SHA-256 of whole files, or why one cannot be read; where the rows are computed."""
        return hashes_of(files)

    @abstractmethod
    def close(self) -> None:
        """End the session and remove what it spilled and copied."""
        if self._outer is not None:
            self._outer.close()


def quote_name(name: str) -> str:
    """A column name for SQL texts that run on any engine."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(value: str) -> str:
    """A text for SQL that runs on any engine. Some read a backslash in a literal as an escape
    and others do not, so it is written as a character code."""
    pieces = ["'" + piece.replace("'", "''") + "'" for piece in value.split("\\")]
    return pieces[0] if len(pieces) == 1 else f"({' || chr(92) || '.join(pieces)})"
