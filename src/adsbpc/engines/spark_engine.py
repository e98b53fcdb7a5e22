"""The distributed engine: Spark, in local mode or on any cluster that the options name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adsbpc.engines.base import Column, ColumnKind, Engine, FileFormat, Relation, Schema
from adsbpc.engines.csv_dialect import UNREADABLE, CsvDialect, Header
from adsbpc.engines.spark_files import DataSizes, ReadOnce
from adsbpc.engines.spark_folders import hashes_in_store, write_folder
from adsbpc.engines.spark_functions import in_words_of_spark
from adsbpc.engines.spark_lines import LINE_END, LineParsing
from adsbpc.engines.spark_parquet import Footer, backticked, footer_of, from_milliseconds, widest
from adsbpc.engines.spark_session import cause_of, spark_errors, started_session
from adsbpc.errors import EngineError, SourceError
from adsbpc.storage import Place, RemotePath

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.readwriter import DataFrameReader
    from pyspark.sql.types import StructType

    from adsbpc.engines.outer_tables import OuterTable

# What Spark calls a line of text.
_LINE = "value"

_KINDS = {
    "string": ColumnKind.TEXT,
    "void": ColumnKind.TEXT,  # a partition folder for missing values
    "tinyint": ColumnKind.INTEGER,
    "smallint": ColumnKind.INTEGER,
    "int": ColumnKind.INTEGER,
    "bigint": ColumnKind.INTEGER,
    "float": ColumnKind.NUMBER,
    "double": ColumnKind.NUMBER,
    "timestamp": ColumnKind.ZONED_TIMESTAMP,
    "timestamp_ntz": ColumnKind.TIMESTAMP,
    "date": ColumnKind.TIMESTAMP,
}


def column_kind(declared: str) -> ColumnKind:
    if declared.startswith("decimal"):
        return ColumnKind.NUMBER
    return _KINDS.get(declared, ColumnKind.OTHER)


class SparkEngine(Engine):
    """Options are Spark settings; `spark.master` is `local[*]` unless they say otherwise."""

    name = "spark"

    def __init__(self, options: Mapping[str, str | int | bool] | None = None) -> None:
        super().__init__()
        self._session, self._is_local, chosen = started_session(options or {})
        self._sizes = DataSizes(self._session.sparkContext.defaultParallelism, chosen)
        self._plan_for_size()
        # Of other people's data, what is worth compiling code for.
        self._not_little: set[Relation] = set()
        self._footers: ReadOnce[Footer] = ReadOnce()
        self._schemas: ReadOnce[StructType] = ReadOnce()
        self._kept: dict[Relation, DataFrame] = {}

    def _plan_for_size(self, *, compiling: bool = False) -> None:
        for key, value in self._sizes.changed_settings(compiling=compiling).items():
            self._session.conf.set(key, value)

    def _weigh(self, sources: Sequence[str], frame: DataFrame) -> None:
        stats = frame._jdf.queryExecution().analyzed().stats
        self._sizes.add(sources, lambda: int(str(stats().sizeInBytes())))
        self._plan_for_size()

    def _query(self, what: str, sql: str) -> DataFrame:
        try:
            return self._session.sql(in_words_of_spark(sql))
        except spark_errors() as error:
            raise EngineError(self.name, what, cause_of(error), sql) from error

    def _name(self, what: str, frame: DataFrame, *, is_table: bool = False) -> Relation:
        relation = self._new(what, is_table=is_table)
        frame.createOrReplaceTempView(relation.text)
        return relation

    def table(self, what: str, sql: str, row_key: str | None = None) -> Relation:
        from pyspark.sql.functions import monotonically_increasing_id

        frame = self._together(self._query(what, sql))
        if row_key:
            frame = frame.select(monotonically_increasing_id().alias(row_key), "*")
        self._plan_for_size(compiling=any(each.text in sql for each in self._not_little))
        try:
            # Nothing is computed twice, and all tables that a step asks for in one job: a job takes
            # longer than a small table does. Keys are given at once: they depend on where rows are.
            frame = frame.localCheckpoint(eager=row_key is not None)
        except spark_errors() as error:
            raise EngineError(self.name, what, cause_of(error), sql) from error
        finally:
            self._plan_for_size()
        # What Spark keeps, it does not know to be in one place.
        relation = self._name(what, self._together(frame), is_table=True)
        self._kept[relation] = frame
        return relation

    def _together(self, frame: DataFrame) -> DataFrame:
        """Tiny data in one partition, which spares a shuffle before every step."""
        return frame.coalesce(1) if self._sizes.are_tiny else frame

    def _given(self, what: str, rows: pa.Table) -> Relation:
        # From Arrow they are part of the plan: no worker in Python reads them.
        return self._name(what, self._session.createDataFrame(rows).coalesce(1))

    def rows(self, what: str, sql: str) -> list[tuple[Any, ...]]:
        try:
            return [tuple(row) for row in self._query(what, sql).collect()]
        except spark_errors() as error:
            raise EngineError(self.name, what, cause_of(error), sql) from error

    def _drop(self, relation: Relation) -> None:
        self._session.catalog.dropTempView(relation.text)
        self._not_little.discard(relation)
        frame = self._kept.pop(relation, None)
        if frame is not None:
            frame.unpersist()

    def describe_files(
        self, file_format: FileFormat, files: Sequence[str], base: str | None
    ) -> list[Schema]:
        if isinstance(file_format, CsvDialect):
            return [self._describe_csv(file_format, file, base) for file in files]
        return [self._describe(file, partial(self._parquet_schema, file, base)) for file in files]

    def _describe_csv(self, dialect: CsvDialect, file: str, base: str | None) -> Schema:
        lines = self._describe(file, lambda: self._lines(file, base).schema).columns
        names = (*self._header(dialect, file, base).names, *(set(lines) - {_LINE}))
        return Schema(file, {name: Column(ColumnKind.TEXT, "text") for name in names})

    def describe_table(self, table: str) -> Schema:
        return self._describe(table, lambda: self._session.table(table).schema)

    def _describe(self, where: str, schema: Callable[[], StructType]) -> Schema:
        try:
            fields = schema().fields
        except spark_errors() as error:
            raise SourceError(
                where,
                f"a source that Spark cannot open ({cause_of(error)})",
                "a readable Parquet file, CSV file or table",
                "Replace or remove it, or correct [events] in the campaign file.",
            ) from None
        named = {field.name: field.dataType.simpleString() for field in fields}
        return Schema(where, {name: Column(column_kind(t), t) for name, t in named.items()})

    def _reader(self, base: str | None) -> DataFrameReader:
        return (
            self._session.read.option("basePath", self._address(base))
            if base
            else self._session.read
        )

    def _parquet(self, file: str, base: str | None) -> DataFrame:
        return self._reader(base).parquet(self._address(file))

    def _parquet_schema(self, file: str, base: str | None) -> StructType:
        if base is None and _is_one(file):
            return self._footer(file).schema
        # Spark starts a job to read it, also of a file that it has read before.
        return self._schemas.of(file, lambda: self._parquet(file, base).schema, base)

    def _footer(self, file: str) -> Footer:
        read = partial(footer_of, self._session, self._address(file), encoded=False)
        return self._footers.of(file, read)

    def _address(self, location: str) -> str:
        """Local paths get a scheme, so that a cluster's default file system does not claim them.
        Hadoop calls S3 s3a, unless the cluster has a file system of its own for it."""
        if "://" not in location:
            return f"file://{Path(location).absolute()}"
        settings = self._session.sparkContext._jsc.hadoopConfiguration()
        is_s3 = location.startswith("s3://") and not settings.get("fs.s3.impl")
        return location.replace("s3://", "s3a://", 1) if is_s3 else location

    def _lines(self, file: str, base: str | None) -> DataFrame:
        """Lines, cut at line feeds and nowhere else, beside what folders say."""
        return self._reader(base).text(self._address(file), lineSep="\n")

    def _header(self, dialect: CsvDialect, file: str, base: str | None) -> Header:
        from pyspark.sql.functions import col

        from adsbpc.engines.csv_lines import header_of

        first = self._lines(file, base).select(col(_LINE).cast("binary")).head()
        try:
            return header_of(bytes(first[0]) if first else b"", dialect)
        except ValueError as error:
            from adsbpc.engines.file_copies import bad_header

            raise bad_header(file, str(error), dialect) from None

    def _csv(
        self, dialect: CsvDialect, file: str, base: str | None, columns: Sequence[str]
    ) -> DataFrame:
        header = self._header(dialect, file, base)
        beside = [backticked(name) for name in columns if name not in header.names]
        parsing = LineParsing(dialect, header)
        lines = self._lines(file, base).selectExpr(f"{LINE_END} AS {_LINE}", *beside)
        judged = lines.where(parsing.is_row()).selectExpr("*", f"{parsing.broken()} AS broken")
        cut = judged.selectExpr("*", f"{parsing.fields()} AS fields")
        fields = [
            f"{parsing.field(name)} AS {backticked(name)}"
            for name in columns
            if name in header.names
        ]
        reason = f"{parsing.unreadable()} AS {backticked(UNREADABLE)}"
        return cut.selectExpr(*fields, *beside, reason)

    def read_files(
        self,
        what: str,
        file_format: FileFormat,
        files: Sequence[str],
        base: str | None,
        columns: Sequence[str],
    ) -> Relation:
        wanted = [backticked(name) for name in (*columns, UNREADABLE)]
        try:
            if isinstance(file_format, CsvDialect):
                parts = [self._csv(file_format, file, base, columns) for file in files]
            else:
                parts = self._parquet_parts(files, base, columns)
            frame = reduce(lambda one, other: one.unionByName(other), parts).select(wanted)
            self._weigh(files, frame)
            if self._sizes.are_tiny:
                frame = frame.coalesce(1)
            if isinstance(file_format, CsvDialect):
                # Read once, and a step of its own: within later ones Spark would write every
                # field's expression again wherever it is used, until nothing compiles.
                frame = frame.persist()
        except spark_errors() as error:
            raise SourceError(
                files[0],
                f"files that Spark cannot read together ({cause_of(error)})",
                "files with one schema",
                "Write all files with one schema.",
            ) from None
        relation = self._name(what, frame)
        if isinstance(file_format, CsvDialect):
            self._kept[relation] = frame
        if not self._sizes.are_little(files):
            self._not_little.add(relation)
        return relation

    def read_written(self, what: str, files: Sequence[str], columns: Sequence[str]) -> Relation:
        from pyspark.sql.types import StructField, StructType

        try:
            found = self._footer(files[0]).schema
            fields = [StructField(name, widest(found[name].dataType)) for name in columns]
            reader = self._session.read.schema(StructType(fields))
            frame = reader.parquet(*[self._address(file) for file in files])
            self._weigh(files, frame)
        except spark_errors() as error:
            raise SourceError(
                files[0],
                f"files that Spark cannot read together ({cause_of(error)})",
                "files that were written by adsbpc",
                "Restore them from a backup.",
            ) from None
        return self._name(what, frame.coalesce(1) if self._sizes.are_tiny else frame)

    def _parquet_parts(
        self, files: Sequence[str], base: str | None, columns: Sequence[str]
    ) -> list[DataFrame]:
        """Files with the same columns of milliseconds together. Spark stops at a millisecond that
        it cannot hold as microseconds, so that these are read as integers."""
        from pyspark.sql.functions import expr, lit
        from pyspark.sql.types import LongType, StructField, StructType

        # Naming the columns and their types leaves all others out of the comparison.
        found = {field.name: field for field in self._parquet_schema(files[0], base)}
        for file in files[1:]:
            if all(name in found for name in columns):
                break
            found = {field.name: field for field in self._parquet_schema(file, base)} | found
        by_milliseconds: dict[frozenset[str], list[str]] = {}
        for file in files:
            by_milliseconds.setdefault(self._milliseconds(file, columns), []).append(file)
        parts = []
        for milliseconds, alike in by_milliseconds.items():
            fields = [
                StructField(
                    name,
                    LongType() if name in milliseconds else widest(found[name].dataType),
                )
                for name in columns
            ]
            reader = self._reader(base).schema(StructType(fields))
            frame = reader.parquet(*[self._address(file) for file in alike])
            for name in milliseconds:
                zoned = found[name].dataType.simpleString() == "timestamp"
                frame = frame.withColumn(name, expr(from_milliseconds(name, zoned)))
            parts.append(frame.withColumn(UNREADABLE, lit(None).cast("string")))
        return parts

    def _milliseconds(self, file: str, columns: Sequence[str]) -> frozenset[str]:
        if "://" not in file:
            return self._footer(file).milliseconds & set(columns)
        # A location elsewhere may be a folder or a pattern, which Spark itself lists.
        found = {
            footer_of(self._session, each, encoded=True).milliseconds & set(columns)
            for each in self._parquet(file, None).inputFiles()
        }
        if len(found) > 1:
            raise SourceError(
                file, "files with timestamps in different units", "files with one schema",
                "Write all files with one schema.",
            )  # fmt: skip
        return found.pop() if found else frozenset()

    def read_table(self, what: str, table: str, columns: Sequence[str]) -> Relation:
        frame = self._session.table(table)
        self._weigh([table], frame)
        return self._columns_of(what, frame, columns)

    def _columns_of(self, what: str, frame: DataFrame, columns: Sequence[str]) -> Relation:
        from pyspark.sql.functions import lit

        wanted = frame.select([backticked(name) for name in columns])
        return self._name(what, wanted.withColumn(UNREADABLE, lit(None).cast("string")))

    def describe_outer(self, table: OuterTable) -> Schema:
        if self._is_local:
            return super().describe_outer(table)
        return self._describe(table.where, lambda: self._connected(table).schema)

    def read_outer(self, what: str, table: OuterTable, columns: Sequence[str]) -> Relation:
        if self._is_local:
            return super().read_outer(what, table, columns)
        frame = self._connected(table)
        self._weigh([table.where], frame)
        return self._columns_of(what, frame, columns)

    def _connected(self, table: OuterTable) -> DataFrame:
        """On a cluster, which would see no copy that this machine makes."""
        from adsbpc.engines.spark_tables import connected

        return connected(self._session, table)

    def write_parquet(self, what: str, sql: str, path: Place) -> None:
        if isinstance(path, RemotePath):
            try:
                write_folder(self._query(what, sql), path, self._address)
            except spark_errors() as error:
                raise EngineError(self.name, what, cause_of(error), sql) from error
            except OSError as error:
                cause = f"{path} cannot be written ({error.strerror})"
                raise EngineError(self.name, what, cause) from None
            return
        folder = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
        rows = folder / "rows"
        try:
            folder.mkdir(mode=0o700)
            self._query(what, sql).coalesce(1).write.mode("overwrite").parquet(
                self._address(str(rows))
            )
            (part,) = rows.glob("part-*.parquet")
            part.chmod(0o600)
            os.replace(part, path)
        except spark_errors() as error:
            raise EngineError(self.name, what, cause_of(error), sql) from error
        except OSError as error:
            raise EngineError(self.name, what, f"{path} cannot be written ({error})") from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def hashes(self, files: Sequence[Place]) -> list[str | OSError]:
        remote = [each for each in files if isinstance(each, RemotePath)]
        if not remote:
            return super().hashes(files)
        assert len(remote) == len(files)
        try:
            return hashes_in_store(self._session, remote, self._address)
        except spark_errors() as error:
            raise EngineError(self.name, "hash files", cause_of(error)) from error

    def close(self) -> None:
        for relation in list(self._made):
            self.drop(relation)
        super().close()


def _is_one(location: str) -> bool:
    """Whether it is a file of this machine, and no folder or pattern."""
    return "://" not in location and Path(location).is_file()
