"""The ledger at one moment, as far as one campaign is concerned: all that is shown follows from
it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from adsbpc.ledger import rows
from adsbpc.ledger.marks import Mark
from adsbpc.ledger.records import CampaignRecord, ScopeRecord


@dataclass(frozen=True)
class Snapshot:
    """`scope` and `campaign` are None before they have started. `scope_reserved` is what campaigns
    of the scope that have started may spend, in pico-rho. `mark` is what the world may have
    seen of the scope, `releases` are the campaign's, byte for byte, in order. What was spent, in
    pico-rho, may be that of earlier slots."""

    scope: ScopeRecord | None = None
    campaign: CampaignRecord | None = None
    mark: Mark | None = None
    releases: tuple[str, ...] = ()
    campaign_spent: int = 0
    scope_spent: int = 0
    scope_reserved: int = 0


def snapshot_of(
    connection: Connection, scope: str, campaign: str, through: Mapping[str, int] | None
) -> Snapshot:
    shared = rows.scope_record(connection, scope)
    own = rows.campaign_record(connection, scope, campaign)
    if own is not None and shared is None:
        raise rows.not_started(scope, campaign)
    texts = [rows.body_of(row) for row in rows.slot_rows(connection, scope, campaign, "release")]
    return Snapshot(
        shared,
        own,
        rows.mark_of(connection, scope),
        tuple(texts if through is None else texts[: through[campaign]]),
        rows.sum_of(connection, scope, "charge", campaign, through),
        rows.sum_of(connection, scope, "charge", through=through),
        rows.reserved_in(connection, scope),
    )
