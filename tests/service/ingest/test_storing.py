"""Batches are stored once, whole, and answered when they are on the disk."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adsbpc.events.schema import Reason
from adsbpc.ledger.database import Database
from adsbpc.service.http.problems import Problem
from adsbpc.service.ingest import batches
from adsbpc.service.ingest.batches import Counts
from adsbpc.service.ingest.event_files import EventFiles
from adsbpc.service.ingest.intake import Answer, Batch, Intake
from adsbpc.service.ingest.rows import Source
from adsbpc.service.store import open_store
from tests.service.clocks import START, SetClock
from tests.service.pushed import (
    BEFORE,
    CONVERSION,
    IMPRESSION,
    PATIENT,
    Opener,
    add,
    add_one,
    batch,
    files_in,
    ids,
    moment,
    numbered,
    problems,
    stored,
)


def test_a_batch_is_stored_and_answered(
    intake: Intake, files: EventFiles, store: Database, clock: SetClock
) -> None:
    rows: list[Any] = [
        IMPRESSION,
        {**IMPRESSION, "kind": "x"},
        IMPRESSION,
        {"usr": 1},
        *numbered(2, 2),
    ]
    assert add_one(intake, batch("k", rows)).model_dump() == {
        "batch_key": "k",
        "rows": 6,
        "accepted": 3,
        "duplicates": 1,
        "quarantined": 2,
        "verdicts": [
            {"row": 1, "verdict": "quarantined", "reason": Reason.UNKNOWN_KIND},
            {"row": 2, "verdict": "duplicate", "reason": Reason.REPEATED_ID},
            {"row": 3, "verdict": "quarantined", "reason": "unknown field: usr"},
        ],
        "after_release": 0,
        "after_count": 0,
        "last_event": moment(BEFORE),
        "advertisers": {"Ad-1": 3},
        "repeated": False,
    }
    assert ids(files) == {"e1": 1, "e2": 1, "e3": 1}
    counted = {each.verdict: each.number for each in Counts(store, clock).by_hour(1)}
    assert counted == {
        "": 1,
        "accepted": 3,
        "duplicate": 1,
        Reason.UNKNOWN_KIND: 1,
        "unknown field": 1,
    }


def test_a_repeated_batch_gets_its_first_answer(
    intake: Intake, opened: Opener, files: EventFiles, store: Database, clock: SetClock
) -> None:
    one = batch("k", [IMPRESSION, IMPRESSION, 5])
    first = add_one(intake, one)
    again = first.model_copy(update={"repeated": True})
    assert not first.repeated
    # On this server, on another, and after a day.
    assert add_one(intake, one) == again
    clock.pass_seconds(86_400)
    assert add_one(opened(), one) == again
    assert ids(files) == {"e1": 1}
    numbers = Counts(store, clock).by_hour(48)
    assert sum(each.number for each in numbers if not each.verdict) == 1
    assert [path.name for path in files.folder.iterdir()] == [
        path.name for path in files.live("impressions", "Ad-1")
    ]


def test_another_body_under_the_same_key_is_refused(intake: Intake, files: EventFiles) -> None:
    add_one(intake, batch("k", [IMPRESSION]))
    other = batch("k", numbered(5, 1))
    with pytest.raises(Problem, match="409 Key used before"):
        add_one(intake, other)
    assert ids(files) == {"e1": 1}
    # The key belongs to its sender and source.
    assert not add_one(intake, batch("k", numbered(5, 1), owner="publisher:P-2")).repeated
    sale = batch("k", [CONVERSION], "conversions", owner="publisher:P-1")
    assert not add_one(intake, sale).repeated


def test_batches_that_wait_are_stored_together(opened: Opener, files: EventFiles) -> None:
    intake = opened(start=False)
    one, other = batch("k", numbered(1, 2)), batch("k", numbered(3, 1))
    group = [one, batch("l", numbered(2, 3)), one, other, batch("m", [CONVERSION], "conversions")]
    threading.Timer(0.1, intake.start).start()
    first, second, again, refused, sale = add(intake, *group)
    assert isinstance(first, Answer)
    assert isinstance(second, Answer)
    assert isinstance(sale, Answer)
    assert (first.accepted, second.accepted, sale.accepted) == (2, 2, 1)
    assert [verdict.row for verdict in second.verdicts] == [0]
    assert again == first.model_copy(update={"repeated": True})
    assert isinstance(refused, Problem)
    assert refused.status == 409
    assert ids(files) == {"e1": 1, "e2": 1, "e3": 1, "e4": 1}
    assert len(files.live("impressions", "Ad-1")) == 1
    assert len(files.live("conversions", "Ad-1")) == 1


def test_a_repeated_batch_among_fresh_ones(
    intake: Intake, opened: Opener, files: EventFiles
) -> None:
    """The others of its group are stored, without rows of it."""
    old = batch("old", numbered(1, 2))
    add_one(intake, old)
    another = opened(start=False)
    threading.Timer(0.1, another.start).start()
    found = add(another, batch("k", numbered(10, 2)), old, batch("l", numbered(20, 2)))
    assert [each.repeated for each in found if isinstance(each, Answer)] == [False, True, False]
    assert ids(files) == Counter(f"e{number}" for number in (1, 2, 10, 11, 20, 21))
    assert len(list(files.folder.iterdir())) == 2


def test_batches_without_good_rows_have_no_file(intake: Intake, files: EventFiles) -> None:
    assert add_one(intake, batch("empty", [])).rows == 0
    bad = batch("bad", [{}, 1])
    assert add_one(intake, bad).quarantined == 2
    assert add_one(intake, bad).repeated
    assert list(files.folder.iterdir()) == []


def test_files_know_their_advertiser(intake: Intake, files: EventFiles) -> None:
    add_one(intake, batch("k", numbered(1, 2)))
    add_one(intake, batch("l", [*numbered(3, 1), *numbered(4, 1, advertiser_id="Ad-2")]))
    assert len(files.live("impressions", "Ad-1")) == 2
    assert len(files.live("impressions", "Ad-2")) == 1


def test_conversions_arrive_when_they_are_stored(
    intake: Intake, files: EventFiles, clock: SetClock
) -> None:
    clock.pass_seconds(60)
    ahead = START + timedelta(minutes=4)
    rows = [CONVERSION, {**CONVERSION, "event_id": "e2", "timestamp": ahead.isoformat()}]
    add_one(intake, batch("k", rows, "conversions", clock=clock))
    arrived = {row["event_id"]: row["arrived_at"] for row in stored(files, "conversions")}
    # A sender's clock that is ahead must not cost it a row.
    assert arrived == {"e1": START + timedelta(seconds=60), "e2": ahead}


def test_servers_that_race_store_a_batch_once(
    opened: Opener, files: EventFiles, store: Database, clock: SetClock
) -> None:
    """Each batch to two servers at the same time, some under the same key with another body."""
    intakes = [opened(), opened()]
    one = [batch(f"k{number}", numbered(10 * number, 3)) for number in range(30)]
    other = [
        *one[:25],
        *(batch(f"k{number}", numbered(10 * number + 5, 2)) for number in range(25, 30)),
    ]

    async def race() -> list[tuple[Answer | BaseException, Answer | BaseException]]:
        calls = [
            asyncio.gather(intakes[0].add(first), intakes[1].add(second), return_exceptions=True)
            for first, second in zip(one, other, strict=True)
        ]
        return list(await asyncio.gather(*calls))

    for number, pair in enumerate(asyncio.run(race())):
        if number < 25:
            first, second = pair
            assert isinstance(first, Answer)
            assert isinstance(second, Answer)
            assert first.repeated != second.repeated
            assert first.model_copy(update={"repeated": second.repeated}) == second
        else:
            assert problems(pair) == [409]
    found = ids(files)
    assert set(found.values()) == {1}
    for number in range(25, 30):
        kept = {f"e{10 * number + k}" for k in range(3)}, {f"e{10 * number + k}" for k in (5, 6)}
        assert {name for name in found if int(name[1:]) // 10 == number} in kept
    batches_counted = [each for each in Counts(store, clock).by_hour(1) if not each.verdict]
    assert sum(each.number for each in batches_counted) == 30
    live = {path.name for path in files.live("impressions", "Ad-1")}
    assert {path.name for path in files.folder.iterdir()} == live


@settings(max_examples=25)
@given(data=st.data())
def test_any_batches_are_stored_as_a_plain_loop_would(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of two senders and both sources, in groups of any size, with repeated keys and event ids."""
    folder = tmp_path_factory.mktemp("any")
    clock = SetClock()
    store = open_store("service.sqlite", folder)
    files = files_in(store, folder, clock)
    intake = Intake(store, files, clock, 64, PATIENT)
    keys: dict[batches.BatchId, tuple[str, Answer]] = {}
    seen: set[tuple[str, str, str, str]] = set()
    expected: Counter[tuple[str, str, str | None]] = Counter()
    rows_of: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
        st.fixed_dictionaries(
            {
                "user_id": st.sampled_from(["u1", "u2", ""]),
                "event_id": st.sampled_from(["a", "b", "c", None]),
            }
        ),
        max_size=4,
    )
    intake.start()
    for _ in range(data.draw(st.integers(1, 4))):
        group: list[Batch] = []
        for _ in range(data.draw(st.integers(1, 4))):
            source: Source = data.draw(st.sampled_from(["impressions", "conversions"]))
            whole = IMPRESSION if source == "impressions" else CONVERSION
            rows = [{**whole, **fields} for fields in data.draw(rows_of)]
            key = data.draw(st.sampled_from(["k1", "k2", "k3", "k4"]))
            group.append(batch(key, rows, source, owner=data.draw(st.sampled_from("xy"))))
        for one, answer in zip(group, add(intake, *group), strict=True):
            if one.id in keys:
                body_hash, first = keys[one.id]
                if body_hash != one.body_hash:
                    assert isinstance(answer, Problem)
                    assert answer.status == 409
                else:
                    assert answer == first.model_copy(update={"repeated": True})
                continue
            assert isinstance(answer, Answer)
            assert not answer.repeated
            keys[one.id] = one.body_hash, answer
            accepted = 0
            for row in one.checked.table.to_pylist():
                mark = (one.source, one.owner, row["user_id"], row["event_id"])
                if row["event_id"] is None or mark not in seen:
                    accepted += 1
                    seen.add(mark)
                    expected[one.source, row["user_id"], row["event_id"]] += 1
            assert answer.accepted == accepted
    intake.close()
    sources: tuple[Source, ...] = ("impressions", "conversions")
    found = Counter(
        (source, row["user_id"], row["event_id"])
        for source in sources
        for row in stored(files, source)
    )
    store.close()
    assert found == expected


def test_a_group_is_bounded(
    opened: Opener, files: EventFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    write = EventFiles.write

    def noted(self: EventFiles, source: Source, table: pa.Table) -> str:
        sizes.append(table.num_rows)
        return write(self, source, table)

    monkeypatch.setattr("adsbpc.service.ingest.intake._MOST_ROWS", 10)
    monkeypatch.setattr(EventFiles, "write", noted)
    intake = opened(start=False)
    threading.Timer(0.1, intake.start).start()
    counts = [4, 6, 1, 12, 3, 7]
    add(intake, *(batch(f"k{k}", numbered(100 * k, count)) for k, count in enumerate(counts)))
    assert sizes == [10, 1, 12, 10]
