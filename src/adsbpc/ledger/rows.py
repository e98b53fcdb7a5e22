"""Reading, checking and adding rows within a transaction that somebody else has begun."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from itertools import groupby
from typing import Any
from uuid import uuid4

from pydantic_core import from_json
from sqlalchemy import Connection, Row, Select, and_, bindparam, func, insert, or_, select

from adsbpc.errors import BudgetError, LedgerError, TermsError
from adsbpc.ledger.entries import Entry, entries, hash_of
from adsbpc.ledger.marks import Mark
from adsbpc.ledger.records import CampaignRecord, Head, Opening, ScopeRecord, Stage
from adsbpc.model import PICO_RHO, Budget, Guarantee, Release, StoredPlan
from adsbpc.model.formats import format_of
from adsbpc.model.periods import parts_of

# Of the bodies of campaigns and states; earlier versions wrote no number and the same otherwise.
PLAN_FORMAT, STATE_FORMAT = 1, 1
_BODY_FORMATS = {"campaign": PLAN_FORMAT, "state": STATE_FORMAT}


def entries_of(scope: str, kind: str, *columns: Any) -> Select[Any]:
    return select(*columns).where(entries.c.scope == scope, entries.c.kind == kind)


def bodies_of(scope: str, kind: str) -> Select[Any]:
    """Whole rows, for `body_of`."""
    return entries_of(scope, kind, *entries.columns)


def body_of(row: Row[Any]) -> str:
    """The body of an entry, if it is what was written: nothing goes on from another."""
    if hash_of(row.body) != row.body_hash:
        named = {"scope": f"scope {row.scope!r}", "campaign": f"campaign {row.campaign!r}"}
        what = named.get(row.kind, f"{row.kind} of slot {row.slot} of campaign {row.campaign!r}")
        raise LedgerError(
            f"the entry {row.position} of the ledger ({what}) is not what was written. Release "
            "nothing more, keep a copy of the ledger, and restore it from a backup. "
            "Run adsbpc status --verify"
        )
    return str(row.body)


def content_of(row: Row[Any]) -> dict[str, Any]:
    """A body that is an object."""
    try:
        # In half the time of Python's own: all state is read at every slot.
        content = from_json(body_of(row))
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise LedgerError("an entry of the ledger cannot be read. Run adsbpc status --verify")
    try:
        format_of(content, _BODY_FORMATS.get(row.kind, 1))
    except ValueError as error:
        raise LedgerError(
            f"the entry {row.position} of the ledger ({row.kind}) has {error}"
        ) from None
    return content


def scope_record(connection: Connection, scope: str) -> ScopeRecord | None:
    found = connection.execute(bodies_of(scope, "scope")).one_or_none()
    if found is None:
        return None
    return ScopeRecord(found.pico_rho, str(content_of(found).get("adjacency")), found.hash)


def scope_key(connection: Connection, scope: str) -> str:
    """SECRET: the nonce of the scope, which proves that something is this ledger's."""
    found = connection.execute(bodies_of(scope, "scope")).one_or_none()
    nonce = None if found is None else content_of(found).get("nonce")
    if nonce is None:
        raise LedgerError(
            f"scope {scope!r} is not in this ledger, or has no nonce. Restore a backup that has it"
        )
    return str(nonce)


def mark_of(connection: Connection, scope: str) -> Mark | None:
    """What a mark would say of the scope now; None if there is no such scope."""
    record = scope_record(connection, scope)
    if record is None:
        return None
    wanted = entries_of(scope, "release", entries.c.campaign, entries.c.body_hash)
    campaigns: dict[str, tuple[str, ...]] = {}
    found = connection.execute(wanted.order_by(entries.c.campaign, entries.c.slot))
    for campaign, released in groupby(found, key=lambda row: str(row.campaign)):
        campaigns[campaign] = tuple(row.body_hash for row in released)
    spent = sum_of(connection, scope, "charge")
    return Mark(scope, head_of(connection, scope), record.identity, spent, campaigns)


def campaign_record(connection: Connection, scope: str, campaign: str) -> CampaignRecord | None:
    wanted = bodies_of(scope, "campaign").where(entries.c.campaign == campaign)
    found = connection.execute(wanted).one_or_none()
    if found is None:
        return None
    body = content_of(found)
    plan = StoredPlan.from_object(body)
    returned = returned_by(connection, scope, campaign)
    reserved = found.pico_rho - (returned or 0)
    erased = connection.execute(
        entries_of(scope, "erase", entries.c.position).where(entries.c.campaign == campaign)
    ).one_or_none()
    return CampaignRecord(
        reserved, body.get("promise", {}), plan, returned is not None, erased is not None
    )


