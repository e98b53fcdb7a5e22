"""API keys: made, checked, listed, revoked. The text of a key is shown once, when it is made.

Must never: keep, log or raise the secret of a key; only its hash is stored.
"""

from __future__ import annotations

import hmac
import re
import secrets
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection, Row, bindparam, insert, or_, select, update

from adsbpc.errors import SpecError
from adsbpc.ledger.database import Database
from adsbpc.model.rules import rule_of
from adsbpc.model.section import Name
from adsbpc.service import store as tables
from adsbpc.service.auth.permissions import Principal, Role
from adsbpc.service.clock import Clock, now_us

KeyState = Literal["valid", "expired", "revoked"]

_SECRET_BYTES = 32
_KEY_ID = re.compile(r"[0-9a-f]{16}")
_KEY = re.compile(r"adsbpc_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_SECRET_IN_TEXT = re.compile(r"(adsbpc_[0-9a-f]{16})_[A-Za-z0-9_-]+", re.IGNORECASE)
# No secret has this hash. An unknown id is compared with it, to take as long as a known one.
_NO_HASH = "0" * 64
# The last moment that a calendar can show.
_LATEST_US = 253_402_300_799_999_999
_NAME: TypeAdapter[str] = TypeAdapter(Name)
_COLUMNS = [column for column in tables.keys.columns if column.name != "secret_hash"]
# Made once: every request asks it.
_WITH_HASH = select(tables.keys).where(tables.keys.c.key_id == bindparam("key_id"))
_BY_ID = select(*_COLUMNS).where(tables.keys.c.key_id == bindparam("key_id"))


@dataclass(frozen=True)
class KeyRecord:
    """What may be known of a key by those who manage keys."""

    key_id: str
    role: Role
    subject: str
    label: str
    created_us: int
    expires_us: int | None
    revoked_us: int | None

    def state(self, now_us: int) -> KeyState:
        if self.revoked_us is not None:
            return "revoked"
        if self.expires_us is not None and self.expires_us <= now_us:
            return "expired"
        return "valid"

    @property
    def principal(self) -> Principal:
        return Principal(self.key_id, self.role, self.subject)


KeyRecords = list[KeyRecord]


class KeyRing:
    """Looks into the store each time, so that a revoked key stops at once on every server.

    `clock` must be the time of the real world: one that runs faster would end keys too early.
    """

    def __init__(self, store: Database, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def create(
        self, role: Role, subject: str, label: str, expires_us: int | None
    ) -> tuple[KeyRecord, str]:
        """The new key, and its text, which nobody can ask for again."""
        created_us = now_us(self._clock)
        _check_subject(role, subject)
        _check_name("label", label)
        _check_expiry(expires_us, created_us)
        record = KeyRecord(secrets.token_hex(8), role, subject, label, created_us, expires_us, None)
        secret = secrets.token_urlsafe(_SECRET_BYTES)
        row = {**asdict(record), "secret_hash": hash_of(secret)}
        with self._store.writing("keys") as connection:
            connection.execute(insert(tables.keys).values(row))
        return record, f"adsbpc_{record.key_id}_{secret}"

    def authenticate(self, text: str) -> Principal | None:
        """Who holds this key. None for every kind of bad key: the caller learns no more."""
        shape = _KEY.fullmatch(text)
        if shape is None:
            return None
        key_id, secret = shape.groups()
        with self._store.reading() as connection:
            row = connection.execute(_WITH_HASH, {"key_id": key_id}).one_or_none()
        expected = _NO_HASH if row is None else row.secret_hash
        holds = hmac.compare_digest(hash_of(secret), expected)
        return self._valid(row) if holds else None

    def principal(self, connection: Connection, key_id: str) -> Principal | None:
        """Who a key speaks for, while it is valid."""
        if not _KEY_ID.fullmatch(key_id):
            return None
        return self._valid(connection.execute(_BY_ID, {"key_id": key_id}).one_or_none())

    def list(self) -> KeyRecords:
        """Every key that was ever made, oldest first."""
        with self._store.reading() as connection:
            rows = connection.execute(
                select(*_COLUMNS).order_by(tables.keys.c.created_us, tables.keys.c.key_id)
            ).all()
        return [_record(row) for row in rows]

    def revoke(self, key_id: str) -> bool:
        """Stop a key for good. False if there is none, or if it was revoked before."""
        if not _KEY_ID.fullmatch(key_id):
            return False
        with self._store.writing("keys") as connection:
            done = connection.execute(
                update(tables.keys)
                .where(tables.keys.c.key_id == key_id, tables.keys.c.revoked_us.is_(None))
                .values(revoked_us=now_us(self._clock))
            )
            return done.rowcount == 1

    def has_operator(self) -> bool:
        """Whether somebody can manage keys."""
        columns = tables.keys.c
        with self._store.reading() as connection:
            found = connection.execute(
                select(columns.key_id)
                .where(
                    columns.role == Role.OPERATOR.value,
                    columns.revoked_us.is_(None),
                    or_(columns.expires_us.is_(None), columns.expires_us > now_us(self._clock)),
                )
                .limit(1)
            ).one_or_none()
        return found is not None

    def _valid(self, row: Row[Any] | None) -> Principal | None:
        if row is None:
            return None
        record = _record(row)
        return record.principal if record.state(now_us(self._clock)) == "valid" else None


def without_secrets(text: str) -> str:
    """A text that may hold a key by mistake, fit for a log.

    >>> without_secrets("/v1/adsbpc_0123456789abcdef_Zm9vYmFy/x")
    '/v1/adsbpc_0123456789abcdef_***/x'
    """
    return _SECRET_IN_TEXT.sub(r"\1_***", text)


def hash_of(secret: str) -> str:
    # One round is enough: the secret is 256 random bits, nobody can try them all.
    return sha256(secret.encode("ascii")).hexdigest()


def _record(row: Row[Any]) -> KeyRecord:
    found = {column.name: row._mapping[column] for column in _COLUMNS}
    return KeyRecord(**{**found, "role": Role(row.role)})


def _check_subject(role: Role, subject: str) -> None:
    if role is Role.OPERATOR:
        if subject:
            raise SpecError(
                f"subject = {subject[:200]!r}: an operator speaks for nobody. Leave it empty"
            )
    elif subject:
        _check_name("subject", subject)
    elif role is not Role.READER:
        raise SpecError(
            f"subject = '': a key of a {role} speaks for one {role}. Give its id, as it stands "
            f"in the events"
        )


def _check_name(field: str, name: str) -> None:
    # The text goes in as it is: an id must stay letter by letter what the events say.
    try:
        _NAME.validate_python(name)
    except ValidationError as error:
        rule = rule_of(error.errors()[0])
        raise SpecError(rule, field, repr(name[:200]), f"Give another {field}") from None


def _check_expiry(expires_us: int | None, now: int) -> None:
    if expires_us is None:
        return
    if expires_us <= now:
        raise SpecError(
            f"expires_us = {expires_us}: is not in the future (now is {now}). Give a later moment"
        )
    if expires_us > _LATEST_US:
        raise SpecError(
            f"expires_us = {expires_us}: is after the year 9999. Give an earlier moment, or none "
            "for a key that does not expire"
        )
