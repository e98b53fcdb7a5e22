"""The ledger: what each scope may spend, what was charged, what was released. It cannot be
overspent.

Must never: change or delete an entry, charge what the limit does not hold, or accept a release
whose noise came from a seed.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, func, insert, select

from adsbpc.errors import BudgetError, LedgerError
from adsbpc.ledger.database import Database
from adsbpc.ledger.entries import Entry, entries
from adsbpc.ledger.seal import broken_seal, write_seal
from adsbpc.model import PICO_RHO, Budget, Guarantee, Release

# The only source of noise that a release may come from: OpenDP over the system's randomness.
_TRUSTED_RANDOMNESS = "opendp"


@dataclass(frozen=True)
class ScopeRecord:
    """`identity` is unique to this opening of the scope: a ledger begun afresh has another."""

    limit_pico_rho: int
    adjacency: str
    identity: str


@dataclass(frozen=True)
class CampaignRecord:
    """What a campaign promised when it started."""

    reserved_pico_rho: int
    promise: dict[str, Any]
    slot_pico_rho: tuple[int, ...]


class Ledger:
    """Every method is a transaction of its own."""

    def __init__(self, location: str, directory: Path) -> None:
        self._database = Database(location, directory)
        self.where = self._database.where

    def exists(self) -> bool:
        return self._database.exists()

    # ---- what stands in it ---------------------------------------------------------------------

    def scope(self, scope: str) -> ScopeRecord | None:
        with self._database.reading() as connection:
            return _scope(connection, scope)

    def campaign(self, scope: str, campaign: str) -> CampaignRecord | None:
        with self._database.reading() as connection:
            return _campaign(connection, scope, campaign)

    def budgets(self, scope: str, campaign: str) -> tuple[Budget, Budget]:
        """The campaign's and the scope's, of a campaign that has started."""
        with self._database.reading() as connection:
            return _budgets(connection, scope, campaign)

    def release(self, scope: str, campaign: str, slot: int) -> str | None:
        """The stored release of a slot, byte for byte."""
        with self._database.reading() as connection:
            return _release(connection, scope, campaign, slot)

    def releases(self, scope: str, campaign: str) -> list[str]:
        """All stored releases in order."""
        return self._bodies(scope, campaign, "release")

    def steps(self, scope: str, campaign: str, after: int = 0) -> list[dict[str, Any]]:
        """SECRET: what each slot after one added to the mechanism's state, in order."""
        return [_content(body) for body in self._bodies(scope, campaign, "state", after)]

    def last_slot(self, scope: str, campaign: str) -> int:
        """The newest released slot, or 0."""
        with self._database.reading() as connection:
            return _last_slot(connection, scope, campaign)

    def spent(self, scope: str) -> int:
        """Everything that was charged to a scope, in pico-rho."""
        with self._database.reading() as connection:
            return _sum(connection, scope, "charge")

    def check_scope(self, guarantee: Guarantee, scope_limit: Fraction | None) -> None:
        """Refuse a campaign file that says other terms of its scope than were promised."""
        record = self.scope(guarantee.scope)
        if record is not None:
            _check_terms(record, guarantee, scope_limit)

    def _bodies(self, scope: str, campaign: str, kind: str, after: int = 0) -> list[str]:
        wanted = _of(scope, kind, entries.c.body).where(
            entries.c.campaign == campaign, entries.c.slot > after
        )
        with self._database.reading() as connection:
            return list(connection.execute(wanted.order_by(entries.c.slot)).scalars())

    # ---- what is added -------------------------------------------------------------------------

    def start(
        self,
        guarantee: Guarantee,
        campaign: str,
        promise: dict[str, Any],
        slot_pico_rho: tuple[int, ...],
        scope_limit: Fraction | None,
    ) -> CampaignRecord:
        """Open the scope if it is new, and reserve the campaign's budget in it, once.

        Whoever comes second gets what the first one recorded.
        """
        self._database.bring_up_to_date()
        scope, reserved = guarantee.scope, int(guarantee.rho * PICO_RHO)
        with self._database.writing(scope) as connection:
            record = _scope(connection, scope)
            if record is None:
                terms = {
                    "adjacency": guarantee.adjacency.value,
                    "unit": guarantee.unit,
                    "nonce": secrets.token_hex(16),
                }
                limit = int((scope_limit or guarantee.rho) * PICO_RHO)
                _append(connection, scope, "scope", pico_rho=limit, body=json.dumps(terms))
                record = _scope(connection, scope)
                assert record is not None
            _check_terms(record, guarantee, scope_limit)
            known = _campaign(connection, scope, campaign)
            if known is not None:
                return known
            taken = _sum(connection, scope, "campaign")
            if taken + reserved > record.limit_pico_rho:
                raise _overspent(
                    f"scope {scope!r} cannot hold campaign {campaign!r}",
                    reserved, taken, record.limit_pico_rho,
                    "Lower [privacy] rho, or measure under another scope if the promises of the "
                    "two need not add up",
                )  # fmt: skip
            body = {"promise": promise, "slot_pico_rho": slot_pico_rho}
            _append(
                connection, scope, "campaign",
                campaign=campaign, pico_rho=reserved, body=json.dumps(body),
            )  # fmt: skip
            known = _campaign(connection, scope, campaign)
            assert known is not None
            return known

    def commit(self, release: Release, step: dict[str, Any]) -> tuple[str, bool]:
        """Charge a slot and keep its state and its release, all or nothing.

        Returns the release that stands, and whether it is this one: of several processes that
        release a slot, the first to commit wins and the others return its release.
        """
        scope, campaign, slot = release.scope, release.campaign, release.slot
        if release.randomness != _TRUSTED_RANDOMNESS:
            raise LedgerError(
                f"slot {slot} of campaign {campaign!r}: its noise came from "
                f"{release.randomness!r}, which hides nobody. Release with SecureRandomness"
            )
        with self._database.writing(scope) as connection:
            stored = _release(connection, scope, campaign, slot)
            if stored is not None:
                return stored, False
            expected = _last_slot(connection, scope, campaign) + 1
            if slot != expected:
                raise LedgerError(
                    f"slot {slot} of campaign {campaign!r}: slots are released in order, and slot "
                    f"{expected} is next. Release that one first"
                )
            requested = sum(charge.pico_rho for charge in release.charges)
            owners = ("campaign", "scope")
            for owner, budget in zip(owners, _budgets(connection, scope, campaign), strict=True):
                if budget.spent_pico_rho + requested > budget.limit_pico_rho:
                    name = campaign if owner == "campaign" else scope
                    raise _overspent(
                        f"slot {slot} would pass the limit of {owner} {name!r}",
                        requested, budget.spent_pico_rho, budget.limit_pico_rho,
                        "Nothing was released or charged",
                    )  # fmt: skip
            for charge in release.charges:
                _append(
                    connection, scope, "charge",
                    campaign=campaign, slot=slot, part=charge.part, pico_rho=charge.pico_rho,
                )  # fmt: skip
            _append(connection, scope, "state", campaign=campaign, slot=slot, body=json.dumps(step))
            text = release.to_text()
            _append(connection, scope, "release", campaign=campaign, slot=slot, body=text)
            return text, True

    # ---- whether it was changed ----------------------------------------------------------------

    def verify(self, scope: str) -> Verification:
        """Recompute the chain of hashes of a scope, and let the database check its own file."""
        damage = self._database.damage()
        if damage is not None:
            return Verification(0, "", f"the database reports: {damage}")
        ordered = select(entries).where(entries.c.scope == scope).order_by(entries.c.position)
        previous, count, spent, limit = "", 0, 0, 0
        try:
            with self._database.reading() as connection:
                for *fields, sealed in connection.execute(ordered):
                    entry = Entry(*fields)
                    count += 1
                    if entry.position != count or entry.sealed(previous) != sealed:
                        return Verification(
                            count - 1, previous,
                            f"entry {count} ({entry.kind} of slot {entry.slot}) is not what was "
                            "written",
                        )  # fmt: skip
                    previous = sealed
                    limit += entry.pico_rho if entry.kind == "scope" else 0
                    spent += entry.pico_rho if entry.kind == "charge" else 0
        except LedgerError as error:
            return Verification(count, previous, str(error))
        if spent > limit:
            return Verification(count, previous, f"{spent} pico-rho were charged, above {limit}")
        file = self._database.file
        broken = None if file is None else broken_seal(file, self._size())
        return Verification(count, previous, broken)

    def seal(self) -> None:
        """Note a hash of the whole file, where it is one, at the end of a run that wrote to it."""
        if self._database.file is not None:
            write_seal(self._database.file, self._size())

    def _size(self) -> int:
        with self._database.reading() as connection:
            return connection.execute(select(func.count()).select_from(entries)).scalar_one()


