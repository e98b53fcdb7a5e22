"""How a server runs: a file, overruled by the environment, checked before anything starts.

[service] port = 8080        ADSBPC_SERVICE_PORT=8080
[ledger] location = "..."    ADSBPC_LEDGER_LOCATION=postgresql://...
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from adsbpc.errors import SpecError, did_you_mean
from adsbpc.ledger.database import is_secret, without_password
from adsbpc.model.durations import MICROSECONDS_PER_SECOND, duration_text, parse_duration
from adsbpc.model.events_spec import EngineName
from adsbpc.model.section import Duration, Name, Section
from adsbpc.model.spec import EngineSection, LedgerSection
from adsbpc.model.toml import checked, read_toml

_PREFIX = "ADSBPC_"
Bytes = Annotated[int, Field(ge=1_024, le=2**31)]


def _a_second(duration: int) -> int:
    if duration < MICROSECONDS_PER_SECOND:
        raise ValueError("expected one second or more")
    return duration


Period = Annotated[Duration, AfterValidator(_a_second)]


class ServiceSection(Section):
    """`data` is the folder for events, releases and the audit log. `workers` are processes that
    share the port. `public_url` is what browsers
    see; with https:// cookies are sent over TLS only. `trust_proxy` takes the address of a client
    from X-Forwarded-For, as the nearest proxy wrote it. With less than `least_free_bytes` on its
    disks a server is not ready."""

    data: Name = "adsbpc-data"
    host: Name = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8_080
    workers: Annotated[int, Field(ge=1, le=64)] = 1
    database: Name = "service.sqlite"
    public_url: Annotated[str, Field(pattern=r"^https?://[^/?#]+$")] | None = None
    trust_proxy: bool = False
    session: Period = parse_duration("12h")
    least_free_bytes: Annotated[int, Field(ge=0)] = 64 * 2**20


class SharedLedgerSection(LedgerSection):
    """As in a campaign file, from the data folder. A `witness` that is no URL is a folder, with a
    file for every scope."""

    location: Name = "ledger.sqlite"


class IngestSection(Section):
    """Limits of one batch, and how many batches may wait before others are sent away."""

    max_body_bytes: Bytes = 8 * 2**20
    max_unpacked_bytes: Bytes = 64 * 2**20
    max_rows: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    waiting_batches: Annotated[int, Field(ge=1, le=10_000)] = 64
    compact_every: Period = parse_duration("5m")


class SchedulerSection(Section):
    """A slot is over when it was held back for late impressions, and is released `grace` after
    that: by then everything that arrived is stored. It is visible `publish_after` it was over, or
    at a multiple of that if it was not done by then. `settle` and `wait` are those of campaigns
    that say nothing of them: enough for senders that push once an hour."""

    enabled: bool = True
    settle: Duration = parse_duration("90m")
    wait: Duration = parse_duration("2d")
    grace: Period = parse_duration("5m")
    every: Period = parse_duration("10s")
    publish_after: Period = Field(default="15m", validate_default=True)

    @field_validator("publish_after")
    @classmethod
    def _after_the_grace(cls, publish_after: int, others: ValidationInfo) -> int:
        grace = others.data.get("grace")
        if grace is not None and publish_after <= grace:
            raise ValueError(
                f'expected more than grace, which is "{duration_text(grace)}": a slot is released '
                "in between. Give the longest time that a release takes, and some more"
            )
        return publish_after


class RetentionSection(Section):
    """How long events are kept, and books of campaigns that are over; for ever if left out. What a
    campaign may still need is kept for as long as that."""

    events: Period | None = None


class StatementsSection(Section):
    """`signing_key` is a file with an Ed25519 key in PEM: statements are then signed with it."""

    signing_key: Name | None = None


class NamedEngineSection(EngineSection):
    name: EngineName = "duckdb"


class Settings(Section):
    """One settings file. `directory` is where its relative paths start."""

    service: ServiceSection = ServiceSection()
    ledger: SharedLedgerSection = SharedLedgerSection()
    ingest: IngestSection = IngestSection()
    scheduler: SchedulerSection = SchedulerSection()
    retention: RetentionSection = RetentionSection()
    statements: StatementsSection = StatementsSection()
    engine: NamedEngineSection = NamedEngineSection()
    directory: Path = Field(default=Path(), exclude=True)

    @property
    def data(self) -> Path:
        return (self.directory / self.service.data).resolve()

    @property
    def over_tls(self) -> bool:
        return (self.service.public_url or "").startswith("https://")

    def without_secrets(self) -> dict[str, Any]:
        """Everything, passwords hidden."""
        found = self.model_dump(mode="json")
        found["service"]["data"] = str(self.data)
        for section, key in (
            ("service", "database"), ("ledger", "location"), ("ledger", "witness")
        ):  # fmt: skip
            if found[section][key] is not None:
                found[section][key] = _without_password(found[section][key])
        found["engine"]["options"] = {
            name: "***" if is_secret(name) else value
            for name, value in found["engine"]["options"].items()
        }
        return found


def load_settings(file: Path | None, environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings, or raise SpecError with every problem on a line of its own."""
    content: dict[str, Any] = {}
    directory = Path.cwd()
    if file is not None:
        content, directory = read_toml(file), file.resolve().parent
    where = "the environment" if file is None else str(file)
    for name, value in sorted(environment.items()):
        if name.startswith(_PREFIX):
            section, key = _key_of(name)
            content.setdefault(section, {})[key] = value
    return checked(Settings, content, directory, where, "settings", _shown)


def _variables() -> dict[str, tuple[str, str]]:
    """Every variable of the environment that means a setting."""
    found = {}
    for section, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            for key in field.annotation.model_fields:
                found[f"{_PREFIX}{section}_{key}".upper()] = (section, key)
    found.pop(f"{_PREFIX}ENGINE_OPTIONS")
    return found


def _key_of(name: str) -> tuple[str, str]:
    known = _variables()
    if name not in known:
        raise SpecError(
            f"{name}: no such setting in the environment.{did_you_mean(name, known)} Remove it"
        )
    return known[name]


def _shown(value: Any) -> str:
    return repr(_without_password(value) if isinstance(value, str) else value)


def _without_password(location: str) -> str:
    try:
        return without_password(make_url(location))
    except ArgumentError:
        return location
