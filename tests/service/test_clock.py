"""A clock that runs faster never runs ahead."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from adsbpc.errors import ServiceError
from adsbpc.service.clock import FastClock, SystemClock, now_us

DAY = timedelta(days=1)


def test_it_passes_faster() -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    clock = FastClock(start, speed=86_400, until=start + 400 * DAY)
    before = clock.now()
    time.sleep(0.05)
    passed = clock.now() - before
    assert timedelta(hours=1) < passed < 5 * DAY
    assert now_us(clock) > now_us(FastClock(start, speed=1, until=start + DAY))


def test_it_stands_still_at_its_end_and_at_the_present() -> None:
    now = datetime.now(UTC)
    clock = FastClock(now - 2 * DAY, speed=1e12, until=now - DAY)
    time.sleep(0.01)
    assert clock.now() == now - DAY
    clock = FastClock(now - DAY, speed=1e12, until=now + 400 * DAY)
    time.sleep(0.01)
    assert now < clock.now() <= SystemClock().now()


def test_a_start_in_the_future_is_refused() -> None:
    ahead = datetime.now(UTC) + DAY
    with pytest.raises(ServiceError, match="is ahead: take an earlier one"):
        FastClock(ahead, speed=1, until=ahead)
