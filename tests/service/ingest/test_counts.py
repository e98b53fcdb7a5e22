"""Counts add up by hour, sender and verdict."""

from __future__ import annotations

from adsbpc.ledger.database import Database
from adsbpc.model.durations import MICROSECONDS_PER_HOUR
from adsbpc.service.clock import now_us
from adsbpc.service.ingest.batches import Counts, HourlyCount, add_counts
from tests.service.clocks import SetClock

ACCEPTED = ("impressions", "publisher:P-1", "accepted")
BATCHES = ("impressions", "publisher:P-1", "")


def add(store: Database, moment_us: int, numbers: dict[tuple[str, str, str], int]) -> None:
    with store.writing("events") as connection:
        add_counts(connection, moment_us, numbers)


def test_counts_add_up_within_an_hour(store: Database) -> None:
    clock = SetClock()
    counts = Counts(store, clock)
    assert counts.by_hour(1_000) == []
    noon = now_us(clock)
    for moment_us in (noon, noon + MICROSECONDS_PER_HOUR - 1):
        add(store, moment_us, {ACCEPTED: 2, BATCHES: 1})
    add(store, noon + MICROSECONDS_PER_HOUR, {ACCEPTED: 5})
    expected = [
        HourlyCount(noon, *BATCHES, 2),
        HourlyCount(noon, *ACCEPTED, 4),
        HourlyCount(noon + MICROSECONDS_PER_HOUR, *ACCEPTED, 5),
    ]
    assert counts.by_hour(2) == expected
    clock.pass_seconds(3_600)
    assert counts.by_hour(1) == expected[2:]
    assert counts.by_hour(2) == expected
    clock.pass_seconds(3_600)
    assert counts.by_hour(2) == expected[2:]


def test_senders_and_sources_are_counted_apart(store: Database) -> None:
    clock = SetClock()
    numbers = {
        ("impressions", "publisher:P-1", "no user"): 1,
        ("impressions", "publisher:P-2", "no user"): 2,
        ("conversions", "advertiser:Ad-1", "duplicate"): 3,
    }
    add(store, now_us(clock), numbers)
    found = Counts(store, clock).by_hour(1)
    assert {(each.source, each.owner, each.verdict): each.number for each in found} == numbers
