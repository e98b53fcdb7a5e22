"""What an engine on Spark remembers of files that it reads: how large they are, and their schemas.

Spark plans for clusters. On one machine, with data that fit into its memory many times, nearly all
of a query's time goes into stages that it plans one by one and into partitions that are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_ADAPTIVE, _PARTITIONS = "spark.sql.adaptive.enabled", "spark.sql.shuffle.partitions"
# Spark's own, for data of any size.
_LARGE = {_ADAPTIVE: "true", _PARTITIONS: "200"}
_SMALL_BYTES = 64 * 2**20


class DataSizes:
    """How queries are planned for what was read so far. `cores` is None on a cluster, where Spark
    plans as ever; so does it with every setting that somebody has `chosen`."""

    def __init__(self, cores: int | None, chosen: Iterable[str]) -> None:
        self._small = {} if cores is None else {_ADAPTIVE: "false", _PARTITIONS: str(cores)}
        for key in chosen:
            self._small.pop(key, None)
        self._bytes: dict[str, int] = {}
        self._set: dict[str, str] = {}

    def add(self, sources: Sequence[str]) -> None:
        """Files, or what nobody knows the size of, which counts as large."""
        for source in sources:
            file = Path(source)
            self._bytes[source] = file.stat().st_size if file.is_file() else _SMALL_BYTES + 1

    def changed_settings(self) -> dict[str, str]:
        """What is to be set otherwise than it was."""
        is_small = sum(self._bytes.values()) <= _SMALL_BYTES
        wanted = {key: few if is_small else _LARGE[key] for key, few in self._small.items()}
        changed = {key: value for key, value in wanted.items() if self._set.get(key) != value}
        self._set = wanted
        return changed


class Footers:
    """Schemas of Parquet files, and which of their columns are milliseconds, until a file changes.
    Only of files that this machine sees."""

    def __init__(self) -> None:
        self._schemas: dict[tuple[object, ...], StructType] = {}
        self._milliseconds: dict[tuple[object, ...], frozenset[str]] = {}

    def schema(self, file: str, base: str | None, read: Callable[[], StructType]) -> StructType:
        state = _state(file)
        if state is None:
            return read()
        if (state, base) not in self._schemas:
            self._schemas[state, base] = read()
        return self._schemas[state, base]

    def milliseconds(self, file: str, read: Callable[[], frozenset[str]]) -> frozenset[str]:
        state = _state(file)
        if state is None:
            return read()
        if state not in self._milliseconds:
            self._milliseconds[state] = read()
        return self._milliseconds[state]


def _state(file: str) -> tuple[object, ...] | None:
    """Another one whenever a file was written; None if it is not one of this machine."""
    with suppress(OSError):
        found = Path(file).stat()
        return file, found.st_ino, found.st_mtime_ns, found.st_size
    return None
