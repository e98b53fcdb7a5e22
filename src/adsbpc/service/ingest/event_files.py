"""Which Parquet files hold the events, and up to when arrivals are closed.

A file counts only while the store lists it. A slot is released from what is stored by then: what is
stored later counts as arrived later, whatever clocks do and however long a disk takes. It would be
acknowledged and never counted.

Must never: list a file that is not whole and on the disk, or delete one that is in use.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Connection, delete, insert, select, update

from adsbpc.durable import write_durably
from adsbpc.errors import ServiceError
from adsbpc.ledger.database import Database
from adsbpc.service.clock import Clock, now_us
from adsbpc.service.ingest.rows import STORED, Source
from adsbpc.service.store import arrivals, event_files

# Everything that changes the list, or closes arrivals, does it under this name, one at a time.
LOCK: Final = "events"

_LIST: Final = insert(event_files)
_OWN_NAMES = re.compile(
    r"\.?(impressions|conversions)-[0-9a-f]{32}\.parquet(\.[0-9a-f]+\.unfinished)?"
)
# Events are personal data.
_MODE = 0o600
_UNLISTED_US = 3_600 * 1_000_000
_RETIRED_US = 86_400 * 1_000_000


class OvertakenError(Exception):
    """Another server stored, released or merged something meanwhile; nothing of this transaction
    stays."""


class EventFiles:
    """The files stand in `folder`, which only their owner may read: they hold who did what."""

    def __init__(self, store: Database, folder: Path, clock: Clock) -> None:
        self.folder = folder.resolve()
        self._store, self._clock = store, clock
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ServiceError(
                f"{self.folder}: the folder for events cannot be made ({error.strerror}). Check "
                "[service] data, and that adsbpc may write there"
            ) from None

    def write(self, source: Source, table: pa.Table, *, packed: bool = False) -> str:
        """A new file on the disk, whole; it counts only when it is listed. `packed` takes longer
        to write, and less room."""
        name = f"{source}-{secrets.token_hex(16)}.parquet"
        content = _as_parquet(table.cast(STORED[source]), packed)
        write_durably(self.folder / name, content, mode=_MODE)
        return name

    def discard(self, name: str) -> None:
        """Delete a file that is known not to be listed."""
        (self.folder / name).unlink(missing_ok=True)

    def list_new(
        self, connection: Connection, source: Source, name: str, advertiser: str, rows: int
    ) -> None:
        """From the end of the caller's transaction on, which holds LOCK, the file counts."""
        if not (self.folder / name).is_file():
            raise ServiceError(
                f"{self.folder / name}: was removed before it was listed. Leave the folder to "
                "adsbpc, and send the batch again"
            )
        connection.execute(
            _LIST,
            {
                "name": name,
                "source": source,
                "advertiser": advertiser,
                "row_count": rows,
                "created_us": now_us(self._clock),
            },
        )

    def retire(self, connection: Connection, names: Sequence[str]) -> bool:
        """The rows of these files are in others from now on; False if one was retired before."""
        # Real time, not the server's, which may run faster: a release may still read them.
        moment = time.time_ns() // 1_000
        changed = connection.execute(
            update(event_files)
            .where(event_files.c.name.in_(names), event_files.c.retired_us.is_(None))
            .values(retired_us=moment)
        )
        return changed.rowcount == len(names)

    def live(self, source: Source, advertiser: str) -> list[Path]:
        """The files that may hold rows of an advertiser: a snapshot, each row in one of them."""
        chosen = (
            select(event_files.c.name)
            .where(
                event_files.c.source == source,
                event_files.c.retired_us.is_(None),
                event_files.c.advertiser.in_([advertiser, ""]),
            )
            .order_by(event_files.c.created_us, event_files.c.name)
        )
        with self._store.reading() as connection:
            return [self.folder / name for name in connection.execute(chosen).scalars()]

    def listed(self, source: Source) -> list[str]:
        """The names of all live files."""
        chosen = select(event_files.c.name).where(
            event_files.c.source == source, event_files.c.retired_us.is_(None)
        )
        with self._store.reading() as connection:
            return list(connection.execute(chosen.order_by(event_files.c.name)).scalars())

    def manifest(
        self, source: Source, advertiser: str, path: Path, columns: Sequence[str] = ()
    ) -> None:
        """Write the list of live files that a campaign reads, one absolute path a line. Files of
        before there were some of its `columns` are read from copies that have them, beside the
        list."""
        files = self.live(source, advertiser) or [self._empty(source)]
        files = [self._with_columns(source, file, path, columns) for file in files]
        write_durably(path, "".join(f"{file}\n" for file in files).encode(), mode=_MODE)

    def _with_columns(
        self, source: Source, file: Path, beside: Path, columns: Sequence[str]
    ) -> Path:
        if not columns:
            return file
        try:
            if set(columns) <= set(pq.read_schema(file).names):
                return file
            table = pq.read_table(file, schema=STORED[source], use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise ServiceError(
                f"{file}: cannot be read ({error}). Restore it from a backup: it holds events"
            ) from None
        copy = beside.with_name(f"with-columns-{file.name}")
        write_durably(copy, _as_parquet(table, packed=False), mode=_MODE)
        return copy

    def _empty(self, source: Source) -> Path:
        path = self.folder / f"empty-{source}.parquet"
        if not path.exists():
            write_durably(path, _as_parquet(STORED[source].empty_table(), packed=False), mode=_MODE)
        return path

    def delete_retired(self) -> None:
        """At once: a release that reads one of them fails, and is tried again with others."""
        with self._store.writing(LOCK) as connection:
            retired = event_files.c.retired_us.is_not(None)
            names = connection.execute(select(event_files.c.name).where(retired)).scalars().all()
            for name in names:
                self.discard(name)
            connection.execute(delete(event_files).where(retired))

    def discard_unlisted(self, source: Source, holds: Callable[[Path], bool]) -> None:
        """Delete what a crash left behind of such rows, however new. Whoever was about to list such
        a file is told to send it again, and has not been answered."""
        with self._store.writing(LOCK) as connection:
            kept = set(connection.execute(select(event_files.c.name)).scalars())
            for file in self.folder.glob(f"{source}-*.parquet"):
                if _OWN_NAMES.fullmatch(file.name) and file.name not in kept and holds(file):
                    self.discard(file.name)

    def sweep(self) -> int:
        """Delete files that a crash left behind, and those that were retired a day ago."""
        moment = now_us(self._clock)
        swept = 0
        # Nothing is listed meanwhile, so that what is unlisted now stays so.
        with self._store.writing(LOCK) as connection:
            connection.execute(
                delete(event_files).where(event_files.c.retired_us < moment - _RETIRED_US)
            )
            kept = set(connection.execute(select(event_files.c.name)).scalars())
            for file in self.folder.iterdir():
                if _OWN_NAMES.fullmatch(file.name) and file.name not in kept:
                    with suppress(FileNotFoundError):
                        if file.stat().st_mtime_ns // 1_000 < moment - _UNLISTED_US:
                            file.unlink()
                            swept += 1
        return swept


def _as_parquet(table: pa.Table, packed: bool) -> pa.Buffer:
    stream = pa.BufferOutputStream()
    if packed:
        pq.write_table(table, stream, compression="zstd")
    else:
        # Small and soon merged: whatever takes time to write is left out.
        pq.write_table(
            table, stream, compression="none", use_dictionary=False, write_statistics=False,
        )  # fmt: skip
    return stream.getvalue()


# Made once: every group of batches asks it.
_CLOSED_UNTIL = select(arrivals.c.closed_until_us).where(arrivals.c.name == LOCK)


def close_arrivals(store: Database, until_us: int) -> None:
    """From now on nothing is stored as arrived before this moment."""
    with store.writing(LOCK) as connection:
        known = connection.execute(_CLOSED_UNTIL).scalar_one_or_none()
        if known is None:
            connection.execute(insert(arrivals).values(name=LOCK, closed_until_us=until_us))
        elif known < until_us:
            connection.execute(update(arrivals).values(closed_until_us=until_us))


def closed_until(connection: Connection) -> int:
    """Inside a transaction that holds LOCK: it stays so until that ends."""
    return connection.execute(_CLOSED_UNTIL).scalar_one_or_none() or 0
