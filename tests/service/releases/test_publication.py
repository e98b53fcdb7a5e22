"""Slots become visible at declared moments: neither how long a release takes nor whether it fails
can be seen, except that a slot which misses its moment is late until the next one."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, select

from adsbpc import Campaign
from adsbpc.model.slots import to_moment
from adsbpc.service.dashboard.campaigns import body_of, glance_at, sight_of
from adsbpc.service.releases.publication import moment_of
from adsbpc.service.store import published
from tests.service.clocks import SetClock
from tests.service.neighbours import (
    DAY,
    MINUTE,
    SCHEDULER,
    START,
    STREAM,
    World,
    differences,
    fails_until,
    takes_long,
    world,
)
from tests.service.releases.test_scheduler import settings_on
from tests.service.running import Running, content, running, settings_in

END = START + DAY
EVENING = END - MINUTE
NIGHT = END + 11 * MINUTE


@given(st.integers(0, 10**6), st.integers(1, 10**4), st.integers(0, 2 * 10**6))
def test_the_moments_are_steps_after_the_end(ended: int, step: int, done: int) -> None:
    moment = moment_of(ended, step, done)
    assert (moment - ended) % step == 0
    assert moment >= max(done, ended + step)
    assert moment == ended + step or moment - step < done


# ---- two worlds ------------------------------------------------------------------------------


def lived(found: World) -> World:
    found.clock.moment = EVENING
    found.live(until=NIGHT)
    return found


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A night in which nothing is remarkable."""
    with (
        pytest.MonkeyPatch.context() as patched,
        world(tmp_path_factory.mktemp("plain"), patched) as found,
    ):
        return lived(found)


def shown(found: World) -> dict[datetime, tuple[Any, ...]]:
    """What the figures, the stream and a page tell at each minute."""
    told = {}
    for moment, looks in found.seen.items():
        figures = found.told(moment, "/metrics")
        page = found.told(moment, "/campaigns/{campaign}")
        told[moment] = (
            *re.findall(r"_slots (\d+)\.0", figures),
            looks[-1][STREAM][1].count(b"id:"),
            re.findall(r'class="state \w+">([\w ]+)<', page)[0],
        )
    return told


def test_slots_appear_at_their_moment(plain: World) -> None:
    for moment, told in shown(plain).items():
        slots = int(moment >= END + 5 * MINUTE)
        assert told == (str(2 * slots), "0", slots, "Running" if slots else "Collecting")
    assert len(plain.seen) == 7


