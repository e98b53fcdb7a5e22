"""Processes count together, and what one has counted stays."""

from __future__ import annotations

from multiprocessing import get_context

from adsbpc.service.http.sharing import SharedNumbers, shared_memory


def count(memory: object, place: int, times: int) -> None:
    numbers = SharedNumbers(memory, place)
    for _ in range(times):
        numbers.add_one("requests", "/", "200")
    numbers.add_one("ended", str(place))


def test_all_are_told_by_each() -> None:
    memory = shared_memory(3)
    context = get_context("spawn")
    for times in (5, 7):
        # The second ones go on where the first ones were.
        workers = [context.Process(target=count, args=(memory, at, times)) for at in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    expected = {("requests", "/", "200"): 24, ("ended", "0"): 2, ("ended", "1"): 2}
    for place in range(3):
        assert SharedNumbers(memory, place).totals() == expected


def test_more_labels_than_there_is_room_for_are_left_out() -> None:
    numbers = SharedNumbers(shared_memory(1), 0)
    for number in range(3_000):
        numbers.add_one(str(number))
    numbers.add_one("0")
    assert len(numbers.totals()) == 2_048
    assert numbers.totals()["0",] == 2