def stored_release(connection: Connection, scope: str, campaign: str, slot: int) -> str | None:
    wanted = bodies_of(scope, "release").where(
        entries.c.campaign == campaign, entries.c.slot == slot
    )
    found = connection.execute(wanted).one_or_none()
    return None if found is None else body_of(found)


def slot_rows(
    connection: Connection, scope: str, campaign: str, kind: str, after: int = 0
) -> list[Row[Any]]:
    """Whole rows of a campaign's slots after one, in order."""
    wanted = bodies_of(scope, kind).where(entries.c.campaign == campaign, entries.c.slot > after)
    return list(connection.execute(wanted.order_by(entries.c.slot)))


def last_slot(connection: Connection, scope: str, campaign: str) -> int:
    wanted = entries_of(scope, "release", func.coalesce(func.max(entries.c.slot), 0))
    return int(connection.execute(wanted.where(entries.c.campaign == campaign)).scalar_one())


def stage_of(
    connection: Connection, scope: str, campaign: str, through: Mapping[str, int] | None
) -> Stage:
    """Without any body: who shows many campaigns asks it of each."""
    given: dict[str, Any] = {"scope": scope, "campaign": campaign}
    for place, (name, slot) in enumerate((through or {}).items()):
        given |= {f"name_{place}": name, f"slot_{place}": slot}
    rows = connection.execute(_stage(len(through or {})), given)
    found = {kind: (slot, largest, int(total)) for kind, slot, largest, total in rows}
    return Stage(
        started="campaign" in found,
        closed="close" in found,
        last_slot=found.get("release", (0, 0, 0))[0],
        scope_limit=found.get("scope", (0, 0, 0))[1],
        scope_spent=found.get("charge", (0, 0, 0))[2],
    )


@cache
def _stage(names: int) -> Select[Any]:
    """Written once: that takes longer than to run it."""
    charges = [entries.c.kind == "charge"]
    for place in range(names):
        other = entries.c.campaign != bindparam(f"name_{place}")
        charges.append(other | (entries.c.slot <= bindparam(f"slot_{place}")))
    own = and_(
        entries.c.campaign == bindparam("campaign"),
        entries.c.kind.in_(("campaign", "close", "release")),
    )
    pico_rho = entries.c.pico_rho
    return (
        select(entries.c.kind, func.max(entries.c.slot), func.max(pico_rho), func.sum(pico_rho))
        .where(
            entries.c.scope == bindparam("scope"),
            or_(entries.c.kind == "scope", own, and_(*charges)),
        )
        .group_by(entries.c.kind)
    )


def head_of(connection: Connection, scope: str) -> Head:
    newest = (
        select(entries.c.position, entries.c.hash)
        .where(entries.c.scope == scope)
        .order_by(entries.c.position.desc())
        .limit(1)
    )
    return Head(*(connection.execute(newest).one_or_none() or (0, "")))


def hash_at(connection: Connection, scope: str, position: int) -> str | None:
    wanted = select(entries.c.hash).where(entries.c.scope == scope, entries.c.position == position)
    return connection.execute(wanted).scalar_one_or_none()


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


def reserved_in(connection: Connection, scope: str) -> int:
    """By campaigns that have started, without what those returned that ended early."""
    return sum_of(connection, scope, "campaign") - sum_of(connection, scope, "close")


def budgets_of(connection: Connection, scope: str, campaign: str) -> tuple[Budget, Budget]:
    """The campaign's and the scope's."""
    shared, own = scope_record(connection, scope), campaign_record(connection, scope, campaign)
    if shared is None or own is None:
        raise not_started(scope, campaign)
    return (
        Budget(own.reserved_pico_rho, sum_of(connection, scope, "charge", campaign)),
        Budget(shared.limit_pico_rho, sum_of(connection, scope, "charge")),
    )


def not_started(scope: str, campaign: str) -> LedgerError:
    return LedgerError(
        f"campaign {campaign!r} of scope {scope!r} has not started in this ledger. "
        "Release its first slot"
    )


