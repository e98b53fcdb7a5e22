"""Up to when arrivals are closed: what is stored later counts as arrived later.

A slot is released from what is stored by then. Nothing may be stored afterwards as arrived in it,
whatever clocks do and however long a disk takes: it would be acknowledged and never counted.
"""

from __future__ import annotations

from sqlalchemy import Connection, insert, select, update

from adsbpc.ledger.database import Database
from adsbpc.service.event_files import LOCK
from adsbpc.service.store import arrivals

_EVENTS = "events"
# Made once: every group of batches asks it.
_CLOSED_UNTIL = select(arrivals.c.closed_until_us).where(arrivals.c.name == _EVENTS)


def close_arrivals(store: Database, until_us: int) -> None:
    """From now on nothing is stored as arrived before this moment."""
    with store.writing(LOCK) as connection:
        known = _known(connection)
        if known is None:
            connection.execute(insert(arrivals).values(name=_EVENTS, closed_until_us=until_us))
        elif known < until_us:
            connection.execute(update(arrivals).values(closed_until_us=until_us))


def closed_until(connection: Connection) -> int:
    """Inside a transaction that holds LOCK: it stays so until that ends."""
    return _known(connection) or 0


def _known(connection: Connection) -> int | None:
    return connection.execute(_CLOSED_UNTIL).scalar_one_or_none()
