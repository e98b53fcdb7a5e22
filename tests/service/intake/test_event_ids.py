"""An event id counts once for a sender and a user, as long as it is remembered."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adsbpc.service.batches import Plan, Remembered
from adsbpc.service.event_files import EventFiles
from adsbpc.service.intake import Intake
from adsbpc.service.problems import Problem
from tests.service.pushed import (
    CONVERSION,
    IMPRESSION,
    add_one,
    batch,
    ids,
)


@pytest.mark.parametrize(
    ("change", "accepted"),
    [
        ({}, 0),
        ({"user_id": "u2"}, 1),
        ({"event_id": "e2"}, 1),
        ({"advertiser_id": "Ad-2"}, 0),
        ({"event_id": None}, 1),
        # A NUL between the two could be in either; it is in neither.
        ({"user_id": "u1\\0", "event_id": "e1"}, 1),
    ],
)
def test_an_event_id_is_of_a_user(intake: Intake, change: dict[str, Any], accepted: int) -> None:
    add_one(intake, batch("k", [IMPRESSION]))
    assert add_one(intake, batch("l", [{**IMPRESSION, **change}])).accepted == accepted


def test_an_event_id_is_of_a_sender_and_a_source(intake: Intake) -> None:
    add_one(intake, batch("k", [IMPRESSION]))
    assert add_one(intake, batch("k", [IMPRESSION], owner="publisher:P-2")).accepted == 1
    sale = batch("l", [CONVERSION], "conversions", owner="publisher:P-1")
    assert add_one(intake, sale).accepted == 1


def test_rows_without_event_ids_are_never_repeated(intake: Intake, files: EventFiles) -> None:
    row = {name: value for name, value in IMPRESSION.items() if name != "event_id"}
    assert add_one(intake, batch("k", [row, row])).accepted == 2
    assert add_one(intake, batch("l", [row, IMPRESSION])).accepted == 2
    assert ids(files) == {None: 3, "e1": 1}


@settings(max_examples=200)
@given(st.lists(st.lists(st.sampled_from([None, 1, 2, 3, 4, 5]), max_size=6), max_size=6))
def test_repeated_ids_are_those_of_a_plain_loop(numbers: list[list[int | None]]) -> None:
    remembered = Remembered(1_000)
    seen: set[int] = set()
    for batch_numbers in numbers:
        rows = [{**IMPRESSION, "event_id": None if k is None else f"e{k}"} for k in batch_numbers]
        plan = Plan(0, remembered)
        plan.add(batch("k", rows))
        repeated = []
        for row, number in enumerate(batch_numbers):
            if number in seen:
                repeated.append(row)
            elif number is not None:
                seen.add(number)
        (settled,) = plan.settled.values()
        assert [verdict.row for verdict in settled.answer.verdicts] == repeated
        assert settled.answer.accepted == len(rows) - len(repeated)
        remembered.add(plan.marks)


def test_the_memory_for_event_ids_is_bounded() -> None:
    remembered = Remembered(3)
    for newest in range(10):
        remembered.add({newest})
        known = [mark for mark in range(10) if mark in remembered]
        # The newest three and at most three more, with no gap.
        assert known[-1] == newest
        assert known == list(range(known[0], newest + 1))
        assert min(3, newest + 1) <= len(known) < 6
    assert not remembered.overlaps({1, 2})
    assert remembered.overlaps({1, 9})


def test_ids_of_a_batch_that_failed_are_not_remembered(
    intake: Intake, files: EventFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> str:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(EventFiles, "write", full)
        with pytest.raises(Problem, match="503 Not stored"):
            add_one(intake, batch("k", [IMPRESSION]))
    answer = add_one(intake, batch("k", [IMPRESSION]))
    assert (answer.accepted, answer.repeated) == (1, False)
    assert ids(files) == {"e1": 1}