def test_how_long_it_takes_is_not_seen(
    plain: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One person with very many events, whose release takes minutes."""
    with world(tmp_path, monkeypatch) as heavy:
        heavy.push("heavy", 20_000)
        worked = takes_long(heavy, monkeypatch, minutes=2)
        assert_same(plain, lived(heavy))
    assert len(worked) == 1, "nothing took long: this tests nothing"


def test_whether_it_fails_is_not_seen(
    plain: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with world(tmp_path, monkeypatch) as failing:
        failed = fails_until(failing, monkeypatch, lambda moment: moment - END >= 4 * MINUTE)
        assert_same(plain, lived(failing))
    assert len(set(failed)) == 3, "it did not fail: this tests nothing"


def assert_same(one: World, other: World) -> None:
    """To the last byte, in every look of every minute."""
    assert one.seen.keys() == other.seen.keys()
    for moment in one.seen:
        for before, after in zip(one.seen[moment], other.seen[moment], strict=True):
            assert differences(before, after) == [], moment


@pytest.mark.slow
def test_what_misses_its_moment_is_late_until_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And looks the same whenever in between it was done."""
    seen = []
    for minutes in (6, 9):
        with monkeypatch.context() as patched, world(tmp_path / str(minutes), patched) as late:
            repaired = END + minutes * MINUTE
            assert fails_until(late, patched, lambda moment, r=repaired: moment >= r) == []  # type: ignore[misc]
            late.clock.moment = EVENING
            late.live(until=NIGHT)
            seen.append(late)
            for moment, told in shown(late).items():
                if moment < END + 5 * MINUTE:
                    assert told == ("0", "0", 0, "Collecting")
                elif moment < END + 10 * MINUTE:
                    assert told == ("0", "2", 0, "Late")
                else:
                    assert told == ("2", "0", 1, "Running")
    assert_same(*seen)


# ---- what is noted ---------------------------------------------------------------------------


@pytest.fixture
def clock() -> SetClock:
    return SetClock(START)


def registered_in(server: Running, campaign: str) -> Any:
    found = server.backend.campaigns.get(campaign)
    assert found is not None
    return found


def moments(server: Running) -> list[datetime]:
    with server.backend.store.reading() as connection:
        wanted = select(published.c.published_us).order_by(published.c.slot)
        return [to_moment(each) for each in connection.execute(wanted).scalars()]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_every_server_shows_the_same(
    tmp_path: Path, database: str, clock: SetClock, request: pytest.FixtureRequest
) -> None:
    """The operator sees at once what was released, on whichever; readers see it later, on both."""
    settings = settings_on(database, tmp_path, request, scheduler=SCHEDULER)
    with running(settings, clock) as one, running(settings, clock) as other:
        operator, reader = other.client("operator"), other.client("reader")
        campaign = operator.create_campaign(content())["id"]
        clock.moment = END + MINUTE
        one.backend.scheduler.look()
        (standing,) = operator.operations()["scheduler"]
        assert (standing["released"], standing["visible"]) == (1, 0)
        before = reader.campaign(campaign)
        assert (before["released"], before["due"], before["status"]["spent"]) == (0, 0, 0)
        clock.moment = END + 5 * MINUTE
        (standing,) = operator.operations()["scheduler"]
        assert (standing["released"], standing["visible"]) == (1, 1)
        after = reader.campaign(campaign)
        assert (after["released"], after["due"], after["status"]["released"]) == (1, 1, 1)
        assert after["status"]["spent"] > 0


def test_what_a_crash_left_unnoted_counts_as_done_when_it_is_found(
    tmp_path: Path, clock: SetClock
) -> None:
    with running(settings_in(tmp_path, scheduler=SCHEDULER), clock) as server:
        campaign = server.client("operator").create_campaign(content())["id"]
        clock.moment = END + MINUTE
        server.backend.scheduler.look()
        with server.backend.store.writing("test") as connection:
            connection.execute(delete(published))
        clock.moment = END + 7 * MINUTE
        assert server.backend.publication.totals() == (0, 1)
        server.backend.scheduler.look()
        assert moments(server) == [END + 10 * MINUTE]
        # By hand it is found, too, and what was noted stays as it was.
        with server.backend.store.writing("test") as connection:
            connection.execute(delete(published))
        server.client("operator").release(campaign)
        clock.moment = END + 8 * MINUTE
        server.backend.scheduler.look()
        assert moments(server) == [END + 10 * MINUTE]
        server.show(campaign)
        assert server.backend.publication.totals() == (1, 0)


def test_what_is_done_at_the_last_moment_waits_for_the_next(
    tmp_path: Path, clock: SetClock
) -> None:
    """Who asks again and again around a moment must not see when exactly it was done."""
    for seconds, minutes in ((290, 5), (291, 10), (300, 10)):
        settings = settings_in(tmp_path / str(seconds), scheduler=SCHEDULER)
        clock.moment = START
        with running(settings, clock) as server:
            server.client("operator").create_campaign(content())
            clock.moment = END + timedelta(seconds=seconds)
            server.backend.scheduler.look()
            assert moments(server) == [END + minutes * MINUTE]


def test_slots_become_visible_in_their_order(tmp_path: Path, clock: SetClock) -> None:
    """Hours with a step of three: a slot may have its moment before that of a late one."""
    scheduler = {"enabled": False, "grace": "1m", "publish_after": "3h"}
    with running(settings_in(tmp_path, scheduler=scheduler), clock) as server:
        campaign = server.client("operator").create_campaign(content(slot="1h", slots=5))["id"]
        clock.moment = START + timedelta(hours=4, minutes=30)
        server.backend.scheduler.look()
        hours = [(moment - START) / timedelta(hours=1) for moment in moments(server)]
        # On their own 7, 5, 6 and 7.
        assert hours == [7, 7, 7, 7]
        clock.moment = START + timedelta(hours=6)
        registered = registered_in(server, campaign)
        assert server.backend.publication.visible_slot(registered) == 0
        assert server.backend.publication.due_slot(registered) == 3


def test_budgets_are_those_of_what_is_visible(tmp_path: Path, clock: SetClock) -> None:
    """Also those of the scope, of which another campaign has released what is not visible yet, and
    one that another program runs has released as well."""
    with running(settings_in(tmp_path, scheduler=SCHEDULER), clock) as server:
        operator = server.client("operator")
        made = {}
        for name, length in (("days", "1d"), ("hours", "1h"), ("others", "1h")):
            wanted = content(name=name, slot=length)
            wanted["privacy"] |= {"rho": 0.6, "scope_rho": 2.0}
            made[name] = operator.create_campaign(wanted)["id"]
        clock.moment = START + timedelta(hours=1, minutes=2)
        operator.release(made["hours"])
        operator.release(made["others"])
        with server.backend.store.writing("test") as connection:
            connection.exec_driver_sql("DELETE FROM adsbpc_campaigns WHERE name = 'others'")
        registered = registered_in(server, made["hours"])
        # Two campaigns have released one slot each, and for the same.
        of_one = float(registered.campaign.status().scope_budget.spent) / 2
        assert of_one > 0

        def spent() -> tuple[float, float, float]:
            own = operator.campaign(made["hours"])["status"]
            beside = operator.campaign(made["days"])["status"]
            assert own["scope"] == beside["scope"]
            assert beside["spent"] == 0
            return own["spent"], own["scope"]["spent"], own["scope"]["limit"]

        assert spent() == pytest.approx((0, of_one, 2))
        clock.moment = START + timedelta(hours=1, minutes=5)
        assert spent() == pytest.approx((of_one, 2 * of_one, 2))


def test_no_page_is_made_because_something_was_released(
    tmp_path: Path, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would take longer, which can be measured."""
    with running(settings_in(tmp_path, scheduler=SCHEDULER), clock) as server:
        campaign = server.client("operator").create_campaign(content())["id"]
        clock.moment = END + MINUTE
        server.backend.scheduler.look()
        server.show(campaign)
        registered = registered_in(server, campaign)
        sight = sight_of(server.backend, registered)
        first = glance_at(sight), body_of(sight)
        made = []
        report = Campaign.report

        def counted(self: Campaign, *given: Any, **named: Any) -> Any:
            made.append(given)
            return report(self, *given, **named)

        monkeypatch.setattr(Campaign, "report", counted)
        clock.moment = END + DAY + MINUTE
        server.backend.scheduler.look()
        assert server.backend.campaigns.last_slot(registered) == 2
        again = sight_of(server.backend, registered)
        assert (glance_at(again), body_of(again)) == first
        assert made == []
        clock.moment = END + DAY + 5 * MINUTE
        later = sight_of(server.backend, registered)
        assert later.slot == 2
        assert body_of(later) != first[1]
        assert len(made) == 1
