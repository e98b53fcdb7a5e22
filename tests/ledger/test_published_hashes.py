"""Hashes and proofs that are published tell nothing of what is secret."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from adsbpc.ledger import Ledger
from adsbpc.ledger import rows as ledger_rows
from adsbpc.ledger.entries import Entry, hash_of
from adsbpc.ledger.provenance import is_committed
from adsbpc.model import Provenance, Release
from tests.ledger.entries import STEP, opening_of, release_of

PLAUSIBLE = range(-500, 501)


def step_of(threshold: int) -> dict[str, Any]:
    return {**STEP, "secret": {"up": [7, threshold]}}


def rows_of(ledger: Path) -> list[tuple[Entry, str, str]]:
    """Entries with body and hash, read without the program."""
    names = ", ".join(field.name for field in fields(Entry))
    with closing(sqlite3.connect(ledger)) as connection:
        found = connection.execute(
            f"SELECT {names}, body, hash FROM adsbpc_entries ORDER BY position"
        ).fetchall()
    return [(Entry(*row[:-2]), row[-2], row[-1]) for row in found]


def carried(text: str) -> Provenance:
    found = Release.from_text(text).ledger
    assert found is not None
    return found


def guesses(ledger: Path, bodies: Iterable[str]) -> list[str]:
    """Bodies of the state that explain the hash of its entry, for somebody who knows everything
    else: moments and chain as well as what was published."""
    entries = rows_of(ledger)
    (place,) = (k for k, (entry, _, _) in enumerate(entries) if entry.kind == "state")
    entry, previous, published = entries[place][0], entries[place - 1][2], entries[place][2]
    return [
        body
        for body in bodies
        if replace(entry, body_hash=hash_of(body)).sealed(previous) == published
    ]


def test_secret_state_cannot_be_guessed_from_a_hash(tmp_path: Path) -> None:
    ledger = Ledger("ledger.sqlite", tmp_path)
    text, _ = ledger.commit(release_of(1, 5), step_of(123), opening_of(), ["plan", 123])
    # What is published of the state is its entry's hash, in the release and in the mark's.
    assert carried(text).hash in {row[2] for row in rows_of(tmp_path / "ledger.sqlite")}
    tried = [json.dumps(step_of(threshold)) for threshold in PLAUSIBLE]
    assert guesses(tmp_path / "ledger.sqlite", tried) == []
    # It is the nonce that hides it.
    (body,) = (
        body for entry, body, _ in rows_of(tmp_path / "ledger.sqlite") if entry.kind == "state"
    )
    nonce = json.loads(body)["nonce"]
    assert len(bytes.fromhex(nonce)) == 32
    tried = [
        json.dumps({"format": 1, **step_of(threshold), "nonce": nonce}) for threshold in PLAUSIBLE
    ]
    assert guesses(tmp_path / "ledger.sqlite", tried) == [body]


def test_a_commitment_cannot_be_guessed(tmp_path: Path) -> None:
    """Neither without a key, nor with anything for a key that is published."""
    ledger = Ledger("ledger.sqlite", tmp_path)
    text, _ = ledger.commit(release_of(1, 5), step_of(123), opening_of(), ["plan", 123])
    release, record, mark = (
        Release.from_text(text),
        ledger.snapshot("acme", "spring").scope,
        ledger.mark("acme"),
    )
    assert record is not None
    assert mark is not None
    public = ["", record.identity, mark.head.hash, carried(text).hash, text, mark.to_text()]
    for key in public:
        assert not any(is_committed(release, key, ["plan", value]) for value in PLAUSIBLE)
    assert [value for value in PLAUSIBLE if ledger.committed(release, ["plan", value])] == [123]
    with ledger._database.reading() as connection:
        key = ledger_rows.scope_key(connection, "acme")
    assert not any(key in each for each in public)


def test_the_same_steps_have_other_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the same moment, with the same nonce of the scope."""

    class Stopped:
        """A clock, and a source of nonces."""

        hex = "0" * 32

        @classmethod
        def now(cls, _zone: object) -> Stopped:
            return cls()

        def isoformat(self, timespec: str) -> str:
            return "2026-03-01T00:00:00.000+00:00"

    monkeypatch.setattr(ledger_rows, "datetime", Stopped)
    monkeypatch.setattr(ledger_rows, "uuid4", Stopped)
    for name in ("one", "other"):
        Ledger(name, tmp_path).commit(release_of(1, 5), STEP, opening_of())
    one, other = (rows_of(tmp_path / name) for name in ("one", "other"))
    kinds = [entry.kind for entry, _, _ in one]
    same = [mine[2] == theirs[2] for mine, theirs in zip(one, other, strict=True)]
    assert dict(zip(kinds, same, strict=True)) == {
        "scope": True, "campaign": True, "charge": True, "state": False, "release": False,
    }  # fmt: skip


def test_state_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """It had no nonce, and its releases carried nothing."""
    ledger = Ledger("ledger.sqlite", tmp_path)
    ledger.commit(release_of(1, 5), STEP, opening_of())
    old = release_of(2, 5).to_text().replace(',"ledger":null', "")
    with ledger._database.writing("acme") as connection:
        for kind, body in (("state", json.dumps(STEP)), ("release", old)):
            ledger_rows.append(connection, "acme", kind, campaign="spring", slot=2, body=body)
    assert ledger.steps("acme", "spring") == [STEP, STEP]
    assert ledger.releases("acme", "spring")[1] == old
    assert Release.from_text(old).ledger is None
    assert ledger.verify("acme").problem is None
    ledger.commit(release_of(3, 5), STEP)


def test_a_release_carries_the_entry_before_its_own(tmp_path: Path) -> None:
    ledger = Ledger("ledger.sqlite", tmp_path)
    texts = [ledger.commit(release_of(1, 5, 6), STEP, opening_of())[0]]
    texts.append(ledger.commit(release_of(2, 5, 6), STEP)[0])
    entries = rows_of(tmp_path / "ledger.sqlite")
    for text in texts:
        found = carried(text)
        entry, _, sealed = entries[found.position - 1]
        slot = Release.from_text(text).slot
        assert (entry.kind, entry.slot, sealed) == ("state", slot, found.hash)


def test_a_seal_holds_every_byte(tmp_path: Path) -> None:
    ledger = Ledger("ledger.sqlite", tmp_path)
    text, _ = ledger.commit(release_of(1, 5), STEP, opening_of())
    assert ledger.sealed("acme", text)
    seal = carried(text).seal
    assert seal is not None
    for changed in (
        text.replace('"pico_rho":5', '"pico_rho":4'),
        text.replace('"campaign":"spring"', f'"campaign":"spring{seal}"'),
        text.replace("{", "{ ", 1),
        text.replace(seal, ""),
        text.replace(seal, seal[::-1]),
        text.replace(f'"seal":"{seal}"', f'"seal":"{seal}","seal":"{seal}"'),
        text.replace(f'"seal":"{seal}"', '"seal":null'),
    ):
        assert changed != text
        assert not ledger.sealed("acme", changed)
    other = Ledger("other.sqlite", tmp_path)
    other.commit(release_of(1, 5), STEP, opening_of())
    assert not other.sealed("acme", text)