def open_campaign(connection: Connection, opening: Opening) -> None:
    """Open the scope if it is new, and reserve the campaign's budget in it."""
    guarantee, scope = opening.guarantee, opening.guarantee.scope
    if campaign_record(connection, scope, opening.campaign) is not None:
        raise LedgerError(
            f"campaign {opening.campaign!r} was started by another process meanwhile, and follows "
            "the plan of that one. Nothing was released or charged: run it again"
        )
    check_room(connection, opening)
    if scope_record(connection, scope) is None:
        terms = {
            "adjacency": guarantee.adjacency.value,
            "unit": guarantee.unit,
            "nonce": uuid4().hex,
        }
        append(connection, scope, "scope", pico_rho=opening.limit, body=json.dumps(terms))
    body = {"format": PLAN_FORMAT, "promise": opening.promise, **asdict(opening.plan)}
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
            raise TermsError(
                f"scope {scope!r}: this ledger has a scope {twin!r}, which differs in capitals "
                "only and has a budget of its own. Write it the same way"
            )
        _check_renewal(connection, scope)
        return
    check_terms(record, opening.guarantee, opening.scope_limit)
    if campaign_record(connection, scope, opening.campaign) is not None:
        # Another process has started it meanwhile, in room of its own.
        return
    check_fits(opening, reserved_in(connection, scope), record.limit_pico_rho)


def _check_renewal(connection: Connection, scope: str) -> None:
    """Refuse a scope in which people would have another budget than the one that is promised to
    them: periods of one kind follow one another, and nothing else measures the same people."""
    base, period = parts_of(scope)
    for name in connection.execute(select(entries.c.scope).distinct()).scalars():
        other, theirs = parts_of(name)
        kinds = [None if each is None else each.renewal for each in (period, theirs)]
        if other.casefold() == base.casefold() and kinds[0] != kinds[1]:
            renews = ["never renew" if kind is None else f"renew every {kind}" for kind in kinds]
            raise TermsError(
                f"scope {scope!r}: budgets would {renews[0]}, and in scope {name!r} of this ledger "
                f"they {renews[1]}: people would have more than either promises. Keep "
                "[campaign] renewal as it was, or measure other people under another scope"
            )


def returned_by(connection: Connection, scope: str, campaign: str) -> int | None:
    """What a campaign that was closed returned; None if it is open."""
    wanted = entries_of(scope, "close", entries.c.pico_rho)
    return connection.execute(wanted.where(entries.c.campaign == campaign)).scalar_one_or_none()


def close_campaign(connection: Connection, scope: str, campaign: str) -> int:
    """Return what a campaign has reserved and not spent, once and for good; how much that was."""
    before = returned_by(connection, scope, campaign)
    if before is not None:
        return before
    own, _ = budgets_of(connection, scope, campaign)
    returned = own.limit_pico_rho - own.spent_pico_rho
    slot = last_slot(connection, scope, campaign)
    append(connection, scope, "close", campaign=campaign, slot=slot, pico_rho=returned)
    return returned


def erase_books(connection: Connection, scope: str, campaign: str) -> None:
    """Note, once, that the books of a closed campaign are no longer kept. Of one that may release
    another slot they are needed: without them everybody would have a new budget."""
    record = campaign_record(connection, scope, campaign)
    if record is None or not record.closed:
        raise TermsError(
            f"campaign {campaign!r}: may still release, and its books say what people have spent. "
            "Close it first"
        )
    if not record.erased:
        slot = last_slot(connection, scope, campaign)
        append(connection, scope, "erase", campaign=campaign, slot=slot)


def check_open(connection: Connection, scope: str, campaign: str) -> None:
    record = campaign_record(connection, scope, campaign)
    if record is not None and record.closed:
        last = last_slot(connection, scope, campaign)
        raise TermsError(
            f"campaign {campaign!r} was closed after slot {last}, and what it had not spent went "
            "back to its scope: nothing more is released of it. Start a new campaign under another "
            "name"
        )


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
        raise TermsError(
            f"scope {scope!r} promises adjacency {record.adjacency!r}, and this campaign "
            f"{guarantee.adjacency.value!r}: the two do not add up. Use the scope's adjacency, or "
            "another scope"
        )
    if limit is not None and int(limit * PICO_RHO) != record.limit_pico_rho:
        raise TermsError(
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
