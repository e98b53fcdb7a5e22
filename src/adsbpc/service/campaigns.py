"""The campaigns of a server: what is measured, made of the same spec as a campaign file.

Where events are, which engine reads them and which ledger is charged is the server's to say, and
no key of a campaign may name a file of the server.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import Row, insert, select
from sqlalchemy.exc import IntegrityError

from adsbpc.campaign import Campaign, start
from adsbpc.errors import ServiceError, SpecError
from adsbpc.ledger import Ledger
from adsbpc.ledger.database import Database
from adsbpc.model import CampaignSpec, spec_of
from adsbpc.model.slots import to_microseconds
from adsbpc.service.clock import Clock, now_us
from adsbpc.service.event_files import EventFiles
from adsbpc.service.principal import Principal
from adsbpc.service.rows import Source
from adsbpc.service.settings import Settings
from adsbpc.service.store import campaigns

_SERVERS_OWN = ("events", "engine", "ledger")
# Keys that would make the server read a file that somebody names.
_FILES = (
    ("attribution", "fit", "holdout"),
    ("attribution", "fit", "previous"),
    ("attribution", "fit", "parameters"),
    ("privacy", "personal_budget", "previous"),
)
_WHERE = "the campaign"
_ID = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True)
class Registered:
    """`problem` is what the last attempt to release it said, empty if all went well."""

    campaign_id: str
    advertiser: str
    created_us: int
    problem: str
    spec: CampaignSpec

    @property
    def scope(self) -> str:
        return self.spec.campaign.scope

    @property
    def name(self) -> str:
        return self.spec.campaign.name

    @property
    def campaign(self) -> Campaign:
        return Campaign(self.spec)


class CampaignBook:
    """Registers campaigns and makes them ready to be released."""

    def __init__(
        self, store: Database, settings: Settings, files: EventFiles, clock: Clock
    ) -> None:
        self._store, self._settings, self._files, self._clock = store, settings, files, clock
        self.ledger = Ledger(settings.ledger.location, settings.data)

    def create(self, content: dict[str, Any], by: Principal) -> Registered:
        """Register a campaign, or raise SpecError with everything that is wrong with it."""
        campaign_id = uuid4().hex
        spec = self.spec(content, campaign_id)
        first_end = spec.grid.boundaries[1]
        if first_end <= now_us(self._clock):
            raise SpecError(
                f"[campaign] start = {spec.campaign.start}: the first slot is over, and would be "
                "released without what was not stored yet. Start today or later"
            )
        # Plans it, and asks the ledger whether there is room: nothing is written.
        start(spec, self.ledger)
        created_us = now_us(self._clock)
        row = {
            "campaign_id": campaign_id,
            "scope": spec.campaign.scope,
            "name": spec.campaign.name,
            "advertiser": spec.campaign.advertiser,
            "spec": json.dumps(_kept(content)),
            "created_us": created_us,
            "created_by": by.key_id,
            "lease_holder": "",
            "lease_until_us": 0,
            "problem": "",
        }
        if not self._insert(row):
            raise SpecError(
                f"[campaign] name = {spec.campaign.name!r}: scope {spec.campaign.scope!r} has a "
                "campaign of that name. Take another name"
            )
        return Registered(campaign_id, spec.campaign.advertiser, created_us, "", spec)

    def _insert(self, row: dict[str, Any]) -> bool:
        with self._store.writing("campaigns") as connection:
            known = select(campaigns.c.campaign_id).where(
                campaigns.c.scope == row["scope"], campaigns.c.name == row["name"]
            )
            if connection.execute(known).first() is not None:
                return False
            try:
                connection.execute(insert(campaigns).values(**row))
            except IntegrityError:
                return False
        return True

    def spec(self, content: dict[str, Any], campaign_id: str = "planned") -> CampaignSpec:
        """The spec of a campaign, with what the server adds to it."""
        _check_keys(content)
        folder = Path("campaigns") / campaign_id
        engine = self._settings.engine
        whole = {
            **_with_dates(content),
            "events": {
                "impressions": str(folder / "impressions.files"),
                "conversions": str(folder / "conversions.files"),
                "engine": engine.name,
            },
            "engine": {"options": engine.options},
            "ledger": {"location": self._settings.ledger.location},
        }
        return spec_of(whole, self._settings.data, _WHERE)

    def all(self) -> list[Registered]:
        """The newest first."""
        wanted = select(campaigns).order_by(campaigns.c.created_us.desc(), campaigns.c.campaign_id)
        with self._store.reading() as connection:
            return [self._registered(row) for row in connection.execute(wanted)]

    def get(self, campaign_id: str) -> Registered | None:
        if not _ID.fullmatch(campaign_id):
            return None
        wanted = select(campaigns).where(campaigns.c.campaign_id == campaign_id)
        with self._store.reading() as connection:
            row = connection.execute(wanted).one_or_none()
        return None if row is None else self._registered(row)

    def _registered(self, row: Row[Any]) -> Registered:
        spec = self.spec(json.loads(row.spec), row.campaign_id)
        return Registered(row.campaign_id, row.advertiser, row.created_us, row.problem, spec)

    def last_slot(self, registered: Registered) -> int:
        """The newest released slot, or 0."""
        if not self.ledger.exists():
            return 0
        return self.ledger.last_slot(registered.scope, registered.name)

    def prepare(self, registered: Registered) -> None:
        """Say which files hold the campaign's events, as of now."""
        directory, events = self._settings.data, registered.spec.events
        sources: tuple[tuple[Source, str], ...] = (
            ("impressions", events.impressions), ("conversions", events.conversions),
        )  # fmt: skip
        for source, name in sources:
            path = directory / name
            try:
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._files.manifest(source, registered.advertiser, path)
            except OSError as error:
                raise ServiceError(
                    f"{path}: the list of event files cannot be written ({error.strerror}). Free "
                    "some space, or give adsbpc the right to write there"
                ) from None

    def due(self, registered: Registered, grace_us: int) -> int:
        """The last slot that is over for long enough."""
        return registered.spec.grid.last_ended(to_microseconds(self._clock.now()) - grace_us)


