"""Who is signed in to the dashboard: sessions and their cookies.

Must never: keep the token of a session; only its hash is stored. Must never outlive its key.
"""

from __future__ import annotations

import re
import secrets

from sqlalchemy import bindparam, delete, insert, select

from adsbpc.ledger.database import Database
from adsbpc.model.durations import MICROSECONDS_PER_SECOND
from adsbpc.service import store as tables
from adsbpc.service.auth.keys import KeyRing, hash_of
from adsbpc.service.auth.permissions import Principal
from adsbpc.service.clock import Clock, now_us

_TOKEN_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")
_ALIVE = select(tables.sessions.c.key_id).where(
    tables.sessions.c.session_hash == bindparam("session_hash"),
    tables.sessions.c.expires_us > bindparam("now_us"),
)


class Sessions:
    """A session ends after `lifetime_us`, used or not, and as soon as its key ends.

    `clock` must be the time of the real world, as browsers count the age of cookies.
    """

    def __init__(self, store: Database, keys: KeyRing, clock: Clock, lifetime_us: int) -> None:
        self._store, self._keys, self._clock = store, keys, clock
        self._lifetime_us = lifetime_us

    def open(self, key_id: str) -> str:
        """The token of a new session, for the cookie. Sessions that are over are swept away."""
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        now = now_us(self._clock)
        with self._store.writing("sessions") as connection:
            connection.execute(delete(tables.sessions).where(tables.sessions.c.expires_us <= now))
            connection.execute(
                insert(tables.sessions).values(
                    session_hash=hash_of(token),
                    key_id=key_id,
                    created_us=now,
                    expires_us=now + self._lifetime_us,
                )
            )
        return token

    def principal(self, token: str) -> Principal | None:
        """Who is signed in by this token, if its session and its key are both alive."""
        if not _TOKEN.fullmatch(token):
            return None
        given = {"session_hash": hash_of(token), "now_us": now_us(self._clock)}
        with self._store.reading() as connection:
            key_id = connection.execute(_ALIVE, given).scalar_one_or_none()
            return None if key_id is None else self._keys.principal(connection, key_id)

    def close(self, token: str) -> None:
        if not _TOKEN.fullmatch(token):
            return
        with self._store.writing("sessions") as connection:
            connection.execute(
                delete(tables.sessions).where(tables.sessions.c.session_hash == hash_of(token))
            )

    def close_all(self, key_id: str) -> None:
        """Sign out everywhere."""
        with self._store.writing("sessions") as connection:
            connection.execute(delete(tables.sessions).where(tables.sessions.c.key_id == key_id))

    def cookie(self, token: str, over_tls: bool) -> str:
        """The value of Set-Cookie that signs a browser in."""
        seconds = self._lifetime_us // MICROSECONDS_PER_SECOND
        return set_cookie(cookie_name(over_tls), token, seconds, over_tls)

    def expired_cookie(self, over_tls: bool) -> str:
        """The value of Set-Cookie that makes a browser forget."""
        return set_cookie(cookie_name(over_tls), "", 0, over_tls)


def cookie_name(over_tls: bool) -> str:
    # Browsers take a __Host- cookie from this very host over TLS only.
    return "__Host-adsbpc" if over_tls else "adsbpc"


def set_cookie(name: str, value: str, seconds: int, over_tls: bool, path: str = "/") -> str:
    """Which no script reads, and no other site makes a browser send."""
    parts = [f"{name}={value}", f"Path={path}", f"Max-Age={seconds}"]
    parts += ["HttpOnly", "SameSite=Strict"]
    if over_tls:
        parts.append("Secure")
    return "; ".join(parts)
