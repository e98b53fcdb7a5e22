"""The distributed engine: Spark, in local mode or on any cluster that the options name."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adsbpc.engines.base import Column, ColumnKind, Engine, FileFormat, Relation, Schema
from adsbpc.engines.csv_dialect import UNREADABLE, CsvDialect, Header
from adsbpc.engines.spark_files import DataSizes, ReadOnce
from adsbpc.engines.spark_functions import in_words_of_spark
from adsbpc.engines.spark_lines import LINE_END, LineParsing
from adsbpc.engines.spark_parquet import Footer, backticked, footer_of, from_milliseconds, widest
from adsbpc.errors import AdsbpcError, EngineError, SourceError, SpecError
from adsbpc.storage import Place

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import DataFrame
    from pyspark.sql.readwriter import DataFrameReader
    from pyspark.sql.types import StructType

    from adsbpc.engines.outer_tables import OuterTable

# What Spark calls a line of text.
_LINE = "value"

# What the portable texts rely on; set on a session of our own, so that nobody else's changes.
_SESSION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.variable.substitute": "false",
}

# What an operator may set otherwise in [engine.options].
_DEFAULTS: dict[str, str | int | bool] = {
    "spark.master": "local[*]",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": False,
    "spark.ui.showConsoleProgress": False,
    # A slot makes code for more steps than Spark keeps by itself.
    "spark.sql.codegen.cache.maxEntries": 1_000,
}

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

MISSING_JAVA = (
    "Spark needs Java 17 or newer and none was found. Install one (on Debian: "
    "apt-get install openjdk-17-jre-headless) or set JAVA_HOME to where it is"
)


def find_java() -> str | None:
    """Path of a Java that starts, or None."""
    home = os.environ.get("JAVA_HOME")
    candidate = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if candidate is None:
        return None
    try:
        started = subprocess.run([candidate, "-version"], capture_output=True, check=False)
    except OSError:
        return None
    return candidate if started.returncode == 0 else None


@cache
def _stop_in_the_end(context: SparkContext) -> None:
    """Before the program takes Java down, which would leave executors of a cluster to complain of
    what is gone, with tracebacks."""
    atexit.register(context.stop)


def column_kind(declared: str) -> ColumnKind:
    if declared.startswith("decimal"):
        return ColumnKind.NUMBER
    return _KINDS.get(declared, ColumnKind.OTHER)


class SparkEngine(Engine):
    """Options are Spark settings; `spark.master` is `local[*]` unless they say otherwise."""

    name = "spark"

    def __init__(self, options: Mapping[str, str | int | bool] | None = None) -> None:
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            raise AdsbpcError(
                'engine = "spark" needs pyspark. Install it with: pip install "adsbpc[spark]"'
            ) from None
        super().__init__()
        settings = {**_DEFAULTS, **(options or {})}
        self._is_local = str(settings["spark.master"]).startswith("local")
        if self._is_local and find_java() is None:
            raise AdsbpcError(MISSING_JAVA)
        builder = SparkSession.builder.appName("adsbpc")
        for key, value in settings.items():
            builder = builder.config(
                key, str(value).lower() if value is True or value is False else value
            )
        try:
            self._session = builder.getOrCreate().newSession()
        except Exception as error:  # noqa: BLE001 - Spark raises whatever its JVM could not do
            raise SpecError(
                f"[engine.options]: Spark does not start with them: {_cause(error)}. "
                "Options are Spark settings such as spark.master"
            ) from None
        context, in_one_process = self._session.sparkContext, True
        if not re.fullmatch(r"local(\[.*\])?", str(settings["spark.master"])):
            in_one_process = False
            _stop_in_the_end(context)
        for key, value in _SESSION.items():
            self._session.conf.set(key, value)
        self._sizes = DataSizes(
            context.defaultParallelism if in_one_process else None,
            {*settings, *(key for key, _ in context.getConf().getAll())},
        )
        self._plan_for_size()
        self._footers: ReadOnce[Footer] = ReadOnce()
        self._schemas: ReadOnce[StructType] = ReadOnce()
        self._kept: dict[Relation, DataFrame] = {}

    def _plan_for_size(self) -> None:
        for key, value in self._sizes.changed_settings().items():
            self._session.conf.set(key, value)

    def _query(self, what: str, sql: str) -> DataFrame:

        try:
            return self._session.sql(in_words_of_spark(sql))
        except _errors() as error:
            raise EngineError(self.name, what, _cause(error), sql) from error

    def _name(self, what: str, frame: DataFrame) -> Relation:
        relation = self._new(what)
        frame.createOrReplaceTempView(relation.text)
        return relation

    def table(self, what: str, sql: str, row_key: str | None = None) -> Relation:
        from pyspark.sql.functions import monotonically_increasing_id

        frame = self._query(what, sql)
        if row_key:
            frame = frame.select(monotonically_increasing_id().alias(row_key), "*")
        try:
            # A checkpoint, not a cache: row keys must never be computed a second time.
            frame = frame.localCheckpoint(eager=True)
        except _errors() as error:
            raise EngineError(self.name, what, _cause(error), sql) from error
        relation = self._name(what, frame)
        self._kept[relation] = frame
        return relation

    def numbers(self, what: str, columns: Mapping[str, Sequence[int]]) -> Relation:
        import pyarrow as pa

        given = {key: pa.array(list(each), pa.int64()) for key, each in columns.items()}
        return self._given(what, pa.table(given))

    def secret(self, what: str, text: str) -> Relation:
        import pyarrow as pa

        return self._given(what, pa.table({"secret": pa.array([text], pa.string())}))

    def _given(self, what: str, rows: pa.Table) -> Relation:
        # From Arrow they are part of the plan: no worker in Python reads them.
        return self._name(what, self._session.createDataFrame(rows).coalesce(1))

    def rows(self, what: str, sql: str) -> list[tuple[Any, ...]]:

        try:
            return [tuple(row) for row in self._query(what, sql).collect()]
        except _errors() as error:
            raise EngineError(self.name, what, _cause(error), sql) from error

    def _drop(self, relation: Relation) -> None:
        self._session.catalog.dropTempView(relation.text)
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
        except _errors() as error:
            raise SourceError(
                where,
                f"a source that Spark cannot open ({_cause(error)})",
                "a readable Parquet file, CSV file or table",
                "Replace or remove it, or correct [events] in the campaign file.",
            ) from None
        named = {field.name: field.dataType.simpleString() for field in fields}
        return Schema(where, {name: Column(column_kind(t), t) for name, t in named.items()})

    def _reader(self, base: str | None) -> DataFrameReader:
        return self._session.read.option("basePath", _address(base)) if base else self._session.read

    def _parquet(self, file: str, base: str | None) -> DataFrame:
        return self._reader(base).parquet(_address(file))

    def _parquet_schema(self, file: str, base: str | None) -> StructType:
        if base is None and _is_one(file):
            return self._footer(file).schema
        # Spark starts a job to read it, also of a file that it has read before.
        return self._schemas.of(file, lambda: self._parquet(file, base).schema, base)

    def _footer(self, file: str) -> Footer:
        read = partial(footer_of, self._session, _address(file), encoded=False)
        return self._footers.of(file, read)

    def _lines(self, file: str, base: str | None) -> DataFrame:
        """Lines, cut at line feeds and nowhere else, beside what folders say."""
        return self._reader(base).text(_address(file), lineSep="\n")

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
        self._sizes.add(files)
        self._plan_for_size()
        try:
            if isinstance(file_format, CsvDialect):
                parts = [self._csv(file_format, file, base, columns) for file in files]
            else:
                parts = self._parquet_parts(files, base, columns)
            frame = reduce(lambda one, other: one.unionByName(other), parts).select(wanted)
            if self._sizes.are_tiny:
                frame = frame.coalesce(1)
            if isinstance(file_format, CsvDialect):
                # Read once, and a step of its own: within later ones Spark would write every
                # field's expression again wherever it is used, until nothing compiles.
                frame = frame.persist()
        except _errors() as error:
            raise SourceError(
                files[0],
                f"files that Spark cannot read together ({_cause(error)})",
                "files with one schema",
                "Write all files with one schema.",
            ) from None
        relation = self._name(what, frame)
        if isinstance(file_format, CsvDialect):
            self._kept[relation] = frame
        return relation

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
            frame = reader.parquet(*[_address(file) for file in alike])
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
        self._sizes.add([table])
        self._plan_for_size()
        return self._columns_of(what, self._session.table(table), columns)

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
        return self._columns_of(what, self._connected(table), columns)

    def _connected(self, table: OuterTable) -> DataFrame:
        """On a cluster, which would see no copy that this machine makes."""
        from adsbpc.engines.spark_tables import connected

        return connected(self._session, table)

    def write_parquet(self, what: str, sql: str, path: Place) -> None:
        # Campaign files that name a store have another engine.
        assert isinstance(path, Path)
        folder = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
        rows = folder / "rows"
        try:
            folder.mkdir(mode=0o700)
            self._query(what, sql).coalesce(1).write.mode("overwrite").parquet(_address(str(rows)))
            (part,) = rows.glob("part-*.parquet")
            part.chmod(0o600)
            os.replace(part, path)
        except _errors() as error:
            raise EngineError(self.name, what, _cause(error), sql) from error
        except OSError as error:
            raise EngineError(self.name, what, f"{path} cannot be written ({error})") from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        for relation in list(self._made):
            self.drop(relation)
        super().close()


def _errors() -> tuple[type[Exception], ...]:
    """What a Spark call may raise: its own exceptions, or a bare one from the JVM."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JJavaError


def _cause(error: Exception) -> str:
    """The messages of an exception and of what caused it, without the JVM's stack traces."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        return str(error).split("\n\nJVM stacktrace")[0].strip()
    messages = []
    while cause is not None:
        first_line = str(cause.getMessage()).splitlines()[0]
        if first_line not in messages:
            messages.append(first_line)
        cause = cause.getCause()
    return "; caused by: ".join(messages)


def _is_one(location: str) -> bool:
    """Whether it is a file of this machine, and no folder or pattern."""
    return "://" not in location and Path(location).is_file()


def _address(location: str) -> str:
    """Local paths get a scheme, so that a cluster's default file system does not claim them."""
    return location if "://" in location else f"file://{Path(location).absolute()}"
