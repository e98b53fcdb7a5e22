"""Marks of a store: written once each, the last one counts, and nobody goes back."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock

import pytest

from adsbpc.errors import LedgerError
from adsbpc.ledger import Head, Mark
from adsbpc.ledger.marks import MarkObjects
from adsbpc.storage import RemotePath
from tests.storage.s3 import S3Server


def mark(position: int) -> Mark:
    return Mark("acme", Head(position, f"{position:064d}"), "identity", position)


def positions(place: RemotePath) -> list[int]:
    """Of the marks that are there, in order."""
    files = sorted(str(each) for each in place.parent.glob("ledger-*.json"))
    return [json.loads(RemotePath(file).read_bytes())["position"] for file in files]


@pytest.fixture
def place(any_store: RemotePath) -> RemotePath:
    return any_store / "ledger.json"


def test_the_last_one_counts(place: RemotePath) -> None:
    marks = MarkObjects(place, "acme")
    assert marks.read() is None
    for position in (1, 5, 9):
        marks.renew(lambda _, at=position: mark(at))  # type: ignore[misc]
    assert marks.read() == MarkObjects(place, "acme").read() == mark(9)
    assert positions(place) == [1, 5, 9]
    # Nothing new, nothing to write.
    marks.renew(lambda _: mark(9))
    marks.renew(lambda _: None)
    assert positions(place) == [1, 5, 9]


def test_racing_writers_never_go_back(store: RemotePath) -> None:
    """Each notes how far a ledger is that grows all the time. All have looked before any writes:
    one is first, and the others must look again."""
    place, ledger, lock, together = store / "ledger.json", [0], Lock(), Barrier(8)

    def note(_: int) -> None:
        looks: list[Mark | None] = []

        def renewal(marked: Mark | None) -> Mark:
            looks.append(marked)
            with lock:
                ledger[0] += 1
                standing = mark(ledger[0])
            if len(looks) == 1:
                together.wait(60)
            assert marked is None or marked.head.position < standing.head.position
            return standing

        MarkObjects(place, "acme").renew(renewal)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(note, range(8)))
    found = positions(place)
    assert len(found) == 8
    assert found == sorted(set(found)), "a mark went back"
    assert ledger[0] > 8, "nobody raced: this tests nothing"
    assert MarkObjects(place, "acme").read() == mark(found[-1])


def test_a_writer_that_looked_long_ago_looks_again(place: RemotePath) -> None:
    marks, seen = MarkObjects(place, "acme"), []

    def slow(marked: Mark | None) -> Mark:
        seen.append(marked)
        if len(seen) == 1:
            # Somebody else is faster, and knows more.
            marks.renew(lambda _: mark(7))
            return mark(3)
        return mark(8)

    marks.renew(slow)
    assert seen == [None, mark(7)]
    assert positions(place) == [7, 8]


def test_an_answer_that_was_lost(place: RemotePath, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store wrote the mark, and the client hears, when it tries again, that it is there."""
    create = RemotePath.create

    def twice(self: RemotePath, content: bytes) -> None:
        create(self, content)
        create(self, content)

    monkeypatch.setattr(RemotePath, "create", twice)
    MarkObjects(place, "acme").renew(lambda _: mark(4))
    assert positions(place) == [4]


def test_many_marks_are_swept_and_the_last_one_is_found(
    place: RemotePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adsbpc.ledger.marks._KEPT", 4)
    marks = MarkObjects(place, "acme")
    for position in range(1, 24):
        marks.renew(lambda _, at=position: mark(at))  # type: ignore[misc]
        # Whatever a store lists of it: nothing, what is long gone, everything.
        for listed in ([], [1], [position // 2], list(range(1, position + 1))):
            monkeypatch.setattr(MarkObjects, "_listed", lambda self, found=listed: found)
            assert marks.read() == mark(position), listed
        monkeypatch.undo()
        monkeypatch.setattr("adsbpc.ledger.marks._KEPT", 4)
    assert positions(place) == [4, 8, 12, 16, 20, 21, 22, 23]


def test_a_store_that_lists_late(store: RemotePath, s3: S3Server) -> None:
    s3.late = True
    marks = MarkObjects(store / "ledger.json", "acme")
    for position in (1, 2, 3):
        marks.renew(lambda _, at=position: mark(at))  # type: ignore[misc]
        assert marks.read() == mark(position)
    assert list(store.glob("*")) == [], "the store lists what was written: this tests nothing"


def test_a_store_that_lets_marks_be_overwritten(store: RemotePath, s3: S3Server) -> None:
    s3.overwriting = True
    marks = MarkObjects(store / "ledger.json", "acme")
    for _ in range(2):
        with pytest.raises(LedgerError, match="was written twice"):
            marks.renew(lambda _: mark(1))
    s3.overwriting = False
    marks.renew(lambda _: mark(1))
    assert marks.read() == mark(1)


def test_a_store_that_cannot_be_asked(store: RemotePath, s3: S3Server) -> None:
    marks = MarkObjects(store / "ledger.json", "acme")
    s3.denied = {"HEAD"}
    with pytest.raises(LedgerError, match="cannot be read"):
        marks.read()
    s3.denied = {"PUT"}
    with pytest.raises(LedgerError, match=r"cannot be written .*adsbpc doctor"):
        marks.renew(lambda _: mark(1))


def test_a_mark_of_another_scope(any_store: RemotePath) -> None:
    MarkObjects(any_store / "ledger.json", "acme").renew(lambda _: mark(1))
    with pytest.raises(LedgerError, match="is the mark of scope 'acme'"):
        MarkObjects(any_store / "ledger.json", "other").read()
