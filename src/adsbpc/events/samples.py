"""A first look at somebody's event files: their columns, and some rows as texts.

For whoever writes a campaign file, and for proposals that they read and confirm. Must never: be
used by a release, in which no row decides how others are read.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from adsbpc.engines import ColumnKind, CsvDialect, Engine, Relation, quote_name
from adsbpc.errors import SourceError
from adsbpc.events.clock_proposals import Clock, clock_of
from adsbpc.events.sources import Source, resolve_source
from adsbpc.storage import folder_at

_ROWS = 20_000
_DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class Sample:
    """`texts` are values of the first rows by column, without empty ones; `rows` are all of them,
    for questions to the engine."""

    where: str
    dialect: CsvDialect | None
    kinds: Mapping[str, ColumnKind]
    texts: Mapping[str, tuple[str, ...]]
    rows: Relation

    def distinct(self, column: str) -> frozenset[str]:
        return self._distinct[column]

    def clock(self, column: str) -> Clock | None:
        """How the column's moments are written, if it has any."""
        return self._clocks[column]

    @cached_property
    def _distinct(self) -> dict[str, frozenset[str]]:
        return {column: frozenset(texts) for column, texts in self.texts.items()}

    @cached_property
    def _clocks(self) -> dict[str, Clock | None]:
        return {column: clock_of(kind, self.texts[column]) for column, kind in self.kinds.items()}


def sample_of(engine: Engine, location: str, directory: Path, key: str) -> Sample:
    """Look at a source that the campaign file's `key` would name."""
    source = resolve_source(location, directory, key)
    if source.is_csv:
        dialect = CsvDialect(_delimiter_of(engine.listed(source.files, None)[0][0]))
        source = resolve_source(location, directory, key, dialect)
    schemas = source.describe(engine)
    kinds = {
        name: column.kind
        for name, column in schemas[0].columns.items()
        if all(name in each.columns for each in schemas)
    }
    if not kinds:
        raise SourceError(source.where, "no columns", "a first line that names them", "Add one.")
    rows = source.open(engine, "sample", list(kinds))
    shown = ", ".join(f"CAST({quote_name(name)} AS STRING)" for name in kinds)
    found = engine.rows("first look", f"SELECT {shown} FROM {rows} LIMIT {_ROWS}")
    texts = {
        name: tuple(row[place] for row in found if row[place] not in (None, ""))
        for place, name in enumerate(kinds)
    }
    if not any(texts.values()):
        raise SourceError(
            source.where, "no rows", "some to look at", "Name files that have events in them."
        )
    return Sample(source.where, _dialect_of(source), kinds, texts, rows)


def _dialect_of(source: Source) -> CsvDialect | None:
    return source.file_format if isinstance(source.file_format, CsvDialect) else None


def _delimiter_of(file: str) -> str:
    """The sign that stands in the first line most often, of those that are usual."""
    place = folder_at(file, Path(), "the source")
    with place.open("rb") as opened:
        plain = gzip.GzipFile(fileobj=opened) if file.endswith(".gz") else opened
        line = plain.readline(2**20).decode("utf-8", errors="replace")
    return max(_DELIMITERS, key=line.count)
