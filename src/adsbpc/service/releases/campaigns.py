"""The campaigns of a server: what is measured, made of the same spec as a campaign file."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

from sqlalchemy import Row, bindparam, insert, select

from adsbpc.campaign import Campaign, start
from adsbpc.campaign.release_folder import ReleaseFolder, folder_name
from adsbpc.errors import BudgetError, InputError, ServiceError, SpecError, TermsError
from adsbpc.ledger import Ledger
from adsbpc.ledger.database import Database
from adsbpc.model import CampaignSpec, spec_of
from adsbpc.model.release_spec import kept_privacy
from adsbpc.model.slots import to_moment
from adsbpc.model.spec import LedgerSection
from adsbpc.model.toml import place
from adsbpc.service.auth.permissions import Principal
from adsbpc.service.clock import Clock, now_us
from adsbpc.service.ingest.event_files import EventFiles, close_arrivals
from adsbpc.service.ingest.rows import DIMENSION_COLUMNS, SCHEMAS
from adsbpc.service.logs import log_failure
from adsbpc.service.releases.campaign_content import (
    OF_EVENTS,
    PREVIOUS,
    WHERE,
    check_capitals,
    check_keys,
    check_scope,
    completed,
    content_of,
    given,
)
from adsbpc.service.releases.campaign_folder import (
    KEY_FILE,
    arms_of,
    keep_known_key,
    keep_new_key,
    with_key,
    with_spend,
)
from adsbpc.service.releases.course import Course
from adsbpc.service.settings import Settings
from adsbpc.service.store import campaigns
from adsbpc.storage import is_remote

# Planning takes the cube of it: some ten seconds here.
_MOST_PERSONAL_SLOTS = 1_100
_MOST_SPECS = 1_000
_ID = re.compile("[0-9a-f]{32}")
_BY_ID = select(campaigns).where(campaigns.c.campaign_id == bindparam("campaign_id"))


@dataclass(frozen=True)
class Registered:
    """`problem` is what the last attempt to release it said, empty if all went well; `paused_us`
    since when nothing is released of it, if it is paused."""

    campaign_id: str
    advertiser: str
    created_us: int
    problem: str
    spec: CampaignSpec
    paused_us: int | None = None

    @property
    def scope(self) -> str:
        return self.spec.campaign.scope

    @property
    def name(self) -> str:
        return self.spec.campaign.name

    @property
    def campaign(self) -> Campaign:
        if self.spec.lift is not None:
            # What it promised names the key.
            arms_of(self.spec)
        return Campaign(self.spec)

    @property
    def content(self) -> dict[str, Any]:
        """What a campaign file would say, without what is the server's."""
        return content_of(self.spec)


