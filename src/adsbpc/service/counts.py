"""Rows by hour, sender and verdict: for the operator, never published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Executable, select
from sqlalchemy.dialects import postgresql, sqlite

from adsbpc.ledger.database import Database
from adsbpc.service.clock import Clock, now_us
from adsbpc.service.store import counts

HOUR_US = 3_600 * 1_000_000


def _added(insert: postgresql.Insert | sqlite.Insert) -> Executable:
    return insert.on_conflict_do_update(
        index_elements=list(counts.primary_key),
        set_={"number": counts.c.number + insert.excluded.number},
    )


_ADD: Final = {
    "postgresql": _added(postgresql.insert(counts)),
    "sqlite": _added(sqlite.insert(counts)),
}


@dataclass(frozen=True)
class Counted:
    """`verdict` is "accepted", "duplicate" or the reason of a quarantine; of an empty one `number`
    is that of batches."""

    hour_us: int
    source: str
    owner: str
    verdict: str
    number: int


class Counts:
    def __init__(self, store: Database, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def by_hour(self, hours: int) -> list[Counted]:
        """The newest hours, the present one among them, oldest first."""
        present = now_us(self._clock) // HOUR_US
        wanted = (
            select(counts)
            .where(counts.c.hour_us > (present - hours) * HOUR_US)
            .order_by(counts.c.hour_us, counts.c.source, counts.c.owner, counts.c.verdict)
        )
        with self._store.reading() as connection:
            return [Counted(*row) for row in connection.execute(wanted)]


def add_counts(
    connection: Connection, moment_us: int, numbers: Mapping[tuple[str, str, str], int]
) -> None:
    """Add numbers by (source, owner, verdict) to the hour of a moment, in the caller's
    transaction."""
    hour_us = moment_us // HOUR_US * HOUR_US
    connection.execute(
        _ADD[connection.dialect.name],
        [
            {
                "hour_us": hour_us,
                "source": source,
                "owner": owner,
                "verdict": verdict,
                "number": number,
            }
            for (source, owner, verdict), number in sorted(numbers.items())
        ],
    )
