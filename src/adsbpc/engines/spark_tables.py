"""Delta, Iceberg and PostgreSQL on a cluster: Spark reads them where they are, with its own
connectors. A cluster sees no copy that this machine would make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from adsbpc.engines.outer_tables import Kind, OuterTable, postgresql_query
from adsbpc.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What [engine.options] names, of the version that fits the cluster's Spark.
_CONNECTORS: dict[Kind, str] = {
    "delta": "io.delta:delta-spark_2.13:VERSION",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-SPARK_2.13:VERSION",
    "postgresql": "org.postgresql:postgresql:VERSION",
}
# How Spark and Java say that they have none.
_MISSING = ("DATA_SOURCE_NOT_FOUND", "ClassNotFoundException", "No suitable driver")


def connected(session: SparkSession, table: OuterTable) -> DataFrame:
    """The table as Spark's connector sees it."""
    with table.explained():
        try:
            if table.kind == "postgresql":
                return session.read.format("jdbc").options(**_jdbc_options(table)).load()
            return session.read.format(table.kind).load(_address(table))
        except Exception as error:
            if any(sign in str(error) for sign in _MISSING):
                raise _without_connector(table) from None
            raise


def _without_connector(table: OuterTable) -> SourceError:
    return SourceError(
        table.where,
        f"a table of {table.kind}, for which this Spark has no connector",
        "one that the cluster can read by itself",
        f'Add "spark.jars.packages" = "{_CONNECTORS[table.kind]}" to [engine.options], or name the '
        "table as a catalog of Spark calls it.",
    )


def _address(table: OuterTable) -> str:
    """Local paths get a scheme, as those of files do; catalogs have names."""
    return f"file://{table.address}" if table.address.startswith("/") else table.address


def _jdbc_options(table: OuterTable) -> dict[str, Any]:
    """The password is an option of its own, which Spark hides in its plans and logs."""
    parts = urlsplit(table.address.partition("#")[0])
    given = dict(parse_qsl(parts.query))
    named = {"user": parts.username, "password": parts.password}
    named = {key: unquote(value) for key, value in named.items() if value}
    named |= {key: given.pop(key) for key in ("user", "password") if key in given}
    host = parts.netloc.rpartition("@")[2]
    return {
        "url": f"jdbc:postgresql://{host}{parts.path}?{urlencode(given)}",
        "driver": "org.postgresql.Driver",
        "dbtable": f"({postgresql_query(table)}) AS events",
        "preferTimestampNTZ": "true",
        **named,
    }
