"""Tables that stand outside of an engine: Delta, Iceberg, PostgreSQL. Each is read with its own
library, as Arrow, and handed to the engine as Parquet files of its session; `spark_tables` has them
on clusters.

Must never: guess. A table that its library cannot read in full is an error, never a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from adsbpc.engines.session_folder import SessionFolder
from adsbpc.errors import SourceError

Kind = Literal["delta", "iceberg", "postgresql"]
# The extra that brings the library of each.
_EXTRAS: dict[Kind, str] = {"delta": "delta", "iceberg": "iceberg", "postgresql": "postgresql"}
# What PostgreSQL has that a file holds as it is. What a file cannot hold is read as missing, for
# one row must not stop the others; other types are read as texts.
_PLAIN = (
    "text", "character", "smallint", "integer", "bigint", "real", "double precision", "boolean",
)  # fmt: skip
_IN_PART = {
    "numeric": "CASE WHEN abs({0}) < 1e300 THEN CAST({0} AS double precision) END AS {0}",
    "date": "CASE WHEN {0} BETWEEN '0001-01-01' AND '9999-12-31' THEN {0} END AS {0}",
    "timestamp": "CASE WHEN {0} BETWEEN '0001-01-01' AND '9999-12-31' THEN {0} END AS {0}",
}


class OpenedTable(Protocol):
    """A table at one moment: `version` changes when it does, where that can be told."""

    schema: pa.Schema
    version: object

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]: ...


@dataclass(frozen=True)
class OuterTable:
    """`address` is what the library takes; `where` names it in messages, without a password."""

    kind: Kind
    address: str
    where: str

    @classmethod
    def at(cls, location: str, directory: Path) -> OuterTable | None:
        """What a campaign file names, or None if that is something else."""
        scheme, sign, rest = location.partition(":")
        if sign and scheme in ("delta", "iceberg"):
            path = rest if "://" in rest or _is_catalogued(scheme, rest) else str(directory / rest)
            return cls("delta" if scheme == "delta" else "iceberg", path, location)
        if location.startswith("postgresql://"):
            return cls("postgresql", location, _without_password(location))
        return None

    def open(self) -> OpenedTable:
        openers: dict[Kind, Callable[[str], OpenedTable]] = {
            "delta": _Delta, "iceberg": _Iceberg, "postgresql": _PostgreSQL,
        }  # fmt: skip
        with self.explained():
            return openers[self.kind](self.address)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Libraries raise whatever they like: it is told with the table's name, and is no bug."""
        try:
            yield
        except ImportError as error:
            raise SourceError(
                self.where,
                f"a table of {self.kind}, whose library cannot be imported ({error})",
                f"the extra {_EXTRAS[self.kind]}",
                f"pip install 'adsbpc[{_EXTRAS[self.kind]}]'",
            ) from None
        except SourceError:
            raise
        except Exception as error:  # noqa: BLE001
            reason = " ".join(str(error).split())[:400] or type(error).__name__
            raise SourceError(
                self.where,
                f"a table of {self.kind} that cannot be read ({_hidden(reason, self.address)})",
                "one that its library reads in full",
                "Check that it is there, that you may read it, and that its features are known "
                "to the library; or write its events as Parquet files.",
            ) from None


class OuterCopies:
    """Parquet files of tables, in a folder of the session. A table that has not changed is copied
    once for the same columns."""

    def __init__(self) -> None:
        self._folder = SessionFolder("tables")
        self._made: dict[tuple[object, ...], str] = {}
        self._numbers = count(1)

    def without_rows(self, table: OuterTable) -> str:
        """A file with the columns of a table."""
        return self._written(table, table.open(), None)

    def of(self, table: OuterTable, columns: Sequence[str]) -> str:
        """A file with all rows of these columns."""
        return self._written(table, table.open(), tuple(columns))

    def _written(
        self, table: OuterTable, opened: OpenedTable, columns: tuple[str, ...] | None
    ) -> str:
        key = (table, opened.version, columns)
        if key not in self._made:
            path = self._folder.path / f"{next(self._numbers)}.parquet"
            path.touch(mode=0o600)
            wanted = opened.schema.names if columns is None else columns
            schema = pa.schema([_storable(opened.schema.field(name)) for name in wanted])
            with table.explained(), pq.ParquetWriter(path, schema) as writer:
                for batch in () if columns is None else opened.batches(columns):
                    rows = pa.Table.from_batches([batch]).select(list(columns or ()))
                    writer.write_table(rows.cast(schema))
            self._made[key] = str(path)
        return self._made[key]

    def close(self) -> None:
        self._folder.cleanup()