@dataclass(frozen=True)
class Verification:
    """`head` is the hash of the last entry: noted elsewhere, it also shows entries cut off."""

    entries: int
    head: str
    problem: str | None


def _of(scope: str, kind: str, *columns: Any) -> Select[Any]:
    return select(*columns).where(entries.c.scope == scope, entries.c.kind == kind)


def _content(body: str) -> dict[str, Any]:
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise LedgerError("an entry of the ledger cannot be read. Run adsbpc status --verify")
    return content


def _scope(connection: Connection, scope: str) -> ScopeRecord | None:
    wanted = _of(scope, "scope", entries.c.pico_rho, entries.c.body, entries.c.hash)
    found = connection.execute(wanted).one_or_none()
    if found is None:
        return None
    limit, body, identity = found
    return ScopeRecord(limit, str(_content(body).get("adjacency")), identity)


def _campaign(connection: Connection, scope: str, campaign: str) -> CampaignRecord | None:
    wanted = _of(scope, "campaign", entries.c.pico_rho, entries.c.body)
    found = connection.execute(wanted.where(entries.c.campaign == campaign)).one_or_none()
    if found is None:
        return None
    reserved, body = found[0], _content(found[1])
    return CampaignRecord(reserved, body.get("promise", {}), tuple(body.get("slot_pico_rho", ())))


