"""The embedded engine: DuckDB in process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from adsbpc.durable import replacing
from adsbpc.engines.base import Column, ColumnKind, Engine, FileFormat, Relation, Schema, quote_name
from adsbpc.engines.csv_dialect import UNREADABLE, CsvDialect
from adsbpc.engines.session_folder import SessionFolder
from adsbpc.errors import EngineError, SourceError, SpecError
from adsbpc.storage import (
    Place,
    RemotePath,
    files_at,
    has_client,
    is_remote,
    partition_base,
    without_passwords,
)

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from adsbpc.storage.reading import StoreReader

_VOCABULARY = (
    "CREATE TEMP MACRO whole_div(a, b) AS CAST(a AS BIGINT) // CAST(b AS BIGINT)",
    "CREATE TEMP MACRO wide(x) AS CAST(x AS HUGEINT)",
    "CREATE TEMP MACRO high(x) AS CAST(x >> 53 AS BIGINT)",
    "CREATE TEMP MACRO low(x) AS CAST(x & CAST(9007199254740991 AS HUGEINT) AS BIGINT)",
    "CREATE TEMP MACRO wide_of(h, l) AS"
    " CAST(h AS HUGEINT) * CAST(9007199254740992 AS HUGEINT) + CAST(l AS HUGEINT)",
    "CREATE TEMP MACRO micros(t) AS epoch_us(t)",
    "CREATE TEMP MACRO timestamp_of(m) AS make_timestamp(m)",
    "CREATE TEMP MACRO moment_text(m) AS strftime(make_timestamp(m), '%Y-%m-%d %H:%M:%S.%f')",
    "CREATE TEMP MACRO is_text(s) AS TRUE",
    "CREATE TEMP MACRO fingerprint(s, t) AS hash(s, t)",
    "CREATE TEMP MACRO sha256_digits(s) AS sha256(s)",
    "CREATE TEMP MACRO sha256_number(s) AS CAST('0x' || substr(sha256(s), 1, 13) AS BIGINT)",
)

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_NUMBERS = {"FLOAT", "DOUBLE", "HUGEINT", "UBIGINT", "UHUGEINT"}
_TIMESTAMPS = {"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_ZONED_NANOSECONDS = "TIMESTAMPTZ_NS"

# A step of DuckDB's planning that sometimes sums up all of the past before it is joined with the
# few rows that need it, which takes up to ten times as long.
_SUMS_FIRST = "partial_aggregate_pushdown"

# What the portable texts rely on, whatever the options say.
_FIXED_SETTINGS = {"TimeZone": "UTC", "default_collation": ""}

# Differences of integers take less room than what Snappy makes of the integers, and are read in a
# third of the time; to compress them again costs more time than it saves room. Looking for repeats
# among values that have hardly any takes a third of the time of writing.
_WRITTEN = (
    "FORMAT parquet, PARQUET_VERSION v2, COMPRESSION uncompressed, DICTIONARY_SIZE_LIMIT 1000"
)


def column_kind(declared: str) -> ColumnKind:
    if declared == "VARCHAR":
        return ColumnKind.TEXT
    if declared in _INTEGERS:
        return ColumnKind.INTEGER
    if declared in _NUMBERS or declared.startswith("DECIMAL"):
        return ColumnKind.NUMBER
    if declared in ("TIMESTAMP WITH TIME ZONE", _ZONED_NANOSECONDS):
        return ColumnKind.ZONED_TIMESTAMP
    if declared in _TIMESTAMPS:
        return ColumnKind.TIMESTAMP
    return ColumnKind.OTHER


@dataclass(frozen=True)
class _Opened:
    files: tuple[str, ...]
    base: str | None
    columns: tuple[str, ...]


class DuckDBEngine(Engine):
    """`database` opens a DuckDB file read-only; other options are DuckDB settings."""

    name = "duckdb"

    def __init__(self, options: Mapping[str, str | int | bool] | None = None) -> None:
        import duckdb

        from adsbpc.engines.file_copies import FileCopies

        super().__init__()
        settings = dict(options or {})
        database = str(settings.pop("database", ":memory:"))
        # Memory stays low when rows may leave a scan in any order; every text orders what it needs.
        settings = {"preserve_insertion_order": False, **settings}
        self._spill = SessionFolder("duckdb")
        settings.setdefault("temp_directory", str(self._spill.path))
        settings.update(_FIXED_SETTINGS)
        try:
            self._connection: duckdb.DuckDBPyConnection = duckdb.connect(
                database, read_only=database != ":memory:"
            )
            steps = self._connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
            if (_SUMS_FIRST,) in steps:
                settings.setdefault("disabled_optimizers", _SUMS_FIRST)
            for key, value in settings.items():
                if not key.isidentifier():
                    raise duckdb.Error(f"{key!r} is no name of a setting")
                self._connection.execute(f"SET {key} = {_literal(str(value))}")
        except duckdb.Error as error:
            self._spill.cleanup()
            raise SpecError(
                f"[engine.options]: DuckDB refuses them: {error}. "
                "Options are DuckDB settings such as memory_limit and threads, and database"
            ) from None
        for statement in _VOCABULARY:
            self._connection.execute(statement)
        self._copies = FileCopies(self._spill.path)
        # Views over Parquet files as they are, which may hold values that stop a scan.
        self._as_they_are: dict[Relation, _Opened] = {}
        # Files of object stores are read through their clients, by protocol.
        self._readers: dict[str, StoreReader] = {}
        self._listings: dict[tuple[str, ...], tuple[list[str], str | None]] = {}

    def _execute(self, step: str, sql: str) -> list[tuple[Any, ...]]:
        import duckdb

        try:
            try:
                return self._connection.execute(sql).fetchall()
            except (duckdb.InvalidInputException, duckdb.ConversionException):
                # One person's value must not stop everybody.
                if not self._mend():
                    raise
                return self._connection.execute(sql).fetchall()
        except duckdb.Error as error:
            raise EngineError(self.name, step, without_passwords(str(error)), sql) from error
        except RuntimeError as error:
            # How DuckDB tells of Ctrl-C.
            if "interrupted" in str(error):
                raise KeyboardInterrupt from None
            raise

    def _mend(self) -> bool:
        """Let views over files in which values cannot be read see copies that set them aside;
        whether there were any."""
        found = False
        for view, opened in list(self._as_they_are.items()):
            mended = self._copies.mended(opened.files, opened.base, opened.columns)
            if mended != list(opened.files):
                found = True
                self._select(view, _reader(mended, opened.base), opened.columns, UNREADABLE)
            del self._as_they_are[view]
        return found

    def table(self, what: str, sql: str, row_key: str | None = None) -> Relation:
        relation = self._new(what, is_table=True)
        if row_key:
            sql = f"SELECT row_number() OVER () AS {row_key}, keyed.* FROM (\n{sql}\n) AS keyed"
        self._execute(what, f"CREATE TEMP TABLE {relation} AS {sql}")
        return relation

    def _given(self, what: str, rows: pa.Table) -> Relation:
        self._connection.register("given_rows", rows)
        relation = self.table(what, "SELECT * FROM given_rows")
        self._connection.unregister("given_rows")
        return relation

    def rows(self, what: str, sql: str) -> list[tuple[Any, ...]]:
        return self._execute(what, sql)

    def _drop(self, relation: Relation) -> None:
        self._as_they_are.pop(relation, None)
        kind = "TABLE" if relation.is_table else "VIEW"
        self._execute(f"drop {relation}", f"DROP {kind} IF EXISTS {relation}")

    def listed(
        self, files: Sequence[str], base: str | None, again: bool = False
    ) -> tuple[list[str], str | None]:
        key = tuple(files)
        if again and key in self._listings:
            return self._listings[key]
        urls = [file for file in files if is_remote(file) and has_client(file)]
        if not urls:
            # Without the client, DuckDB may still have an extension of its own.
            return list(files), base
        found = [each for file in files for each in (files_at(file) if file in urls else [file])]
        self._listings[key] = found, partition_base(found)
        return self._listings[key]

    def _reach(self, files: Sequence[str]) -> None:
        """Let DuckDB read files of stores, as they are from now on."""
        for file in files:
            if not is_remote(file) or not has_client(file):
                continue
            from adsbpc.storage.reading import StoreReader

            protocol = file.partition("://")[0]
            if protocol not in self._readers:
                self._readers[protocol] = StoreReader(protocol)
                self._connection.register_filesystem(self._readers[protocol])
            self._readers[protocol].forget(file)

    def describe_files(
        self, file_format: FileFormat, files: Sequence[str], base: str | None
    ) -> list[Schema]:
        self._reach(files)
        if isinstance(file_format, CsvDialect):
            return [_described(file, file_format, base) for file in files]
        return [
            self._with_int96(self._describe(file, _reader([file], base)), file) for file in files
        ]

    def _with_int96(self, schema: Schema, file: str) -> Schema:
        """INT96 timestamps are instants, as Spark and Impala write them, without saying so."""
        found = self.rows(
            "parquet schema",
            f"SELECT name FROM parquet_schema({_literal(file)}) WHERE type = 'INT96'",
        )
        instants = {name: Column(ColumnKind.ZONED_TIMESTAMP, "INT96") for (name,) in found}
        return Schema(schema.where, {**schema.columns, **instants})

    def describe_table(self, table: str) -> Schema:
        return self._describe(table, table)

    def _describe(self, where: str, relation: str) -> Schema:
        import duckdb

        try:
            found = self._connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        except duckdb.Error as error:
            raise SourceError(
                where,
                f"a source that DuckDB cannot open ({_in_short(error)})",
                "a readable Parquet file, CSV file or table",
                "Replace or remove it, or correct [events] in the campaign file.",
            ) from None
        return Schema(where, {row[0]: Column(column_kind(row[1]), row[1]) for row in found})

    def read_files(
        self,
        what: str,
        file_format: FileFormat,
        files: Sequence[str],
        base: str | None,
        columns: Sequence[str],
    ) -> Relation:
        relation = self._new(what)
        self._reach(files)
        if isinstance(file_format, CsvDialect):
            copies = self._copies.of_csv(files, base, columns, file_format)
            self._select(relation, _reader(copies, base), columns, UNREADABLE)
        else:
            self._as_they_are[relation] = _Opened(tuple(files), base, tuple(columns))
            self._select(relation, _reader(files, base), columns)
        return relation

    def read_written(self, what: str, files: Sequence[str], columns: Sequence[str]) -> Relation:
        relation = self._new(what)
        self._reach(files)
        # The first file tells the types of all, so that no other is opened to plan a query.
        self._select(relation, _reader(files, None, "union_by_name = false"), columns)
        return relation

    def read_table(self, what: str, table: str, columns: Sequence[str]) -> Relation:
        relation = self._new(what)
        self._select(relation, table, columns)
        return relation

    def _select(
        self, view: Relation, source: str, columns: Sequence[str], unreadable: str | None = None
    ) -> None:
        types = self._describe(view.text, source).columns
        reason = "CAST(NULL AS VARCHAR)" if unreadable is None else quote_name(unreadable)
        wanted = []
        for name in columns:
            quoted = quote_name(name)
            if types[name].declared == _ZONED_NANOSECONDS:
                quoted = f"CAST({quoted} AS TIMESTAMPTZ) AS {quoted}"
            wanted.append(quoted)
        wanted.append(f"{reason} AS {quote_name(UNREADABLE)}")
        listed = ", ".join(wanted)
        self._execute(
            view.text, f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT {listed} FROM {source}"
        )

    def write_parquet(self, what: str, sql: str, path: Place) -> None:
        if isinstance(path, RemotePath):
            self._upload_parquet(what, sql, path)
            return
        try:
            with replacing(path) as unfinished:
                unfinished.touch(mode=0o600)
                target = f"{_literal(str(unfinished))} ({_WRITTEN}, USE_TMP_FILE false)"
                self._execute(what, f"COPY ({sql}) TO {target}")
        except OSError as error:
            raise EngineError(self.name, what, f"{path} cannot be written ({error})") from None

    def _upload_parquet(self, what: str, sql: str, path: RemotePath) -> None:
        """Hashed here, and sent whole: a store has no names beside which something unfinished could
        stand."""
        file = self._spill.path / f"upload-{uuid4().hex}.parquet"
        try:
            self.write_parquet(what, sql, file)
            path.upload(file)
        except OSError as error:
            raise EngineError(
                self.name, what, f"{path} cannot be written ({error.strerror})"
            ) from None
        finally:
            file.unlink(missing_ok=True)

    def close(self) -> None:
        self._connection.close()
        self._spill.cleanup()
        super().close()


def _in_short(error: Exception) -> str:
    return " ".join(without_passwords(str(error)).split())[-400:]


def _literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _reader(files: Sequence[str], base: str | None, types: str = "union_by_name = true") -> str:
    listed = ", ".join(_literal(file) for file in files)
    folders = f"hive_partitioning = {base is not None}"
    if base is not None:
        folders += ", hive_types_autocast = false"
    return f"read_parquet([{listed}], {types}, {folders})"


def _described(file: str, dialect: CsvDialect, base: str | None) -> Schema:
    from adsbpc.engines.file_copies import folder_columns, header_in

    names = (*header_in(file, dialect).names, *folder_columns(file, base))
    return Schema(file, {name: Column(ColumnKind.TEXT, "text") for name in names})
