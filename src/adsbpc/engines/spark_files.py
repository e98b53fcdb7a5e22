"""What an engine on Spark remembers of files that it reads: how large they are, and what was read.

Spark plans for large data. With small ones nearly all of a query's time goes into stages that are
planned one by one, into code that every executor compiles, and into empty partitions; on a cluster
more so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

Found = TypeVar("Found")

_SMALL_BYTES, _TINY_BYTES, _LITTLE_BYTES = 64 * 2**20, 8 * 2**20, 2**20
# What is set for data of any size, which is Spark's own, for small and for tiny data. Tiny data
# are in one partition, so that a step is one task without a shuffle, and no code is made for them,
# which would take longer to compile than to run, but for steps that read more than a little.
_SETTINGS = {
    "spark.sql.adaptive.enabled": ("true", "false", "false"),
    "spark.sql.shuffle.partitions": ("200", "{cores}", "1"),
    "spark.sql.autoBroadcastJoinThreshold": ("10485760", "10485760", "-1"),
    "spark.sql.codegen.wholeStage": ("true", "true", "false"),
    "spark.sql.codegen.factoryMode": ("FALLBACK", "FALLBACK", "NO_CODEGEN"),
}


class DataSizes:
    """How queries are planned for what was read so far, but for settings that somebody has
    `chosen`."""

    def __init__(self, cores: int, chosen: Iterable[str]) -> None:
        self._cores = cores
        kept = {*chosen}
        self._ours = {key: each for key, each in _SETTINGS.items() if key not in kept}
        self._bytes: dict[str, int] = {}
        self._set: dict[str, str] = {}

    def add(self, sources: Sequence[str], others: Callable[[], int]) -> None:
        """Files of this machine, and `others`, of which Spark says how large they are together."""
        here = {source for source in sources if Path(source).is_file()}
        self._bytes |= {source: Path(source).stat().st_size for source in here}
        elsewhere = [source for source in sources if source not in here]
        if elsewhere:
            self._bytes[elsewhere[0]] = others()

    @property
    def are_tiny(self) -> bool:
        return sum(self._bytes.values()) <= _TINY_BYTES

    def are_little(self, sources: Sequence[str]) -> bool:
        return sum(self._bytes.get(source, 0) for source in sources) <= _LITTLE_BYTES

    def changed_settings(self, *, compiling: bool = False) -> dict[str, str]:
        """What is to be set otherwise than it was; `compiling` makes code for data of any size."""
        size = 2 if self.are_tiny else sum(self._bytes.values()) <= _SMALL_BYTES
        wanted = {k: each[size].format(cores=self._cores) for k, each in self._ours.items()}
        if compiling:
            wanted |= {key: each[0] for key, each in self._ours.items() if "codegen" in key}
        changed = {key: value for key, value in wanted.items() if self._set.get(key) != value}
        self._set = wanted
        return changed


class ReadOnce(Generic[Found]):
    """What was read of files, until they change. Only of files that this machine sees."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, ...], Found] = {}

    def of(self, file: str, read: Callable[[], Found], *more: object) -> Found:
        """By file, and by whatever `more` decides what is read of it."""
        state = _state(file)
        if state is None:
            return read()
        if (state, *more) not in self._found:
            self._found[state, *more] = read()
        return self._found[state, *more]


def _state(file: str) -> tuple[object, ...] | None:
    """Another one whenever a file was written; None if it is not one of this machine."""
    with suppress(OSError):
        found = Path(file).stat()
        return file, found.st_ino, found.st_mtime_ns, found.st_size
    return None
