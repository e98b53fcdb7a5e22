"""Connections to engines behind one thin adapter; nothing here knows about ads."""

from collections.abc import Mapping

from adsbpc.engines.base import (
    Column,
    ColumnKind,
    Engine,
    FileFormat,
    Relation,
    Schema,
    quote_name,
    quote_text,
)
from adsbpc.engines.csv_dialect import UNREADABLE, CsvDialect


def open_engine(name: str, options: Mapping[str, str | int | bool] | None = None) -> Engine:
    """Open the engine of a campaign; its library is imported only now."""
    if name == "spark":
        from adsbpc.engines.spark_engine import SparkEngine

        return SparkEngine(options)
    from adsbpc.engines.duckdb_engine import DuckDBEngine

    return DuckDBEngine(options)


__all__ = [
    "UNREADABLE",
    "Column",
    "ColumnKind",
    "CsvDialect",
    "Engine",
    "FileFormat",
    "Relation",
    "Schema",
    "open_engine",
    "quote_name",
    "quote_text",
]
