"""Reading, checking and adding rows within a transaction that somebody else has begun."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, Select, func, insert, select

from adsbpc.errors import BudgetError, LedgerError
from adsbpc.ledger.entries import Entry, entries, hash_of
from adsbpc.ledger.records import CampaignRecord, Head, Opening, ScopeRecord, StoredPlan
from adsbpc.model import PICO_RHO, Budget, Guarantee, Release


def entries_of(scope: str, kind: str, *columns: Any) -> Select[Any]:
    return select(*columns).where(entries.c.scope == scope, entries.c.kind == kind)


def content_of(body: str) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise LedgerError("an entry of the ledger cannot be read. Run adsbpc status --verify")
    return content


def scope_record(connection: Connection, scope: str) -> ScopeRecord | None:
    wanted = entries_of(scope, "scope", entries.c.pico_rho, entries.c.body, entries.c.hash)
    found = connection.execute(wanted).one_or_none()
    if found is None:
        return None
    limit, body, identity = found
    return ScopeRecord(limit, str(content_of(body).get("adjacency")), identity)


def campaign_record(connection: Connection, scope: str, campaign: str) -> CampaignRecord | None:
    wanted = entries_of(scope, "campaign", entries.c.pico_rho, entries.c.body)
    found = connection.execute(wanted.where(entries.c.campaign == campaign)).one_or_none()
    if found is None:
        return None
    reserved, body = found[0], content_of(found[1])
    plan = StoredPlan(
        tuple(body.get("slot_pico_rho", ())),
        tuple(tuple(row) for row in body.get("strategy", ())),
        body.get("start"),
        body.get("fit"),
    )
    return CampaignRecord(reserved, body.get("promise", {}), plan)


def stored_release(connection: Connection, scope: str, campaign: str, slot: int) -> str | None:
    wanted = entries_of(scope, "release", entries.c.body, entries.c.body_hash).where(
        entries.c.campaign == campaign, entries.c.slot == slot
    )
    found = connection.execute(wanted).one_or_none()
    if found is not None and hash_of(found[0]) != found[1]:
        raise LedgerError(
            f"the release of slot {slot} is not what was written. Run adsbpc status --verify"
        )
    return None if found is None else str(found[0])


def last_slot(connection: Connection, scope: str, campaign: str) -> int:
    wanted = entries_of(scope, "release", func.coalesce(func.max(entries.c.slot), 0))
    return int(connection.execute(wanted.where(entries.c.campaign == campaign)).scalar_one())


def head_of(connection: Connection, scope: str) -> Head:
    newest = (
        select(entries.c.position, entries.c.hash)
        .where(entries.c.scope == scope)
        .order_by(entries.c.position.desc())
        .limit(1)
    )
    return Head(*(connection.execute(newest).one_or_none() or (0, "")))


def sum_of(
    connection: Connection,
    scope: str,
    kind: str,
    campaign: str | None = None,
    through: Mapping[str, int] | None = None,
) -> int:
    """Of all campaigns or one; without slots after those that `through` names, by campaign."""
    wanted = entries_of(scope, kind, func.coalesce(func.sum(entries.c.pico_rho), 0))
    if campaign is not None:
        wanted = wanted.where(entries.c.campaign == campaign)
    for name, slot in (through or {}).items():
        wanted = wanted.where((entries.c.campaign != name) | (entries.c.slot <= slot))
    return int(connection.execute(wanted).scalar_one())


def budgets_of(
    connection: Connection, scope: str, campaign: str, through: Mapping[str, int] | None = None
) -> tuple[Budget, Budget]:
    shared, own = scope_record(connection, scope), campaign_record(connection, scope, campaign)
    if shared is None or own is None:
        raise LedgerError(
            f"campaign {campaign!r} of scope {scope!r} has not started in this ledger. "
            "Release its first slot"
        )
    return (
        Budget(own.reserved_pico_rho, sum_of(connection, scope, "charge", campaign, through)),
        Budget(shared.limit_pico_rho, sum_of(connection, scope, "charge", through=through)),
    )


def open_campaign(connection: Connection, opening: Opening) -> None:
    """Open the scope if it is new, and reserve the campaign's budget in it."""
    guarantee, scope = opening.guarantee, opening.guarantee.scope
    if campaign_record(connection, scope, opening.campaign) is not None:
        raise LedgerError(
            f"campaign {opening.campaign!r} was started by another process meanwhile, and runs by "
            "that one's plan. Nothing was released or charged: run it again"
        )
    check_room(connection, opening)
    if scope_record(connection, scope) is None:
        terms = {
            "adjacency": guarantee.adjacency.value,
            "unit": guarantee.unit,
            "nonce": uuid4().hex,
        }
        append(connection, scope, "scope", pico_rho=opening.limit, body=json.dumps(terms))
    body = {"promise": opening.promise, **asdict(opening.plan)}
    append(
        connection, scope, "campaign",
        campaign=opening.campaign, pico_rho=opening.reserved, body=json.dumps(body),
    )  # fmt: skip


