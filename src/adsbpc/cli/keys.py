"""`adsbpc keys`: who may use the service, straight from its database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.table import Table

from adsbpc.cli.console import results
from adsbpc.errors import SpecError, no_such_choice
from adsbpc.model.slots import to_microseconds, to_moment
from adsbpc.service.auth.keys import KeyRecord, KeyRing
from adsbpc.service.auth.permissions import Role
from adsbpc.service.auth.sessions import Sessions
from adsbpc.service.clock import SystemClock, now_us
from adsbpc.service.data_folder import enter
from adsbpc.service.settings import load_settings
from adsbpc.service.store import open_store


@contextmanager
def _rings(config: Path | None) -> Iterator[tuple[KeyRing, Sessions]]:
    settings = load_settings(config)
    with enter(settings.data):
        store = open_store(settings.service.database, settings.data)
        keys = KeyRing(store, SystemClock())
        yield keys, Sessions(store, keys, SystemClock(), settings.service.session)
        store.close()


def run_create(
    role: str, subject: str, label: str, days: int | None, config: Path | None, as_json: bool
) -> None:
    roles = [each.value for each in Role]
    if role not in roles:
        raise no_such_choice(f"--role {role!r}", role, roles)
    expires = None if days is None else to_microseconds(datetime.now(UTC) + timedelta(days=days))
    with _rings(config) as (keys, _):
        record, text = keys.create(Role(role), subject, label, expires)
    if as_json:
        print(json.dumps({**_as_object(record), "key": text}))
        return
    print(text)
    print("Keep it: it is shown this once, and only a hash of it is stored.")


def run_list(config: Path | None, as_json: bool) -> None:
    with _rings(config) as (keys, _):
        found = keys.list()
    if as_json:
        print(json.dumps({"keys": [_as_object(each) for each in found]}))
        return
    table = Table("id", "role", "subject", "label", "made", "state", title="Keys of the service")
    for each in found:
        shown = _as_object(each)
        table.add_row(
            each.key_id,
            each.role,
            each.subject or "-",
            each.label,
            shown["created_at"][:10],
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
