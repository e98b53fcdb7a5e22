"""Marks of what was published: read, compared, and never replaced by an older one."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

import pytest

from adsbpc.errors import LedgerError
from adsbpc.ledger import Head, Ledger, Mark, MarkFile, MarkPlace, MarkTable
from adsbpc.ledger.marks import metadata
from tests.ledger.entries import STEP, opening_of, release_of, start


@pytest.fixture(params=["file", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> MarkPlace:
    if request.param == "file":
        return MarkFile(tmp_path / "elsewhere" / "witness.json", "acme")
    return MarkTable(request.getfixturevalue("postgresql_database"), "acme")


def mark(position: int, *hashes: str) -> Mark:
    return Mark("acme", Head(position, f"hash {position}"), "identity", 7, {"spring": hashes})


def test_what_a_ledger_has_to_say(tmp_path: Path) -> None:
    ledger = Ledger("ledger.sqlite", tmp_path)
    assert ledger.mark("acme") is None
    start(ledger, 5, limit=2)
    ledger.commit(release_of(2, 6), STEP)
    start(ledger, 3, campaign="summer", limit=2)
    assert ledger.mark("another") is None
    found, record = ledger.mark("acme"), ledger.snapshot("acme", "spring").scope
    assert found is not None
    assert record is not None
    assert (found.head, found.pico_rho) == (ledger.head("acme"), 5 + 6 + 3)
    assert found.identity == record.identity
    assert {name: len(hashes) for name, hashes in found.campaigns.items()} == {
        "spring": 2,
        "summer": 1,
    }
    assert Mark.from_text(found.to_text()) == found


def test_a_mark_of_an_earlier_version() -> None:
    found = Mark.from_text('{"scope": "acme", "position": 6, "hash": "0a"}')
    assert found == Mark("acme", Head(6, "0a"))
    assert found.lost_in(mark(1)) == {}


def test_a_mark_of_a_later_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mark.json"
    file.write_text(mark(3).to_text().replace('"format": 2', '"format": 3'))
    with pytest.raises(LedgerError, match="format 3: this adsbpc reads formats 1 to 2"):
        MarkFile(file, "acme").read()


def test_what_is_lost() -> None:
    whole = mark(9, "a", "b", "c")
    assert whole.lost_in(mark(1, "a")) == {"spring": [2, 3]}
    assert whole.lost_in(mark(1, "a", "x", "c", "d")) == {"spring": [2]}
    assert whole.lost_in(Mark("acme", Head(1, ""))) == {"spring": [1, 2, 3]}
    assert mark(1, "a").lost_in(whole) == {}


def test_a_place_keeps_what_it_is_given(place: MarkPlace) -> None:
    assert place.read() is None
    place.renew(lambda _: mark(3, "a"))
    assert place.read() == mark(3, "a")
    place.renew(lambda _: mark(6, "a", "b"))
    assert place.read() == mark(6, "a", "b")
    seen: list[Mark | None] = []
    place.renew(seen.append)
    assert seen == [mark(6, "a", "b")]
    assert place.read() == mark(6, "a", "b")


def test_a_refusal_leaves_the_mark(place: MarkPlace) -> None:
    place.renew(lambda _: mark(3, "a"))

    def refuse(_: Mark | None) -> Mark:
        raise LedgerError("no")

    with pytest.raises(LedgerError, match="no"):
        place.renew(refuse)
    assert place.read() == mark(3, "a")


def test_one_at_a_time(tmp_path: Path) -> None:
    """Whoever is asked for the next mark holds the lock: a mark is made and written before another
    process makes its own."""
    path = tmp_path / "mark.json"

    def check(_: Mark | None) -> Mark:
        with (tmp_path / ".mark.json.lock").open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return mark(3)

    MarkFile(path, "acme").renew(check)
    with (tmp_path / ".mark.json.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_scopes_have_marks_of_their_own(tmp_path: Path, postgresql_database: str) -> None:
    one, other = (MarkTable(postgresql_database, scope) for scope in ("acme", "another"))
    one.renew(lambda _: mark(3))
    assert other.read() is None
    MarkFile(tmp_path / "mark.json", "acme").renew(lambda _: mark(3))
    with pytest.raises(LedgerError, match=r"mark of scope 'acme', not of 'another'. Give every"):
        MarkFile(tmp_path / "mark.json", "another").read()


@pytest.mark.parametrize("content", ["{", "[]", "{}", '"x"', '{"scope": "acme", "position": "x"}'])
def test_a_mark_that_cannot_be_read(content: str, tmp_path: Path) -> None:
    file = tmp_path / "mark.json"
    file.write_text(content)
    for act in (MarkFile(file, "acme").read, lambda: MarkFile(file, "acme").renew(lambda _: None)):
        with pytest.raises(LedgerError, match=r"mark\.json: cannot be read"):
            act()
    assert file.read_text() == content


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("not a folder")
    for path in (tmp_path / "taken" / "mark.json", tmp_path):
        with pytest.raises(LedgerError, match=r"run the same command again|cannot be read"):
            MarkFile(path, "acme").renew(lambda _: mark(3))


def test_a_witness_that_does_not_answer() -> None:
    place = MarkTable("postgresql://user:hunter2@127.0.0.1:1/db", "acme")
    with pytest.raises(LedgerError, match=r"witness .*Run the same command again") as refused:
        place.read()
    assert "hunter2" not in str(refused.value)


def test_the_migrations_make_the_table_of_the_program(postgresql_database: str) -> None:
    import sqlalchemy
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    MarkTable(postgresql_database, "acme").renew(lambda _: mark(3))
    url = postgresql_database.replace("postgresql://", "postgresql+psycopg://")
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        options = {"version_table": "adsbpc_marks_schema"}
        assert (
            compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []
        )
    engine.dispose()


def test_marks_are_text_that_people_can_read(tmp_path: Path) -> None:
    ledger = Ledger("ledger.sqlite", tmp_path)
    ledger.commit(release_of(1, 5), STEP, opening_of())
    found = ledger.mark("acme")
    assert found is not None
    assert json.loads(found.to_text()).keys() == {
        "format", "scope", "position", "hash", "identity", "pico_rho", "campaigns",
    }  # fmt: skip