class CampaignBook:
    """Registers campaigns and makes them ready to be released."""

    def __init__(
        self, store: Database, settings: Settings, files: EventFiles, clock: Clock
    ) -> None:
        self._store, self._settings, self._files, self._clock = store, settings, files, clock
        self.ledger = Ledger(settings.ledger.location, settings.data)
        # What a text means follows from it and the settings; every request asks for one or all.
        self._kept_specs = lru_cache(_MOST_SPECS)(self._stored_spec)

    def create(self, content: dict[str, Any], by: Principal) -> Registered:
        """Register a campaign, or raise SpecError with everything that is wrong with it."""
        campaign_id = uuid4().hex
        spec = self.spec(self._with_waiting(content))
        first_end = spec.grid.boundaries[1]
        if first_end <= now_us(self._clock) and not self.has_started(spec):
            raise SpecError(
                "the first slot is over, and would be released without what was not stored yet",
                place("campaign", "start"),
                str(spec.campaign.start),
                f"Start on {self._first_day(spec)} or later",
            )
        folder = self.folder_of(campaign_id)
        if spec.lift is not None:
            self._keep_key(spec, folder)
        spec = with_key(spec, folder)
        try:
            return self._register(campaign_id, spec, by)
        except (InputError, BudgetError, TermsError):
            # Refused before anything was stored of it.
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _keep_key(self, spec: CampaignSpec, folder: Path) -> None:
        """A new key for the trial; the one that it has if it has started."""
        record = self.ledger.campaign(spec.campaign.scope, spec.campaign.name)
        if record is None or "lift" not in record.promise:
            keep_new_key(folder)
        else:
            keep_known_key(folder, folder.parent, record.promise["lift"]["mark"])

    def _register(self, campaign_id: str, spec: CampaignSpec, by: Principal) -> Registered:
        # Plans it, and asks the ledger whether there is room: nothing is written.
        start(spec, self.ledger)
        self.ledger.check_open(spec.campaign.scope, spec.campaign.name)
        created_us = now_us(self._clock)
        row = {
            "campaign_id": campaign_id,
            "scope": spec.campaign.scope,
            "name": spec.campaign.name,
            "advertiser": spec.campaign.advertiser,
            "spec": json.dumps(content_of(spec)),
            "created_us": created_us,
            "created_by": by.key_id,
            "lease_holder": "",
            "lease_until_us": 0,
            "problem": "",
        }
        self._insert(row, spec)
        return Registered(campaign_id, spec.campaign.advertiser, created_us, "", spec)

    def _with_waiting(self, content: dict[str, Any]) -> dict[str, Any]:
        """With how long it waits for late impressions, if it does not say: as it started with, or
        as the settings have it."""
        if "events" in content:
            return content
        spec = self.spec(content)
        events = self._settings.scheduler.model_dump(mode="json", include=OF_EVENTS)
        if self.has_started(spec):
            record = self.ledger.campaign(spec.campaign.scope, spec.campaign.name)
            events = {} if record is None else record.promise.get("events", {})
        return {**content, "events": events}

    def _first_day(self, spec: CampaignSpec) -> date:
        """The first whose first slot is not over."""
        begins, ends, *_ = spec.grid.boundaries
        moment = to_moment(now_us(self._clock) - (ends - begins))
        return moment.astimezone(ZoneInfo(spec.campaign.timezone)).date() + timedelta(days=1)

    def has_started(self, spec: CampaignSpec) -> bool:
        """Whether the ledger knows it: then the service's database was lost, and it goes on."""
        key = spec.campaign.scope, spec.campaign.name
        return self.ledger.stage(*key).started

    def _insert(self, row: dict[str, Any], spec: CampaignSpec) -> None:
        columns = campaigns.c
        with self._store.writing("campaigns") as connection:
            for key in ("advertiser", "scope"):
                known = connection.execute(select(columns[key]).distinct()).scalars()
                check_capitals(key, row[key], known)
            stored = connection.execute(
                select(campaigns).where(columns.scope == row["scope"]).order_by(columns.created_us)
            ).all()
            # Who reads a campaign sees its scope's budget, so that a scope is one advertiser's.
            if any(other.advertiser != row["advertiser"] for other in stored):
                raise SpecError(
                    "belongs to another advertiser, who would see this campaign's spending",
                    place("campaign", "scope"),
                    repr(row["scope"]),
                    "Take another scope",
                )
            if any(other.name == row["name"] for other in stored):
                raise SpecError(
                    f"scope {row['scope']!r} has a campaign of that name",
                    place("campaign", "name"),
                    repr(row["name"]),
                    "Take another name",
                )
            if not self.has_started(spec):
                others = [self._registered(other).spec for other in stored]
                waiting = [other for other in others if not self.has_started(other)]
                check_scope(self.ledger, spec, waiting)
            connection.execute(insert(campaigns).values(**row))

    def spec(self, content: dict[str, Any]) -> CampaignSpec:
        """What somebody sends. One that continues another names it by its id."""
        check_keys(content)
        if given(content, PREVIOUS):
            content = self._continuing(content)
        return self._spec(content)

    def _continuing(self, content: dict[str, Any]) -> dict[str, Any]:
        privacy = content["privacy"]
        personal, section = privacy["personal_budget"], content.get("campaign")
        before = self.get(str(personal["previous"]))
        advertiser = section.get("advertiser") if isinstance(section, dict) else None
        if before is None or before.advertiser != advertiser:
            raise SpecError(
                "expected the id of a campaign of this advertiser",
                place(*PREVIOUS),
                repr(personal["previous"]),
                "List them: GET /v1/campaigns",
            )
        course = self.course(before)
        if course.stage.last_slot < course.slots:
            raise SpecError(
                f"campaign {before.name!r} still runs, and this one continues it",
                place(*PREVIOUS),
                repr(personal["previous"]),
                "Close that one first",
            )
        folder = ReleaseFolder(before.spec, self.ledger).folder
        # The service keeps releases in its data folder.
        assert isinstance(folder, Path)
        folder = folder.relative_to(self._settings.data)
        continued = {**personal, "previous": str(folder)}
        return {**content, "privacy": {**privacy, "personal_budget": continued}}

    def _spec(self, content: dict[str, Any]) -> CampaignSpec:
        engine = self._settings.engine
        whole = {
            **completed(content),
            "events": {
                # Lists of files, made for each release.
                "impressions": "impressions.files",
                "conversions": "conversions.files",
                "engine": engine.name,
                **content.get("events", {}),
            },
            "engine": {"options": engine.options},
        }
        checks = content.get("checks", {})
        if isinstance(checks, dict):
            # One that starts with somebody's first row would show its readers when that was.
            whole["checks"] = {"min_rows": 0, **checks}
        if isinstance(content.get("lift"), dict):
            # That of the campaign takes its place once there is one.
            whole["lift"] = {**content["lift"], "key_file": KEY_FILE}
        spec = spec_of(whole, self._settings.data, WHERE)
        spec = spec.model_copy(update={"ledger": self._ledger_section(spec.campaign.scope)})
        for name, dimension in spec.dimensions.items():
            if dimension.column not in DIMENSION_COLUMNS:
                raise SpecError(
                    f"events have the columns {', '.join(DIMENSION_COLUMNS)} here",
                    place("dimensions", name, "column"),
                    repr(dimension.column),
                    "Push it as one of them",
                )
        personal = spec.privacy is not None and spec.privacy.mechanism == "personal-budget"
        if personal and spec.campaign.slots > _MOST_PERSONAL_SLOTS:
            raise SpecError(
                "the noise of personal budgets is planned for up to "
                f"{_MOST_PERSONAL_SLOTS} slots here",
                place("campaign", "slots"),
                str(spec.campaign.slots),
                'Take fewer, longer slots, or mechanism = "adsbpc"',
            )
        return spec

    def _ledger_section(self, scope: str) -> LedgerSection:
        location, witness = self._settings.ledger.location, self._settings.ledger.witness
        if witness is not None and is_remote(witness):
            witness = f"{witness.rstrip('/')}/{folder_name(scope)}.json"
        elif witness is not None and "://" not in witness:
            witness = str(Path(witness) / f"{folder_name(scope)}.json")
        return LedgerSection(location=location, witness=witness)

    def all(self) -> list[Registered]:
        """The newest first."""
        wanted = select(campaigns).order_by(campaigns.c.created_us.desc(), campaigns.c.campaign_id)
        with self._store.reading() as connection:
            rows = connection.execute(wanted).all()
        found = []
        for row in rows:
            # One that cannot be read must not hide the others.
            try:
                found.append(self._registered(row))
            except ServiceError as error:
                log_failure("campaign cannot be read", error, campaign=row.campaign_id)
        return found

    def open_specs(self) -> list[CampaignSpec]:
        """Of campaigns that were not closed."""
        return [each.spec for each in self.all() if self.course(each).state != "closed"]

    def get(self, campaign_id: str) -> Registered | None:
        if not _ID.fullmatch(campaign_id):
            return None
        with self._store.reading() as connection:
            row = connection.execute(_BY_ID, {"campaign_id": campaign_id}).one_or_none()
        return None if row is None else self._registered(row)

    def _registered(self, row: Row[Any]) -> Registered:
        try:
            folder = self.folder_of(row.campaign_id)
            spec = with_key(with_spend(self._kept_specs(row.spec), folder), folder)
        except (SpecError, ValueError) as error:
            raise ServiceError(
                f"campaign {row.campaign_id}: what is stored of it cannot be read ({error}). "
                "Restore the service's database from a backup"
            ) from None
        return Registered(
            row.campaign_id, row.advertiser, row.created_us, row.problem, spec, row.paused_us
        )

    def _stored_spec(self, text: str) -> CampaignSpec:
        content = json.loads(text)
        if "privacy" in content:
            content["privacy"] = kept_privacy(content["privacy"])
        return self._spec(content)

    def folder_of(self, campaign_id: str) -> Path:
        """What the server keeps of a campaign besides its database."""
        return self._settings.data / "campaigns" / campaign_id

    def last_slot(self, registered: Registered) -> int:
        return self.ledger.last_slot(registered.scope, registered.name)

    def course(self, registered: Registered, visible: Mapping[str, int] | None = None) -> Course:
        """With what its scope has spent, by the slots of its campaigns that are visible."""
        stage = self.ledger.stage(registered.scope, registered.name, visible)
        return Course(registered.spec, registered.paused_us, stage, now_us(self._clock))

    @contextmanager
    def ready(self, registered: Registered, slot: int) -> Iterator[Campaign]:
        """The campaign with all events that arrived up to the end of a slot, and none to come."""
        close_arrivals(self._store, registered.spec.settled_at(slot))
        directory = self.folder_of(registered.campaign_id)
        directory.mkdir(exist_ok=True, mode=0o700)
        # Lists of its own for each attempt: others may be at work on the same slot.
        with TemporaryDirectory(dir=directory) as folder:
            lists: dict[str, str] = {}
            for source in SCHEMAS:
                lists[source] = str(Path(folder) / f"{source}.files")
                columns = [
                    each.column
                    for each in registered.spec.dimensions.values()
                    if f"{each.of}s" == source
                ]
                self._files.manifest(source, registered.advertiser, Path(lists[source]), columns)
            events = registered.spec.events.model_copy(update=lists)
            yield replace(
                registered.campaign, spec=registered.spec.model_copy(update={"events": events})
            )
