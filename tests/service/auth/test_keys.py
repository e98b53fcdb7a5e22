"""Keys open what they should, while they should, and their secrets stay nowhere."""

from __future__ import annotations

import hmac
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from hashlib import sha256
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, select

from adsbpc.errors import SpecError
from adsbpc.ledger.database import Database
from adsbpc.service import store as tables
from adsbpc.service.auth.keys import KeyRecord, KeyRing, without_secrets
from adsbpc.service.auth.permissions import Principal, Role
from adsbpc.service.clock import now_us
from adsbpc.service.store import open_store
from tests.service.clocks import SetClock

SECOND = 1_000_000
NEVER_MADE = f"adsbpc_{'0' * 16}_{'A' * 43}"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def keys(store: Database, clock: SetClock) -> KeyRing:
    return KeyRing(store, clock)


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """For properties that need no store of their own."""
    return open_store("service.sqlite", tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def ring(shared_store: Database) -> KeyRing:
    return KeyRing(shared_store, SetClock())


@pytest.fixture(scope="module")
def key(ring: KeyRing) -> str:
    return ring.create(Role.PUBLISHER, "news", "a key", None)[1]


def rows(store: Database) -> list[dict[str, object]]:
    with store.reading() as connection:
        return [dict(row) for row in connection.execute(select(tables.keys)).mappings()]


def speaker(keys: KeyRing, store: Database, key_id: str) -> Principal | None:
    with store.reading() as connection:
        return keys.principal(connection, key_id)


def test_a_key_from_start_to_end(keys: KeyRing, store: Database, clock: SetClock) -> None:
    assert not keys.has_operator()
    expiry = now_us(clock) + 60 * SECOND
    record, text = keys.create(Role.ADVERTISER, "shoes", "the shop", expiry)
    assert re.fullmatch(r"adsbpc_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", text)
    assert record == KeyRecord(
        record.key_id, Role.ADVERTISER, "shoes", "the shop", now_us(clock), expiry, None
    )
    assert keys.list() == [record]
    expected = Principal(record.key_id, Role.ADVERTISER, "shoes")
    assert keys.authenticate(text) == speaker(keys, store, record.key_id) == expected
    assert not keys.has_operator()
    assert keys.revoke(record.key_id)
    assert keys.authenticate(text) is speaker(keys, store, record.key_id) is None
    assert keys.list() == [replace(record, revoked_us=now_us(clock))]


def test_an_expired_key_stops_at_its_moment(
    keys: KeyRing, store: Database, clock: SetClock
) -> None:
    record, text = keys.create(Role.OPERATOR, "", "short", now_us(clock) + SECOND)
    clock.pass_seconds(0.999999)
    assert keys.authenticate(text) == speaker(keys, store, record.key_id)
    assert keys.authenticate(text) is not None
    assert keys.has_operator()
    assert record.state(now_us(clock)) == "valid"
    clock.pass_seconds(0.000001)
    assert keys.authenticate(text) is speaker(keys, store, record.key_id) is None
    assert not keys.has_operator()
    assert record.state(now_us(clock)) == "expired"


def test_revoking_is_for_good_and_keeps_its_first_moment(keys: KeyRing, clock: SetClock) -> None:
    record, text = keys.create(Role.OPERATOR, "", "gone", None)
    _, other = keys.create(Role.READER, "", "stays", None)
    assert keys.has_operator()
    assert keys.revoke(record.key_id)
    first = keys.list()
    assert not keys.has_operator()
    clock.pass_seconds(-3600)
    assert not keys.revoke(record.key_id)
    assert keys.authenticate(text) is None
    assert keys.authenticate(other) is not None
    assert keys.list() == first
    assert {r.key_id: r.state(0) for r in first}[record.key_id] == "revoked"


def test_a_key_revoked_on_one_server_stops_on_another(
    keys: KeyRing, store: Database, clock: SetClock
) -> None:
    other = KeyRing(store, clock)
    record, text = keys.create(Role.READER, "shoes", "reader", None)
    assert other.authenticate(text) is not None
    keys.revoke(record.key_id)
    assert other.authenticate(text) is None


def test_the_first_of_two_who_revoke_did_it(keys: KeyRing) -> None:
    record, _ = keys.create(Role.OPERATOR, "", "raced", None)
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: keys.revoke(record.key_id), range(4)))
    assert sorted(done) == [False, False, False, True]


