"""A session opens the dashboard for as long as it and its key live, to who holds its token."""

from __future__ import annotations

import re
from hashlib import sha256
from http.cookies import SimpleCookie

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from adsbpc.ledger.database import Database
from adsbpc.service import store as tables
from adsbpc.service.auth.keys import KeyRing
from adsbpc.service.auth.permissions import Principal, Role
from adsbpc.service.auth.sessions import Sessions, cookie_name
from adsbpc.service.clock import now_us
from adsbpc.service.store import open_store
from tests.service.clocks import SetClock

HOUR = 3_600


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def keys(store: Database, clock: SetClock) -> KeyRing:
    return KeyRing(store, clock)


@pytest.fixture
def sessions(store: Database, keys: KeyRing, clock: SetClock) -> Sessions:
    return Sessions(store, keys, clock, HOUR * 1_000_000)


@pytest.fixture
def key_id(keys: KeyRing) -> str:
    return keys.create(Role.ADVERTISER, "shoes", "the shop", None)[0].key_id


@pytest.fixture(scope="module")
def at_rest(tmp_path_factory: pytest.TempPathFactory) -> Sessions:
    """For properties that need no store of their own."""
    store = open_store("service.sqlite", tmp_path_factory.mktemp("sessions"))
    return Sessions(store, KeyRing(store, SetClock()), SetClock(), HOUR * 1_000_000)


def hashes(store: Database) -> set[str]:
    with store.reading() as connection:
        return set(connection.execute(select(tables.sessions.c.session_hash)).scalars())


def hash_of(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def test_a_session_from_start_to_end(sessions: Sessions, key_id: str, store: Database) -> None:
    token = sessions.open(key_id)
    assert sessions.principal(token) == Principal(key_id, Role.ADVERTISER, "shoes")
    assert hashes(store) == {hash_of(token)}
    sessions.close(token)
    assert sessions.principal(token) is None
    assert hashes(store) == set()


def test_a_session_ends_at_its_moment_however_busy(
    sessions: Sessions, key_id: str, clock: SetClock
) -> None:
    token = sessions.open(key_id)
    for _ in range(3):
        clock.pass_seconds(HOUR / 3 - 1)
        assert sessions.principal(token) is not None
    clock.pass_seconds(3)
    assert sessions.principal(token) is None


def test_a_session_ends_with_its_key(sessions: Sessions, keys: KeyRing, clock: SetClock) -> None:
    revoked = keys.create(Role.OPERATOR, "", "revoked", None)[0].key_id
    expires = keys.create(Role.OPERATOR, "", "expires", now_us(clock) + 60_000_000)[0].key_id
    tokens = [sessions.open(revoked), sessions.open(expires)]
    assert [sessions.principal(token) is not None for token in tokens] == [True, True]
    keys.revoke(revoked)
    assert [sessions.principal(token) is not None for token in tokens] == [False, True]
    clock.pass_seconds(60)
    assert [sessions.principal(token) is not None for token in tokens] == [False, False]


def test_a_session_of_a_key_that_never_was_signs_nobody_in(sessions: Sessions) -> None:
    assert sessions.principal(sessions.open("0" * 16)) is None


def test_signing_out_everywhere_ends_the_sessions_of_one_key(
    sessions: Sessions, keys: KeyRing, key_id: str
) -> None:
    mine = [sessions.open(key_id) for _ in range(3)]
    other = sessions.open(keys.create(Role.READER, "", "reader", None)[0].key_id)
    sessions.close(mine[0])
    assert [sessions.principal(token) is not None for token in mine] == [False, True, True]
    sessions.close_all(key_id)
    assert [sessions.principal(token) for token in mine] == [None] * 3
    assert sessions.principal(other) is not None


def test_rows_of_the_past_are_swept(
    sessions: Sessions, key_id: str, clock: SetClock, store: Database
) -> None:
    first = sessions.open(key_id)
    clock.pass_seconds(1)
    second = sessions.open(key_id)
    clock.pass_seconds(HOUR - 1)
    third = sessions.open(key_id)
    assert hashes(store) == {hash_of(second), hash_of(third)}
    assert sessions.principal(first) is None
    assert sessions.principal(second) is not None


def test_tokens_are_random_and_never_stored(
    sessions: Sessions, key_id: str, store: Database
) -> None:
    tokens = [sessions.open(key_id) for _ in range(5)]
    assert len(set(tokens)) == 5
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", token) for token in tokens)
    with store.reading() as connection:
        stored = str(connection.execute(select(tables.sessions)).all())
    assert not [token for token in tokens if token in stored]
    # Who reads the table cannot use what stands there.
    assert [sessions.principal(found) for found in hashes(store)] == [None] * 5


def test_tokens_that_no_database_takes_sign_nobody_in(sessions: Sessions) -> None:
    for bad in ("", "\x00", "\ud800", "é" * 43, "A" * 43 + "\n", "A" * 100_000):
        assert sessions.principal(bad) is None
        sessions.close(bad)


@settings(max_examples=50)
@given(st.text() | st.from_regex(r"[A-Za-z0-9_-]{43}", fullmatch=True))
def test_no_other_text_is_a_session(at_rest: Sessions, text: str) -> None:
    assert at_rest.principal(text) is None


def attributes(set_cookie: str) -> dict[str, str]:
    [(name, morsel)] = SimpleCookie(set_cookie).items()
    found = {key: str(value) for key, value in morsel.items() if value}
    return {"name": name, "value": morsel.value, **found}


def test_cookies_as_a_browser_reads_them(at_rest: Sessions) -> None:
    expected = {
        "name": "adsbpc",
        "value": "A" * 43,
        "path": "/",
        "max-age": "3600",
        "httponly": "True",
        "samesite": "Strict",
    }
    assert attributes(at_rest.cookie("A" * 43, over_tls=False)) == expected
    over_tls = {**expected, "name": "__Host-adsbpc", "secure": "True"}
    assert attributes(at_rest.cookie("A" * 43, over_tls=True)) == over_tls
    assert (cookie_name(False), cookie_name(True)) == ("adsbpc", "__Host-adsbpc")


@pytest.mark.parametrize("over_tls", [False, True])
def test_signing_out_empties_the_very_same_cookie(at_rest: Sessions, over_tls: bool) -> None:
    signed_in = attributes(at_rest.cookie("A" * 43, over_tls))
    signed_out = attributes(at_rest.expired_cookie(over_tls))
    assert signed_out == {**signed_in, "value": "", "max-age": "0"}
    # A cookie of this host belongs to no domain.
    assert "domain" not in at_rest.cookie("A" * 43, over_tls).lower()
