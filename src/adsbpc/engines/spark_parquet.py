"""What Spark needs to be told about columns of Parquet files, so that no value stops it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType


@dataclass(frozen=True)
class Footer:
    """What the footer of a Parquet file says: columns as Spark reads them, and which of them are
    milliseconds."""

    schema: StructType
    milliseconds: frozenset[str]


def footer_of(session: SparkSession, address: str, *, encoded: bool) -> Footer:
    """Read here, in Spark's own words: Spark would start a job for each file. Addresses that Spark
    has listed are encoded as in a URL."""
    from pyspark.sql.types import StructType

    context = session.sparkContext
    jvm: Any = context._jvm
    path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI.create(address) if encoded else address)
    settings = context._jsc.hadoopConfiguration()
    source = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(path, settings)
    reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(source)
    try:
        footer = reader.getFooter()
    finally:
        reader.close()
    parquet = jvm.org.apache.spark.sql.execution.datasources.parquet
    schema = parquet.ParquetFileFormat.readSchemaFromFooter(
        jvm.org.apache.parquet.hadoop.Footer(path, footer),
        parquet.ParquetToSparkSchemaConverter(session._jsparkSession.sessionState().conf()),
    )
    declared = footer.getFileMetaData().getSchema()
    # Hardly any file has some, and each column is asked across processes.
    fields = declared.getFields() if "MILLIS" in str(declared.toString()) else ()
    milliseconds = frozenset(
        str(field.getName())
        for field in fields
        if "TIMESTAMP(MILLIS" in str(field.getLogicalTypeAnnotation())
    )
    return Footer(StructType.fromJson(json.loads(schema.json())), milliseconds)


def from_milliseconds(name: str, zoned: bool) -> str:
    column = backticked(name)
    inside = f"{column} BETWEEN -9000000000000000 AND 9000000000000000"
    moment = f"timestamp_millis(CASE WHEN {inside} THEN {column} END)"
    return moment if zoned else f"CAST({moment} AS TIMESTAMP_NTZ)"


def widest(declared: DataType) -> DataType:
    """The type that holds a column of every file: integers and floats differ in width."""
    from pyspark.sql.types import (
        DoubleType,
        FloatType,
        IntegralType,
        LongType,
        NullType,
        StringType,
    )

    if isinstance(declared, IntegralType):
        return LongType()
    if isinstance(declared, FloatType):
        return DoubleType()
    return StringType() if isinstance(declared, NullType) else declared


def backticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