class _Delta:
    def __init__(self, address: str) -> None:
        from deltalake import DeltaTable

        table = DeltaTable(address)
        self.version: object = table.version()
        # Refuses tables with deletions or columns that Arrow would read as if they were not there.
        self._rows = table.to_pyarrow_dataset()
        self.schema: pa.Schema = self._rows.schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from self._rows.to_batches(columns=list(columns))


class _Iceberg:
    def __init__(self, address: str) -> None:
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        self._table = _iceberg_table(address)
        snapshot = self._table.current_snapshot()
        self.version: object = (
            self._table.metadata_location, None if snapshot is None else snapshot.snapshot_id,
        )  # fmt: skip
        self.schema: pa.Schema = schema_to_pyarrow(self._table.schema(), include_field_ids=False)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from self._table.scan(selected_fields=tuple(columns)).to_arrow_batch_reader()


def _iceberg_table(address: str) -> Any:
    """Of a catalog that pyiceberg is configured with, as catalog.namespace.table; or as it was when
    a metadata file was written."""
    if not _is_catalogued("iceberg", address):
        from pyiceberg.table import StaticTable

        return StaticTable.from_metadata(address)
    from pyiceberg.catalog import load_catalog

    catalog, _, name = address.partition(".")
    return load_catalog(catalog).load_table(name)


def _is_catalogued(scheme: str, name: str) -> bool:
    return scheme == "iceberg" and "/" not in name and not name.endswith(".json")


class _PostgreSQL:
    """`postgresql://host/database#schema.table`: a table, or a view that chooses rows."""

    def __init__(self, address: str) -> None:
        self._server, _, name = address.partition("#")
        if not name:
            raise SourceError(
                _without_password(address), "no table", "one after #",
                "Name it: postgresql://host/database#schema.table",
            )  # fmt: skip
        with self._cursor() as cursor:
            cursor.execute("SELECT CAST(to_regclass($1) AS text)", [name])
            ((self._name,),) = cursor.fetchall()
            if self._name is None:
                raise SourceError(
                    _without_password(address), f"no table {name!r} in the database",
                    "one that is there, and that you may see",
                    "Correct the name after #, with its schema.",
                )  # fmt: skip
            cursor.execute(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
                " WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped"
                " ORDER BY attnum",
                [name],
            )
            self._types: dict[str, str] = dict(cursor.fetchall())
            cursor.execute(f"{self.query()} LIMIT 0")
            self.schema: pa.Schema = cursor.fetch_arrow_table().schema
        # What changes in it cannot be told: one session reads it once.
        self.version: object = None

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._cursor() as cursor:
            cursor.execute(self._selected(columns))
            yield from cursor.fetch_record_batch()

    def query(self) -> str:
        """All columns, in types that every engine reads."""
        return self._selected(list(self._types))

    def _selected(self, columns: Sequence[str]) -> str:
        wanted = [_selected(name, self._types[name]) for name in columns]
        return f"SELECT {', '.join(wanted)} FROM {self._name}"

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self._server) as connection, connection.cursor() as cursor:
            yield cursor


def postgresql_query(table: OuterTable) -> str:
    """For whoever reads the table otherwise than with our library: the same rows."""
    return _PostgreSQL(table.address).query()


def _selected(name: str, declared: str) -> str:
    quoted = '"' + name.replace('"', '""') + '"'
    if declared.endswith("]"):
        return f"CAST({quoted} AS text) AS {quoted}"
    if declared.startswith(_PLAIN):
        return quoted
    shapes = (shape for kind, shape in _IN_PART.items() if declared.startswith(kind))
    return next(shapes, "CAST({0} AS text) AS {0}").format(quoted)


def _storable(field: pa.Field) -> pa.Field:
    """Types that every engine reads from Parquet; whether a value may be missing is not a type."""
    stored = field.type
    if pa.types.is_large_string(stored) or pa.types.is_string_view(stored):
        stored = pa.string()
    elif pa.types.is_dictionary(stored):
        stored = stored.value_type
    return pa.field(field.name, stored)


def _without_password(address: str) -> str:
    """For messages; what follows a question mark may hold one too."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "postgresql://..."
    user, sign, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user.partition(':')[0]}{sign}{host}", query="").geturl()


def _hidden(reason: str, address: str) -> str:
    """Drivers quote what they were given."""
    server = address.partition("#")[0]
    for part in (address, server):
        reason = reason.replace(part, "***") if "@" in part else reason
    return reason
