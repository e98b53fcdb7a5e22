"""Failures count by address, for a while, and never fill the memory."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.service.http.limits import Throttle
from tests.service.clocks import SetClock

HERE = "192.0.2.1"


def test_ten_failures_in_a_minute_are_the_end() -> None:
    clock = SetClock()
    throttle = Throttle(clock)
    for _ in range(10):
        assert throttle.refused_for(HERE) is None
        throttle.record_failure(HERE)
        clock.pass_seconds(1)
    assert throttle.refused_for(HERE) == 50
    assert throttle.refused_for("192.0.2.2") is None
    clock.pass_seconds(49.5)
    assert throttle.refused_for(HERE) == 1
    clock.pass_seconds(0.5)
    # The first of them is a minute old: one more try.
    assert throttle.refused_for(HERE) is None
    throttle.record_failure(HERE)
    assert throttle.refused_for(HERE) == 1


def test_failures_of_others_clear_nothing() -> None:
    clock = SetClock()
    throttle = Throttle(clock, failures=3)
    for seconds in (0, 50, 5):
        clock.pass_seconds(seconds)
        throttle.record_failure(HERE)
    clock.pass_seconds(6)
    throttle.record_failure("192.0.2.2")
    throttle.record_failure(HERE)
    assert throttle.refused_for(HERE) == 49


def test_a_success_clears_the_address_and_no_other() -> None:
    throttle = Throttle(SetClock(), failures=2)
    for address in (HERE, "192.0.2.2") * 2:
        throttle.record_failure(address)
    throttle.record_success(HERE)
    throttle.record_success("192.0.2.3")
    assert throttle.refused_for(HERE) is None
    assert throttle.refused_for("192.0.2.2") == 60


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["fail", "succeed", "ask"]),
            st.integers(0, 2),
            st.integers(0, 4_000_000),
        ),
        max_size=60,
    ),
    failures=st.integers(1, 4),
)
def test_the_same_as_a_plain_list_of_failures(
    steps: list[tuple[str, int, int]], failures: int
) -> None:
    clock, now = SetClock(), 0
    throttle = Throttle(clock, failures=failures, within_seconds=5)
    past: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for step, who, passed_us in steps:
        clock.pass_seconds(passed_us / 1e6)
        now += passed_us
        address = f"192.0.2.{who}"
        if step == "fail":
            throttle.record_failure(address)
            past[who].append(now)
        elif step == "succeed":
            throttle.record_success(address)
            past[who].clear()
        last = past[who][-failures:]
        recent = len(last) == failures and last[0] > now - 5_000_000
        expected = math.ceil((last[0] + 5_000_000 - now) / 1e6) if recent else None
        assert throttle.refused_for(address) == expected


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("2001:db8::1", "2001:db8:0:0:ffff:ffff:ffff:ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("2001:DB8::1", "2001:0db8::2", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("", "unix", False),
        ("x" * 10_000, "x" * 20_000, True),
    ],
)
def test_whose_failures_count_together(one: str, other: str, together: bool) -> None:
    throttle = Throttle(SetClock(), failures=1)
    throttle.record_failure(one)
    assert throttle.refused_for(one) == 60
    assert (throttle.refused_for(other) is not None) == together
    throttle.record_success(other)
    assert (throttle.refused_for(one) is None) == together


def test_memory_is_bounded_and_the_oldest_are_forgotten() -> None:
    clock = SetClock()
    throttle = Throttle(clock, failures=1)
    throttle.record_failure("first")
    throttle.record_failure("second")
    for number in range(9_998):
        throttle.record_failure(f"address {number}")
    assert throttle.refused_for("first") is not None
    throttle.record_failure("first")
    throttle.record_failure("one more")
    assert throttle.refused_for("first") is not None
    assert throttle.refused_for("second") is None
    assert len(throttle._failed) == 10_000
    clock.pass_seconds(60)
    throttle.record_failure("after all of them")
    assert list(throttle._failed) == ["after all of them"]


def test_one_address_takes_no_more_room_by_failing_more() -> None:
    throttle = Throttle(SetClock(), failures=3)
    for _ in range(1_000):
        throttle.record_failure(HERE)
    assert [len(moments) for moments in throttle._failed.values()] == [3]


def test_a_clock_that_is_set_back_shuts_nobody_out() -> None:
    clock = SetClock()
    throttle = Throttle(clock, failures=1)
    throttle.record_failure(HERE)
    clock.pass_seconds(-86_400)
    assert throttle.refused_for(HERE) is None
    throttle.record_failure(HERE)
    assert throttle.refused_for(HERE) == 60


def test_threads_lose_no_failure() -> None:
    throttle = Throttle(SetClock(), failures=4_000)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: throttle.record_failure(f"2001:db8::{n % 7:x}"), range(3_999)))
        assert throttle.refused_for("2001:db8::") is None
        throttle.record_failure("2001:db8::")
        assert throttle.refused_for("2001:db8::") == 60