def _release(connection: Connection, scope: str, campaign: str, slot: int) -> str | None:
    wanted = _of(scope, "release", entries.c.body).where(
        entries.c.campaign == campaign, entries.c.slot == slot
    )
    return connection.execute(wanted).scalar_one_or_none()


def _last_slot(connection: Connection, scope: str, campaign: str) -> int:
    wanted = _of(scope, "release", func.coalesce(func.max(entries.c.slot), 0))
    return int(connection.execute(wanted.where(entries.c.campaign == campaign)).scalar_one())


def _sum(connection: Connection, scope: str, kind: str, campaign: str | None = None) -> int:
    wanted = _of(scope, kind, func.coalesce(func.sum(entries.c.pico_rho), 0))
    if campaign is not None:
        wanted = wanted.where(entries.c.campaign == campaign)
    return int(connection.execute(wanted).scalar_one())


def _budgets(connection: Connection, scope: str, campaign: str) -> tuple[Budget, Budget]:
    shared, own = _scope(connection, scope), _campaign(connection, scope, campaign)
    if shared is None or own is None:
        raise LedgerError(
            f"campaign {campaign!r} of scope {scope!r} has not started in this ledger. "
            "Release its first slot"
        )
    return (
        Budget(own.reserved_pico_rho, _sum(connection, scope, "charge", campaign)),
        Budget(shared.limit_pico_rho, _sum(connection, scope, "charge")),
    )


def _append(
    connection: Connection,
    scope: str,
    kind: str,
    campaign: str = "",
    slot: int = 0,
    part: str = "",
    pico_rho: int = 0,
    body: str = "",
) -> None:
    newest = (
        select(entries.c.position, entries.c.hash)
        .where(entries.c.scope == scope)
        .order_by(entries.c.position.desc())
        .limit(1)
    )
    position, previous = connection.execute(newest).one_or_none() or (0, "")
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    entry = Entry(scope, position + 1, kind, campaign, slot, part, pico_rho, body, now)
    connection.execute(insert(entries).values(**asdict(entry), hash=entry.sealed(previous)))


def _check_terms(record: ScopeRecord, guarantee: Guarantee, limit: Fraction | None) -> None:
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
            f" scope_rho says {float(limit):.12g}. A limit that was promised stays: put it back, "
            "or use another scope"
        )


def _overspent(whose: str, requested: int, spent: int, limit: int, to_do: str) -> BudgetError:
    return BudgetError(
        whose, requested / PICO_RHO, spent / PICO_RHO, (limit - spent) / PICO_RHO, to_do
    )