def test_only_a_hash_is_stored(keys: KeyRing, store: Database, tmp_path: Path) -> None:
    record, text = keys.create(Role.PUBLISHER, "news", "label", None)
    secret = text.removeprefix(f"adsbpc_{record.key_id}_")
    [row] = rows(store)
    assert row == {**asdict(record), "secret_hash": sha256(secret.encode()).hexdigest()}
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes()
    for shown in (repr(record), str(asdict(record)), repr(keys.list()), repr(keys)):
        assert secret not in shown
        assert str(row["secret_hash"]) not in shown


def test_ids_and_secrets_belong_together(keys: KeyRing) -> None:
    made = [keys.create(Role.READER, "", f"reader {n}", None) for n in range(3)]
    assert len({text for _, text in made}) == 3
    assert [record for record, _ in made] == sorted(keys.list(), key=lambda r: r.label)
    for (one, _), (_, another) in permutations(made, 2):
        secret = another.split("_", 2)[2]
        assert keys.authenticate(f"adsbpc_{one.key_id}_{secret}") is None


def test_keys_are_listed_oldest_first(keys: KeyRing, clock: SetClock) -> None:
    made = []
    for number in range(5):
        made.append(keys.create(Role.READER, "", f"reader {number}", None)[0])
        clock.pass_seconds(1)
    assert keys.list() == made


@settings(max_examples=60)
@given(position=st.integers(0, 66), letter=st.characters())
def test_one_other_letter_is_another_key(
    ring: KeyRing, key: str, position: int, letter: str
) -> None:
    changed = key[:position] + letter + key[position + 1 :]
    assert (ring.authenticate(changed) is not None) == (changed == key)


@settings(max_examples=100)
@given(text=st.text(max_size=100) | st.from_regex(r"adsbpc_[0-9a-f]*_.*"))
@example("")
@example("\ud800")
@example("adsbpc_\x00")
@example(NEVER_MADE)
@example(NEVER_MADE + "\n")
@example("adsbpc_' OR 1=1 --_" + "A" * 43)
@example("adsbpc_" + "\u0661" * 16 + "_" + "A" * 43)
def test_no_other_text_opens_anything(
    ring: KeyRing, shared_store: Database, key: str, text: str
) -> None:
    assert ring.authenticate(text) is None
    assert ring.authenticate(key + text) == (ring.authenticate(key) if text == "" else None)
    assert speaker(ring, shared_store, text) is None
    assert ring.revoke(text) is False


def test_ids_that_no_database_takes_are_unknown(keys: KeyRing, store: Database) -> None:
    for bad in ("\x00", "\ud800", "0" * 15 + "\x00", "x" * 10_000, "0" * 16 + "\n"):
        assert speaker(keys, store, bad) is None
        assert keys.revoke(bad) is False
        assert keys.authenticate(f"adsbpc_{bad}_{'A' * 43}") is None


@pytest.mark.parametrize(
    ("role", "subject", "label", "names"),
    [
        (Role.OPERATOR, "shoes", "label", "subject = 'shoes'"),
        (Role.PUBLISHER, "", "label", "subject = ''"),
        (Role.ADVERTISER, "", "label", "subject = ''"),
        (Role.PUBLISHER, "two\nlines", "label", "subject = 'two\\nlines'"),
        (Role.READER, "\x00", "label", "subject = '\\x00'"),
        (Role.READER, "\ud800", "label", "subject = '\\ud800'"),
        (Role.READER, "x" * 201, "label", "subject = 'xxx"),
        (Role.READER, "", "", "label = ''"),
        (Role.READER, "", "tab\t", "label = 'tab\\t'"),
        (Role.READER, "", "x" * 201, "label = 'xxx"),
    ],
)
def test_bad_names_are_refused(
    ring: KeyRing, role: Role, subject: str, label: str, names: str
) -> None:
    before = ring.list()
    with pytest.raises(SpecError) as caught:
        ring.create(role, subject, label, None)
    assert str(caught.value).startswith(names)
    assert len(str(caught.value)) < 400
    assert ring.list() == before


def test_names_are_kept_letter_by_letter(keys: KeyRing) -> None:
    """Events say the id in their own spelling: no accent may be written in another way."""
    for subject in ("e\u0301te\u0301", "\u00e9t\u00e9", " x ", "'; DROP TABLE adsbpc_keys; --"):
        record, text = keys.create(Role.PUBLISHER, subject, "\U0001f511", None)
        found = keys.authenticate(text)
        assert found is not None
        assert found.subject == record.subject == subject
    assert {record.label for record in keys.list()} == {"\U0001f511"}
    assert len(keys.create(Role.PUBLISHER, "x" * 200, "y" * 200, None)[0].subject) == 200


