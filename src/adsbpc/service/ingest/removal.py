"""Taking rows out of the event files, for good.

Must never: lose a row that is to stay, or double one, whatever dies in between or merges files at
the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Container

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from adsbpc.errors import ServiceError
from adsbpc.ledger.database import Database
from adsbpc.service.ingest.event_files import LOCK, EventFiles, OvertakenError
from adsbpc.service.ingest.rows import STORED, Source

# Which rows of a table go.
Doomed = Callable[[pa.Table], pa.Array]


def remove_rows(
    files: EventFiles, store: Database, source: Source, doomed: Doomed, clean: Container[str] = ()
) -> int:
    """Write every live file anew that holds such rows; how many there were. `clean` files are known
    to hold none."""
    removed, seen = 0, set[str]()
    while news := [name for name in files.listed(source) if name not in seen]:
        for name in news:
            count, kept = 0, name
            if name not in clean:
                count, kept = _remove(files, store, source, name, doomed)
            removed += count
            # One that was merged meanwhile is no longer listed: another is looked at for it.
            seen |= {name, kept}
    return removed


def _remove(
    files: EventFiles, store: Database, source: Source, name: str, doomed: Doomed
) -> tuple[int, str]:
    """How many rows went, and the file that holds the others."""
    try:
        table = pq.read_table(files.folder / name, schema=STORED[source], use_threads=False)
    except FileNotFoundError:
        # Retired and swept since it was listed.
        return 0, name
    except (OSError, pa.ArrowException) as error:
        raise ServiceError(
            f"{files.folder / name}: cannot be read ({error}). Restore it from a backup: it holds "
            "events"
        ) from None
    kept = table.filter(pc.invert(doomed(table).fill_null(False)))
    if kept.num_rows == table.num_rows:
        return 0, name
    written = files.write(source, kept, packed=True) if kept.num_rows else None
    try:
        with store.writing(LOCK) as connection:
            if not files.retire(connection, [name]):
                raise OvertakenError
            if written is not None:
                advertisers = pc.unique(kept["advertiser_id"]).to_pylist()
                advertiser = advertisers[0] if len(advertisers) == 1 else ""
                files.list_new(connection, source, written, advertiser, kept.num_rows)
    except OvertakenError:
        if written is not None:
            files.discard(written)
        return 0, name
    return table.num_rows - kept.num_rows, written or name