def _check_keys(content: dict[str, Any]) -> None:
    for section in _SERVERS_OWN:
        if section in content:
            raise SpecError(
                f"{_WHERE}: [{section}] is the server's to say. Remove it: events come by "
                "POST /v1/impressions and /v1/conversions"
            )
    named = [".".join(path) for path in _FILES if _given(content, path)]
    workload = content.get("workload")
    for section in workload if isinstance(workload, list) else []:
        if isinstance(section, dict) and "matrix" in section:
            named.append("workload.matrix")
    if named:
        raise SpecError(
            f"{_WHERE}: {named[0]} names a file, and the server reads no file that a campaign "
            "names. Remove it, or run the campaign with adsbpc release"
        )


def _given(content: Any, path: tuple[str, ...]) -> bool:
    for part in path:
        if not isinstance(content, dict) or part not in content:
            return False
        content = content[part]
    return True


def _with_dates(content: dict[str, Any]) -> dict[str, Any]:
    """JSON has no dates: the two of a campaign are texts there."""
    section = content.get("campaign")
    if not isinstance(section, dict):
        return content
    dates = {}
    for key in ("start", "end"):
        if isinstance(section.get(key), str):
            try:
                dates[key] = date.fromisoformat(section[key])
            except ValueError:
                raise SpecError(
                    f"{_WHERE}: [campaign] {key} = {section[key]!r}: expected a day such as "
                    "2026-03-01"
                ) from None
    return {**content, "campaign": {**section, **dates}}


def _kept(content: dict[str, Any]) -> dict[str, Any]:
    """What is stored: days of a TOML file as texts."""
    kept: dict[str, Any] = json.loads(json.dumps(content, default=str))
    return kept
