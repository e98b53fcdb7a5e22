"""A home for each role: what senders see of their own, lists that can be searched, filters."""

from __future__ import annotations

from datetime import timedelta
from math import ceil
from pathlib import Path

import pytest

from adsbpc.service.clock import now_us
from adsbpc.service.dashboard.operations import AuditFilter
from adsbpc.service.ingest.event_files import close_arrivals
from tests.service.clocks import SetClock
from tests.service.dashboard.stage import START, Stage, Visitor
from tests.service.running import content, running, settings_in


def test_a_publisher_sees_its_own_and_nothing_of_others(stage: Stage) -> None:
    publisher = stage.visitor("publisher", "search")
    assert publisher.get("/").headers["location"] == "/deliveries"
    words = publisher.look("/deliveries").words
    assert "Deliveries of search" in words
    assert "Rows accepted 600" in words
    assert "day-2" in words
    assert "social" not in words
    assert "spring" not in words
    assert "Advertisers that no campaign has" not in words
    assert stage.visitor("operator").get("/deliveries").status_code == 403
    assert stage.visitor("reader").get("/deliveries").status_code == 403


def test_an_advertiser_sees_why_its_rows_were_not_taken(advertiser: Visitor) -> None:
    words = advertiser.look("/deliveries").words
    assert "Quarantined 2" in words
    assert "timestamp does not parse 2" in words


def test_misspelt_advertisers_and_late_rows_are_told(tmp_path: Path) -> None:
    clock = SetClock(START + timedelta(days=5))
    scheduler = {"enabled": False, "settle": "90m", "wait": "2d"}
    with running(settings_in(tmp_path, scheduler=scheduler), clock) as server:
        operator = server.client("operator")
        wanted = content(advertiser="Shoes-1", start="2026-03-06", publishers=["P-1"])
        operator.create_campaign(wanted)
        other = content(advertiser="Boots-1", scope="b", start="2026-03-06", publishers=["P-2"])
        operator.create_campaign(other)
        publisher = server.client("publisher", "P-1")
        # Somebody's slot of this day is released.
        close_arrivals(server.backend.store, now_us(clock))
        late = {"user_id": "u", "kind": "click", "timestamp": START}
        answer = publisher.push_impressions(
            [late | {"advertiser_id": name} for name in ("Shoes-1", "Shoes_1", "Boots-l")], "one"
        )
        # The campaign that names this publisher has released nothing yet.
        assert (answer["accepted"], answer["after_release"]) == (3, 2)
        found = publisher.deliveries()
        assert found["rows"]["after_release"] == 2
        assert found["last_event"] == START.isoformat().replace("+00:00", "Z")
        hints = {each["advertiser"]: each["hint"] for each in found["unknown_advertisers"]}
        # Of an advertiser who does not count this publisher nothing is told.
        assert hints == {"Shoes_1": 'Did you mean "Shoes-1"?', "Boots-l": ""}
        assert found["batches"][0]["batch_key"] == "one"
        assert server.client("publisher", "P-2").deliveries()["batches"] == []
        operations = operator.operations()
        assert set(operations["last_seen"]) == {"publisher:P-1"}
        assert all(disk["free_bytes"] <= disk["total_bytes"] for disk in operations["disks"])


def test_campaigns_are_searched_sorted_and_added_up(stage: Stage, operator: Visitor) -> None:
    def names(query: str) -> list[str]:
        page = operator.get(f"/campaigns?{query}").text
        found = {name: page.find(f'{campaign}"') for name, campaign in stage.campaigns.items()}
        return sorted((name for name, place in found.items() if place >= 0), key=found.__getitem__)

    assert names("q=RIV") == ["rival"]
    assert names("q=nothing+of+it") == []
    assert "No campaign has" in operator.look("/campaigns?q=nothing+of+it").words
    everything = names("sort=name")
    assert everything == sorted(everything, key=str.casefold)
    assert len(everything) == 4
    assert set(names("sort=whatever")) == set(everything)
    assert "all 2 scopes together" in operator.look("/campaigns").words
    own = stage.visitor("advertiser", "Ad-1").look("/campaigns").words
    assert "scopes together" not in own
    spending = stage.server.client("advertiser", "Ad-1").spending()
    assert (spending["scopes"], spending["limit"]) == (1, 3)
    assert 0 < spending["spent"] == pytest.approx(3 - spending["left"])
    # Of nobody else's scope, and rounded to the safe side.
    assert f"Scopes 1 Budget spent (rho) {ceil(spending['spent'] * 1e6) / 1e6:.10g} of 3" in own
    assert stage.server.client("operator").spending()["limit"] == 6
    assert "Budget left" not in stage.visitor("advertiser", "nobody").look("/campaigns").words


def test_what_commands_did_is_among_who_did_what(operator: Visitor, stage: Stage) -> None:
    stage.server.backend.audit.note_command("close campaign", "some-campaign")
    words = operator.look("/operations?who=command+line").words
    assert "command line close campaign some-campaign allowed" in words


def test_the_audit_log_is_filtered(operator: Visitor, stage: Stage) -> None:
    assert stage.visitor("publisher", "search").get("/operations").status_code == 403
    words = operator.look("/operations?who=publisher+search&what=operate&decision=refused").words
    shown = words.partition("Who did what")[2].partition("Settings")[0]
    assert "publisher search" in shown
    assert "decisions of this kind" in shown
    assert "operator" not in shown.partition("Decision refused")[2]


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (AuditFilter(), True),
        (AuditFilter(who="SEARCH"), True),
        (AuditFilter(who="social"), False),
        (AuditFilter(what="push"), True),
        (AuditFilter(what="push", decision="refused"), False),
    ],
)
def test_which_lines_are_wanted(asked: AuditFilter, wanted: bool) -> None:
    line = {"role": "publisher", "subject": "search", "key_id": "k", "address": "::1",
            "action": "push impressions", "target": "", "decision": "allowed"}  # fmt: skip
    assert asked.wants(line) is wanted


def test_the_operator_pauses_closes_and_withdraws_on_the_page(steered: Stage) -> None:
    campaign = steered.create("spring")
    path = f"/campaigns/{campaign}"
    operator = steered.visitor("operator")
    advertiser = steered.visitor("advertiser", "Ad-1")
    assert "Withdraw for good" in operator.look(path).words
    assert "Pause or end it" not in advertiser.look(path).words
    for act in ("pause", "resumption", "closing", "withdrawal"):
        assert advertiser.send(f"{path}/{act}", {}).status_code == 403
    assert operator.send(f"{path}/pause", {}).headers["location"] == path
    assert "Paused" in advertiser.look(path).words
    assert operator.send(f"{path}/resumption", {}).status_code == 303
    steered.release_day(1)
    assert operator.send(f"{path}/withdrawal", {}).status_code == 409
    assert "Close for good" in operator.look(path).words
    assert operator.send(f"{path}/closing", {}).status_code == 303
    words = operator.look(path).words
    assert "Closed" in words
    assert "Pause or end it" not in words
    waiting = steered.create("waiting", scope="other", start="2026-04-01")
    assert operator.send(f"/campaigns/{waiting}/withdrawal", {}).headers["location"] == "/campaigns"
    assert operator.get(f"/campaigns/{waiting}").status_code == 404
