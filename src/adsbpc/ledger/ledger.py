"""The ledger: what each scope may spend, what was charged, what was released. It cannot be
overspent.

Must never: change or delete an entry, charge what the limit does not hold, or accept a release
whose noise came from a seed.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, func, select

from adsbpc.errors import LedgerError
from adsbpc.ledger import rows
from adsbpc.ledger.database import Database
from adsbpc.ledger.entries import Entry, entries, hash_of
from adsbpc.ledger.marks import Mark
from adsbpc.ledger.provenance import carrying_text, is_committed, is_sealed
from adsbpc.ledger.records import CampaignRecord, Head, Opening, Stage, Verification
from adsbpc.ledger.seal import Extent, broken_seal, write_seal
from adsbpc.ledger.snapshot import Snapshot, snapshot_of
from adsbpc.model import Guarantee, Release

# The only source of noise that a release may come from: OpenDP over the system's randomness.
_TRUSTED_RANDOMNESS = "opendp"
# Bodies are large: so many rows are in memory at a time when all are read.
_ENTRIES_AT_ONCE = 100

P = ParamSpec("P")
T = TypeVar("T")


class Ledger:
    """Every method is a transaction of its own; those that only read find nothing in a ledger that
    is not there yet."""

    def __init__(self, location: str, directory: Path) -> None:
        self._database = Database(location, directory)
        self.where = self._database.where

    def exists(self) -> bool:
        return self._database.exists()

    def _read(
        self,
        missing: T,
        query: Callable[Concatenate[Connection, P], T],
        *about: P.args,
        **named: P.kwargs,
    ) -> T:
        with self._database.standing() as connection:
            return missing if connection is None else query(connection, *about, **named)

    # ---- what stands in it ---------------------------------------------------------------------

    def snapshot(
        self, scope: str, campaign: str, through: Mapping[str, int] | None = None
    ) -> Snapshot:
        """Everything that is shown of a campaign; what was released and spent as it was after the
        slots that `through` names, by campaign."""
        return self._read(Snapshot(), snapshot_of, scope, campaign, through)

    def campaign(self, scope: str, campaign: str) -> CampaignRecord | None:
        return self._read(None, rows.campaign_record, scope, campaign)

    def spent(self, scope: str, through: Mapping[str, int] | None = None) -> int:
        """Everything that was charged to a scope, in pico-rho; by each campaign up to a slot."""
        return self._read(0, rows.sum_of, scope, "charge", through=through)

    def reserved(self, scope: str) -> int:
        """By campaigns that have started, in PICO_RHO."""
        return self._read(0, rows.reserved_in, scope)

    def release(self, scope: str, campaign: str, slot: int) -> str | None:
        """The stored release of a slot, byte for byte."""
        return self._read(None, rows.stored_release, scope, campaign, slot)

    def releases(self, scope: str, campaign: str) -> list[str]:
        """All stored releases in order."""
        found = self._read([], rows.slot_rows, scope, campaign, "release")
        return [rows.body_of(row) for row in found]

    def steps(self, scope: str, campaign: str, after: int = 0) -> list[dict[str, Any]]:
        """SECRET: what each slot after one added to the mechanism's state, in order."""
        found = self._read([], rows.slot_rows, scope, campaign, "state", after)
        steps = [rows.content_of(row) for row in found]
        for step in steps:
            # Of the entry, not of the step; earlier versions wrote neither.
            step.pop("nonce", None)
            step.pop("format", None)
        return steps

    def entries(self, scope: str) -> Iterator[dict[str, Any]]:
        """SECRET: every row of a scope in order, as it stands there, for whoever checks them."""
        wanted = select(entries).where(entries.c.scope == scope).order_by(entries.c.position)
        with self._database.standing() as connection:
            if connection is None:
                return
            streamed = connection.execution_options(yield_per=_ENTRIES_AT_ONCE)
            for row in streamed.execute(wanted).mappings():
                yield dict(row)

    def last_slot(self, scope: str, campaign: str) -> int:
        """The newest released slot, or 0."""
        return self._read(0, rows.last_slot, scope, campaign)

    def stage(self, scope: str, campaign: str, through: Mapping[str, int] | None = None) -> Stage:
        """Without any body. What was spent by each campaign of the scope counts up to the slot that
        `through` names."""
        return self._read(Stage(), rows.stage_of, scope, campaign, through)

    def head(self, scope: str) -> Head:
        return self._read(Head(0, ""), rows.head_of, scope)

    def holds(self, scope: str, head: Head) -> bool:
        """Whether this ledger has, at that position, the entry that was its newest once."""
        return self._read(None, rows.hash_at, scope, head.position) == head.hash

    def mark(self, scope: str) -> Mark | None:
        """What the world may have seen of a scope by now; None if there is no such scope."""
        return self._read(None, rows.mark_of, scope)

    def sealed(self, scope: str, text: str) -> bool:
        """Whether this ledger once wrote a release, byte for byte, even if it was rolled back
        since."""
        with self._database.reading() as connection:
            return is_sealed(text, rows.scope_key(connection, scope))

    def committed(self, release: Release, secret: Any) -> bool:
        """Whether a release that this ledger once wrote left exactly this secret state."""
        with self._database.reading() as connection:
            return is_committed(release, rows.scope_key(connection, release.scope), secret)

    # ---- what is added -------------------------------------------------------------------------

    def check_room(self, opening: Opening) -> None:
        """Refuse a campaign that would not be let in, before any work is done for it."""
        with self._database.standing() as connection:
            if connection is None:
                rows.check_fits(opening, 0, opening.limit)
            else:
                rows.check_room(connection, opening)

    def check_open(self, scope: str, campaign: str) -> None:
        """Refuse a campaign that was closed, before any work is done for it."""
        self._read(None, rows.check_open, scope, campaign)

    def commit(
        self,
        release: Release,
        step: dict[str, Any],
        opening: Opening | None = None,
        secret: Any = None,
    ) -> tuple[str, bool]:
        """Charge a slot and keep its state and its release, all or nothing; with the first slot,
        open the scope and the campaign. The release comes to carry how far the ledger is, and a
        commitment to what it leaves `secret` of the state.

        Returns the release that stands, and whether it is this one: of several processes that
        release a slot, the first to commit wins and the others return its release.
        """

        def text(connection: Connection) -> str:
            head = rows.head_of(connection, release.scope)
            key = rows.scope_key(connection, release.scope)
            return carrying_text(release, head, key, secret)

        return self._add(release, step, opening, text)

    def adopt(
        self, text: str, step: dict[str, Any], opening: Opening | None = None
    ) -> tuple[str, bool]:
        """The same for a release that was published before, whose bytes stay as they are."""
        return self._add(Release.from_text(text), step, opening, lambda _: text)

    def _add(
        self,
        release: Release,
        step: dict[str, Any],
        opening: Opening | None,
        text_of: Callable[[Connection], str],
    ) -> tuple[str, bool]:
        """`text_of` is asked when everything that comes before the release is there."""
        scope, campaign, slot = release.scope, release.campaign, release.slot
        sources = {each.randomness for each in release.measures}
        if sources != {_TRUSTED_RANDOMNESS}:
            raise LedgerError(
                f"slot {slot} of campaign {campaign!r}: its noise came from "
                f"{', '.join(map(repr, sorted(sources)))}, which hides nobody. Release with "
                "SecureRandomness"
            )
        self._database.bring_up_to_date()
        with self._database.writing(scope) as connection:
            stored = rows.stored_release(connection, scope, campaign, slot)
            if stored is not None:
                return stored, False
            expected = rows.last_slot(connection, scope, campaign) + 1
            if slot != expected:
                raise LedgerError(
                    f"slot {slot} of campaign {campaign!r}: slots are released in order, and slot "
                    f"{expected} is next. Release that one first"
                )
            if opening is not None:
                rows.open_campaign(connection, opening)
            rows.check_open(connection, scope, campaign)
            rows.check_charges(connection, release)
            for charge in release.charges:
                rows.append(
                    connection, scope, "charge",
                    campaign=campaign, slot=slot, part=charge.part, pico_rho=charge.pico_rho,
                )  # fmt: skip
            # Hashes of entries are published: without a nonce, secrets of which there are few
            # could be guessed and compared.
            state = json.dumps(
                {"format": rows.STATE_FORMAT, **step, "nonce": secrets.token_hex(32)}
            )
            rows.append(connection, scope, "state", campaign=campaign, slot=slot, body=state)
            text = text_of(connection)
            rows.append(connection, scope, "release", campaign=campaign, slot=slot, body=text)
            return text, True

    def close(self, scope: str, campaign: str) -> int:
        """End a campaign early, and return to its scope what it has reserved and not spent; how
        much that was, in pico-rho, also where it was closed before. What was charged stays."""
        if self.campaign(scope, campaign) is None:
            raise LedgerError(
                f"ledger {self.where}: campaign {campaign!r} of scope {scope!r} has not started: "
                "there is nothing to close. Check [campaign] name and scope, and [ledger]"
            )
        self._database.bring_up_to_date()
        with self._database.writing(scope) as connection:
            return rows.close_campaign(connection, scope, campaign)

    def erase_books(self, scope: str, campaign: str) -> None:
        """Note that the books of a closed campaign are no longer kept. Nothing is returned."""
        self._database.bring_up_to_date()
        with self._database.writing(scope) as connection:
            rows.erase_books(connection, scope, campaign)

    # ---- whether it was changed ----------------------------------------------------------------

    def verify(self, scope: str) -> Verification:
        """Recompute every hash of a scope, and let the database check its own file."""
        with self._database.standing() as connection:
            if connection is None:
                return Verification(0, "", None)
            damage = self._database.damage(connection)
            if damage is not None:
                return Verification(0, "", f"the database reports: {damage}")
            found = self._follow(connection, scope, bodies=True)
            file = self._database.file
            if found.problem is None and file is not None:
                found = replace(found, problem=broken_seal(file, self._extent(connection)))
            return found

    def started(
        self, guarantee: Guarantee, campaign: str, scope_limit: Fraction | None
    ) -> CampaignRecord | None:
        """What a campaign goes on by, once it has started. Refuses a ledger whose amounts were
        changed, without reading the bodies, and a campaign file that says other terms of its scope
        than were promised."""
        with self._database.standing() as connection:
            if connection is None:
                return None
            problem = self._follow(connection, guarantee.scope, bodies=False).problem
            if problem is not None:
                raise LedgerError(
                    f"ledger {self.where}: {problem}. Release nothing more, keep a copy, and "
                    "restore it from a backup"
                )
            scope = rows.scope_record(connection, guarantee.scope)
            if scope is not None:
                rows.check_terms(scope, guarantee, scope_limit)
            return rows.campaign_record(connection, guarantee.scope, campaign)

    def _follow(self, connection: Connection, scope: str, bodies: bool) -> Verification:
        """Whether every entry is sealed with the one before, and no more charged than allowed."""
        columns = [column for column in entries.columns if bodies or column.name != "body"]
        ordered = select(*columns).where(entries.c.scope == scope).order_by(entries.c.position)
        previous, count, spent, limit = "", 0, 0, 0
        try:
            with self._database.explained():
                for row in connection.execute(ordered).mappings():
                    count += 1
                    entry = Entry(*(row[each.name] for each in fields(Entry)))
                    intact = not bodies or hash_of(row["body"]) == entry.body_hash
                    sealed = entry.sealed(previous)
                    if entry.position != count or sealed != row["hash"] or not intact:
                        return Verification(
                            count - 1,
                            previous,
                            f"entry {count} ({entry.kind} of slot {entry.slot}) is not what was "
                            "written",
                        )
                    previous = sealed
                    limit += entry.pico_rho if entry.kind == "scope" else 0
                    spent += entry.pico_rho if entry.kind == "charge" else 0
        except (LedgerError, ValueError) as error:
            return Verification(count, previous, str(error))
        if spent > limit:
            return Verification(count, previous, f"{spent} pico-rho were charged, above {limit}")
        return Verification(count, previous, None)

    def seal(self) -> None:
        """Note a hash of the whole file, where it is one, at the end of a run that wrote to it."""
        # What was released is released: a seal that cannot be written is left as it is.
        with suppress(LedgerError):
            if self._database.file is not None:
                with self._database.standing() as connection:
                    extent = None if connection is None else self._extent(connection)
                if extent is not None:
                    write_seal(self._database.file, extent)

    def _extent(self, connection: Connection) -> Extent:
        size = connection.execute(select(func.count()).select_from(entries)).scalar_one()
        return Extent(size, self._database.schema_version)
