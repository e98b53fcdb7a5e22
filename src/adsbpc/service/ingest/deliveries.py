"""What a sender has sent, and what became of it: its own batches and rows, and nobody else's.

Must never: tell a sender anything that follows from what others send.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from adsbpc.errors import did_you_mean
from adsbpc.ledger.database import Database
from adsbpc.model.slots import to_moment
from adsbpc.service.ingest.batches import Answer, Counts, HourlyCount, unpacked_answer
from adsbpc.service.store import batches

_MOST_BATCHES = 50


@dataclass(frozen=True)
class Delivery:
    """A batch, and the answer that it got."""

    source: str
    arrived_at: datetime
    answer: Answer


@dataclass(frozen=True)
class UnknownAdvertiser:
    """An advertiser in rows of the newest batches that no campaign has which counts this publisher
    by name; `hint` is the name of one that is close, if there is any."""

    advertiser: str
    rows: int
    hint: str


@dataclass(frozen=True)
class Deliveries:
    """The newest batches, and rows of some hours by verdict."""

    newest: tuple[Delivery, ...]
    rows: dict[str, int]
    reasons: dict[str, int]
    unknown: tuple[UnknownAdvertiser, ...]

    @property
    def last_seen(self) -> datetime | None:
        return self.newest[0].arrived_at if self.newest else None

    @property
    def last_event(self) -> datetime | None:
        """The newest moment of an accepted row."""
        found = [each.answer.last_event for each in self.newest if each.answer.last_event]
        return max(found, default=None)


def deliveries_of(
    store: Database, counts: Counts, owner: str, hours: int, known: Iterable[str] | None
) -> Deliveries:
    """`known` are the advertisers that the sender's rows may be of, None if there is only one."""
    columns = batches.c
    wanted = (
        select(columns.source, columns.arrived_us, columns.answer)
        .where(columns.owner == owner)
        .order_by(columns.arrived_us.desc(), columns.batch_key)
        .limit(_MOST_BATCHES)
    )
    with store.reading() as connection:
        newest = tuple(
            Delivery(row.source, to_moment(row.arrived_us), unpacked_answer(row.answer))
            for row in connection.execute(wanted)
        )
    own = [each for each in counts.by_hour(hours) if each.owner == owner]
    rows, reasons = _by_verdict(own)
    unknown = () if known is None else _unknown(newest, list(known))
    return Deliveries(newest, rows, reasons, unknown)


def _by_verdict(own: Iterable[HourlyCount]) -> tuple[dict[str, int], dict[str, int]]:
    rows, reasons = Counter[str](), Counter[str]()
    for each in own:
        rows[each.kind] += each.number
        if each.kind == "quarantined":
            reasons[each.verdict] += each.number
    return dict(rows), dict(reasons.most_common())


def _unknown(newest: Iterable[Delivery], known: list[str]) -> tuple[UnknownAdvertiser, ...]:
    sent = Counter[str]()
    for each in newest:
        sent.update(each.answer.advertisers)
    return tuple(
        UnknownAdvertiser(name, rows, did_you_mean(name, known).strip())
        for name, rows in sent.most_common()
        if name not in known
    )


def last_seen(store: Database) -> dict[str, datetime]:
    """When each sender's newest batch came, of those that are remembered: for the operator."""
    wanted = select(batches.c.owner, func.max(batches.c.arrived_us)).group_by(batches.c.owner)
    with store.reading() as connection:
        return {owner: to_moment(moment) for owner, moment in connection.execute(wanted)}