def check_room(connection: Connection, opening: Opening) -> None:
    scope = opening.guarantee.scope
    record = scope_record(connection, scope)
    if record is None:
        check_fits(opening, 0, opening.limit)
        known = connection.execute(select(entries.c.scope).distinct()).scalars()
        twin = next((name for name in known if name.casefold() == scope.casefold()), None)
        if twin is not None:
            raise LedgerError(
                f"scope {scope!r}: this ledger has a scope {twin!r}, which differs in capitals "
                "only and has a budget of its own. Write it the same way"
            )
        return
    check_terms(record, opening.guarantee, opening.scope_limit)
    if campaign_record(connection, scope, opening.campaign) is not None:
        # Another process has started it meanwhile, in room of its own.
        return
    check_fits(opening, sum_of(connection, scope, "campaign"), record.limit_pico_rho)


def check_fits(opening: Opening, reserved: int, limit: int) -> None:
    if reserved + opening.reserved > limit:
        raise _overspent(
            f"scope {opening.guarantee.scope!r} has no room for campaign {opening.campaign!r} "
            "beside what others have reserved",
            opening.reserved, reserved, limit,
            "Lower [privacy] rho. Another scope is another promise to the same people",
        )  # fmt: skip


def check_charges(connection: Connection, release: Release) -> None:
    scope, campaign, slot = release.scope, release.campaign, release.slot
    requested = sum(charge.pico_rho for charge in release.charges)
    own, shared = budgets_of(connection, scope, campaign)
    for whose, budget in ((f"campaign {campaign!r}", own), (f"scope {scope!r}", shared)):
        if budget.spent_pico_rho + requested > budget.limit_pico_rho:
            raise _overspent(
                f"slot {slot} would pass the limit of {whose}",
                requested, budget.spent_pico_rho, budget.limit_pico_rho,
                "Nothing was released or charged",
            )  # fmt: skip


def check_terms(record: ScopeRecord, guarantee: Guarantee, limit: Fraction | None) -> None:
    scope = guarantee.scope
    if record.adjacency != guarantee.adjacency.value:
        raise LedgerError(
            f"scope {scope!r} promises adjacency {record.adjacency!r}, and this campaign "
            f"{guarantee.adjacency.value!r}: the two do not add up. Use the scope's adjacency, or "
            "another scope"
        )
    if limit is not None and int(limit * PICO_RHO) != record.limit_pico_rho:
        raise LedgerError(
            f"scope {scope!r} has a limit of {record.limit_pico_rho / PICO_RHO:.12g}, and [privacy]"
            f" scope_rho says {float(limit):.12g}. A limit that was promised stays: put it back"
        )


def _overspent(whose: str, requested: int, spent: int, limit: int, to_do: str) -> BudgetError:
    return BudgetError(
        whose, requested / PICO_RHO, spent / PICO_RHO, (limit - spent) / PICO_RHO, to_do
    )


def append(
    connection: Connection,
    scope: str,
    kind: str,
    campaign: str = "",
    slot: int = 0,
    part: str = "",
    pico_rho: int = 0,
    body: str = "",
) -> None:
    before = head_of(connection, scope)
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    entry = Entry(
        scope, before.position + 1, kind, campaign, slot, part, pico_rho, hash_of(body), now
    )
    row = {**asdict(entry), "body": body, "hash": entry.sealed(before.hash)}
    connection.execute(insert(entries).values(**row))
