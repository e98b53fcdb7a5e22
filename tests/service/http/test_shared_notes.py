"""Bounds hold over all processes of a server, whichever of them is asked."""

from __future__ import annotations

from multiprocessing import get_context

from adsbpc.service.clock import SystemClock
from adsbpc.service.http.limits import Throttle
from adsbpc.service.http.sharing import Note, Sharing
from adsbpc.service.http.strangers import Strangers
from tests.service.clocks import SetClock

HERE, THERE = "192.0.2.1", "192.0.2.2"


def fail(sharing: Sharing, times: int) -> None:
    """A process of its own."""
    throttle = Throttle(SystemClock(), notes=sharing.notes("failures"))
    for _ in range(times):
        throttle.record_failure(HERE)


def test_wrong_keys_count_whichever_process_they_were_sent_to() -> None:
    sharing = Sharing.among(3)
    for place in range(2):
        worker = get_context("spawn").Process(target=fail, args=(sharing.at(place), 4 + place))
        worker.start()
        worker.join()
    # One who takes the place of another goes on with what that one knew.
    throttles = [Throttle(SystemClock(), notes=sharing.at(at).notes("failures")) for at in (0, 2)]
    assert [each.refused_for(HERE) for each in throttles] == [None, None]
    throttles[0].record_failure(HERE)
    for each in throttles:
        assert each.refused_for(HERE) is not None
        assert each.refused_for(THERE) is None
    throttles[1].record_success(HERE)
    assert [each.refused_for(HERE) for each in throttles] == [None, None]


def test_lines_of_strangers_do_not_multiply_with_processes() -> None:
    clock, told, sharing = SetClock(), list[str](), Sharing.among(4)
    workers = [Strangers(clock, told.append, sharing.at(at).notes("requests")) for at in range(4)]
    assert sum(each.may_write(HERE) for _ in range(20) for each in workers) == 10
    addresses = [f"10.0.0.{number}" for number in range(200)]
    assert sum(each.may_write(address) for address in addresses for each in workers) == 90
    clock.pass_seconds(60)
    assert sum(each.may_write(HERE) for _ in range(20) for each in workers) == 10
    # Other lines have a bound of their own.
    assert Strangers(clock, told.append, sharing.notes("refusals")).may_write(HERE)


def test_who_comes_late_reads_what_is_left() -> None:
    sharing = Sharing.among(2)
    notes, late = sharing.notes("failures"), sharing.at(1).notes("failures")
    for moment in range(10_000):
        notes.add(Note(HERE, moment))
    assert [note.moment_us for note in late.news()] == list(range(10_000 - 4_096, 10_000))
    assert late.news() == []
    assert notes.news() == []
