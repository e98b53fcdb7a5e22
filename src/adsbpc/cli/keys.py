"""`adsbpc keys`: who may use the service, straight from its database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from rich.table import Table

from adsbpc.cli.console import results
from adsbpc.errors import SpecError, no_such_choice
from adsbpc.model.durations import parse_duration
from adsbpc.model.slots import to_microseconds, to_moment
from adsbpc.service.auth.keys import KeyRecord, KeyRing
from adsbpc.service.auth.permissions import Role
from adsbpc.service.auth.sessions import Sessions
from adsbpc.service.clock import SystemClock, now_us
from adsbpc.service.data_folder import enter
from adsbpc.service.settings import load_settings
from adsbpc.service.store import open_store

_ID_LENGTH = 16


@contextmanager
def _rings(config: Path | None) -> Iterator[tuple[KeyRing, Sessions]]:
    settings = load_settings(config)
    with enter(settings.data):
        store = open_store(settings.service.database, settings.data)
        keys = KeyRing(store, SystemClock())
        yield keys, Sessions(store, keys, SystemClock(), settings.service.session)
        store.close()


def run_create(
    role: str, subject: str, label: str, expires: str, config: Path | None, as_json: bool
) -> None:
    roles = [each.value for each in Role]
    if role not in roles:
        raise no_such_choice(f"--role {role!r}", role, roles)
    expires_us = _expiry(expires, now_us(SystemClock()))
    with _rings(config) as (keys, _):
        record, text = keys.create(Role(role), subject, label, expires_us)
    if as_json:
        print(json.dumps({**_as_object(record), "key": text}))
        return
    print(text)
    print("Keep it: it is shown only once, and only a hash of it is stored.")
    print(_validity(record))


def _expiry(expires: str, now: int) -> int | None:
    """A duration from now on, the beginning of a day in UTC, or never."""
    if expires == "never":
        return None
    try:
        day = date.fromisoformat(expires)
    except ValueError:
        pass
    else:
        return to_microseconds(datetime(day.year, day.month, day.day, tzinfo=UTC))
    try:
        return now + parse_duration(expires)
    except ValueError:
        raise SpecError(
            "expected days such as 90d, a date such as 2027-01-31, or never",
            "--expires",
            repr(expires),
        ) from None


def _validity(record: KeyRecord) -> str:
    if record.expires_us is None:
        return "It is valid until it is revoked. --expires 90d would end it by itself."
    return f"It is valid until {to_moment(record.expires_us):%Y-%m-%d %H:%M} UTC (--expires)."


def run_list(config: Path | None, as_json: bool) -> None:
    with _rings(config) as (keys, _):
        found = keys.list()
    if as_json:
        print(json.dumps({"keys": [_as_object(each) for each in found]}))
        return
    table = Table(title="Keys of the service")
    # Whole on any terminal: adsbpc keys revoke asks for it.
    table.add_column("id", no_wrap=True, min_width=_ID_LENGTH)
    for name in ("role", "subject", "label", "made", "expires", "state"):
        table.add_column(name, overflow="fold")
    for each in found:
        shown = _as_object(each)
        table.add_row(
            each.key_id,
            each.role,
            each.subject or "-",
            each.label,
            shown["created_at"][:10],
            (shown["expires_at"] or "never")[:10],
            shown["state"],
        )
    results().print(table)


def run_revoke(key_id: str, config: Path | None, as_json: bool) -> None:
    with _rings(config) as (keys, sessions):
        if not keys.revoke(key_id):
            raise SpecError(f"{key_id}: no such key that is not revoked. See adsbpc keys list")
        sessions.close_all(key_id)
    print(json.dumps({"revoked": key_id}) if as_json else f"Revoked {key_id}.")


def _as_object(record: KeyRecord) -> dict[str, Any]:
    return {
        "key_id": record.key_id,
        "role": record.role.value,
        "subject": record.subject,
        "label": record.label,
        "created_at": to_moment(record.created_us).isoformat(),
        "expires_at": None
        if record.expires_us is None
        else to_moment(record.expires_us).isoformat(),
        "state": record.state(now_us(SystemClock())),
    }