def test_expiry_is_in_the_future_of_a_calendar(keys: KeyRing, clock: SetClock) -> None:
    now = now_us(clock)
    for expires_us, rule in ((now, "future"), (0, "future"), (-1, "future"), (2**63, "year 9999")):
        with pytest.raises(SpecError, match=f"expires_us = {expires_us}: .*{rule}"):
            keys.create(Role.OPERATOR, "", "label", expires_us)
    assert keys.list() == []
    for expires_us in (now + 1, 253_402_300_799_999_999):
        assert keys.create(Role.OPERATOR, "", "label", expires_us)[0].expires_us == expires_us


def test_an_operator_who_expired_or_was_revoked_is_none(keys: KeyRing, clock: SetClock) -> None:
    keys.create(Role.OPERATOR, "", "expires", now_us(clock) + SECOND)
    revoked, _ = keys.create(Role.OPERATOR, "", "revoked", None)
    keys.create(Role.READER, "", "reader", None)
    keys.revoke(revoked.key_id)
    assert keys.has_operator()
    clock.pass_seconds(1)
    assert not keys.has_operator()
    for _ in range(2):
        keys.create(Role.OPERATOR, "", "two of them", None)
    assert keys.has_operator()


def test_authentication_is_one_query_by_the_primary_key(tmp_path: Path) -> None:
    store = open_store("service.sqlite", tmp_path)
    keys = KeyRing(store, SetClock())
    text = keys.create(Role.READER, "", "reader", None)[1]
    queries: list[tuple[str, Any]] = []

    @event.listens_for(store._engine, "before_cursor_execute")
    def remember(_c: object, _cursor: object, statement: str, values: Any, *_: object) -> None:
        queries.append((statement, values))

    assert keys.authenticate(text) is not None
    [(statement, values)] = [found for found in queries if found[0].startswith("SELECT")]
    queries.clear()
    # An unknown key and a wrong one ask the very same.
    assert keys.authenticate(NEVER_MADE) is None
    assert keys.authenticate(text[:-43] + "A" * 43) is None
    assert [query for query, _ in queries if query.startswith("SELECT")] == [statement] * 2
    with store.reading() as connection:
        steps = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
    assert [step[-1] for step in steps] == [
        "SEARCH adsbpc_keys USING INDEX sqlite_autoindex_adsbpc_keys_1 (key_id=?)"
    ]


def test_every_key_costs_one_comparison(
    ring: KeyRing, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known, wrong and unknown alike: how long an answer takes says nothing."""
    compared: list[tuple[str, str]] = []
    compare = hmac.compare_digest

    def remember(one: str, other: str) -> bool:
        compared.append((one, other))
        return compare(one, other)

    monkeypatch.setattr(hmac, "compare_digest", remember)
    for text in (key, key[:-43] + "A" * 43, NEVER_MADE):
        ring.authenticate(text)
    assert [(len(one), len(other)) for one, other in compared] == [(64, 64)] * 3


def test_a_key_is_found_without_reading_the_others(tmp_path: Path) -> None:
    store = open_store("service.sqlite", tmp_path)
    with store.reading() as connection:
        asked = "EXPLAIN QUERY PLAN SELECT * FROM adsbpc_keys WHERE key_id = 'x'"
        (step,) = connection.exec_driver_sql(asked).all()
    assert "SEARCH adsbpc_keys USING INDEX" in str(step)
    store.close()


@given(before=st.text(), after=st.text(), cut=st.integers(1, 43))
def test_secrets_are_cut_out_of_any_text(key: str, before: str, after: str, cut: int) -> None:
    secret = key[-43:]
    shown = without_secrets(before + key + after)
    assert secret not in shown
    assert without_secrets(shown) == shown
    # Half a key too: a text may have been cut inside it.
    assert without_secrets(f"<{key[: 24 + cut]}>") == f"<{key[:23]}_***>"
    assert without_secrets(key.upper()) == f"{key[:23].upper()}_***"


@given(st.text())
def test_other_texts_are_shown_as_they_are(text: str) -> None:
    assert without_secrets(text) == text
