"""Campaigns at a glance and one by one: complete, of the report's own parts, only one's own."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial

import pytest

from adsbpc import Campaign
from adsbpc.report.page_parts import parts_of
from adsbpc.service.dashboard.campaigns import (
    HEIGHT,
    WIDTH,
    Progress,
    Shelf,
    body_of,
    sight_of,
    spark_of,
    state_of,
)
from adsbpc.service.releases.campaigns import CampaignBook, Registered
from tests.report.outline import Outline
from tests.report.releases import MadeUp
from tests.report.test_page import HOSTILE
from tests.service.dashboard.stage import HOSTILE_NAME, Stage, Visitor


def test_campaigns_at_a_glance(operator: Visitor) -> None:
    words = operator.look("/campaigns").words
    assert "2 running, 1 not begun, 1 complete" in words
    assert "day 2 of 5" in words
    interval = r"(± [\d,]+|[\d,]+ to [\d,]+)"
    assert re.search(rf"Ad-1 Running spring [\d,]+ {interval} attributed conversions so far", words)
    assert "Day 1 is over on 2 April, 00:00 UTC and is published 2 minutes later." in words
    assert "New campaign" in words


def test_everybody_sees_their_own_campaigns(stage: Stage, advertiser: Visitor) -> None:
    reader, rival = stage.visitor("reader", "Ad-2"), stage.visitor("advertiser", "Ad-2")
    assert "spring" in advertiser.look("/campaigns").words
    assert "rival" not in advertiser.look("/campaigns").words
    assert "New campaign" not in advertiser.look("/campaigns").words
    for visitor in (reader, rival):
        words = visitor.look("/campaigns").words
        assert "rival" in words
        assert "spring" not in words
        for path in (stage.campaigns["spring"], "0" * 32, "new", "%00", "..%2f..%2fetc"):
            assert visitor.get(f"/campaigns/{path}").status_code in (403, 404)
    everything = stage.visitor("reader").look("/campaigns").words
    assert "spring" in everything
    assert "rival" in everything


def test_nothing_is_measured_yet(stage: Stage) -> None:
    words = stage.visitor("advertiser", "Ad-3").look("/campaigns").words
    assert "Nothing is measured yet" in words
    assert "As soon as there is one for Ad-3, it is here." in words


def test_a_campaign_is_made_of_the_reports_parts(stage: Stage, advertiser: Visitor) -> None:
    campaign_id = stage.campaigns["spring"]
    answer = advertiser.get(f"/campaigns/{campaign_id}")
    registered = stage.server.backend.campaigns.get(campaign_id)
    assert registered is not None
    formats = {"CSV": "csv", "Parquet": "parquet", "JSON": "json", "HTML report": "html"}
    address = f"/v1/campaigns/{campaign_id}/report?format="
    links = {title: address + name for title, name in formats.items()}
    parts = parts_of(registered.campaign.report(), links=links)
    for part in (parts.masthead, parts.cards):
        assert part in answer.text
    outline = Outline(answer.text)
    assert json.loads(outline.scripts[-1]) == json.loads(json.dumps(parts.data))
    stream = next(attrs for _, attrs in outline.tags if attrs.get("id") == "live")
    assert stream["data-stream"] == f"/v1/campaigns/{campaign_id}/stream?after=2"


def test_every_format_can_be_downloaded(stage: Stage, advertiser: Visitor) -> None:
    outline = advertiser.look(f"/campaigns/{stage.campaigns['spring']}")
    links = [str(attrs["href"]) for _, attrs in outline.tags if attrs.get("class") == "download"]
    kinds = [advertiser.get(link).headers["content-type"].partition(";")[0] for link in links]
    assert kinds == [
        "text/csv",
        "application/vnd.apache.parquet",
        "application/json",
        "text/html",
        # The statement, and that of the scope.
        "text/html",
        "text/markdown",
        "application/json",
        "text/html",
    ]


def test_hostile_names_stay_text(stage: Stage, operator: Visitor) -> None:
    for path in ("/campaigns", f"/campaigns/{stage.campaigns[HOSTILE_NAME]}", "/operations"):
        outline = operator.look(path)
        assert HOSTILE_NAME in outline.words
        assert not any("alert" in script for script in outline.scripts if "{" not in script)
        assert not any(key.startswith("on") for _, attrs in outline.tags for key in attrs)
        assert "img" not in [tag for tag, attrs in outline.tags if attrs.get("src") == "x"]
    page = operator.look(f"/campaigns/{stage.campaigns[HOSTILE_NAME]}")
    for name in HOSTILE:
        assert re.sub(r"\s+", " ", name) in page.words
    # All of its slots are released.
    assert "live" not in {attrs.get("id") for _, attrs in page.tags}


def test_before_the_first_release(stage: Stage, advertiser: Visitor) -> None:
    words = advertiser.look(f"/campaigns/{stage.campaigns['later']}").words
    assert "Nothing is published yet. Day 1 is over on 2 April, 00:00 UTC" in words
    assert "1 April 2026 to 5 April 2026 (UTC)" in words or "1 to 5 April 2026 (UTC)" in words
    assert "search social video all others together" in words
    assert "0 of 1 spent" in words
    assert "Someone who reads every number of this campaign" in words


def test_states_in_a_few_words(stage: Stage) -> None:
    backend = stage.server.backend
    registered = backend.campaigns.get(stage.campaigns["spring"])
    assert registered is not None
    course, wait = backend.campaigns.course(registered), backend.publication.publish_after_us
    late = state_of(course, 0, wait)
    told = "Day 1 has been due for 1 day. New ones appear every 2 minutes."
    assert late == Progress("Late", "bad", told)
    assert state_of(course, 2, wait) == Progress(
        "Running", "good", "Day 3 is over on 4 March, 00:00 UTC and is published 2 minutes later."
    )
    assert state_of(course, 5, wait).word == "Complete"
    # That a release failed is nobody's to see before its figures are late.
    troubled = backend.campaigns.course(replace(registered, problem="no room"))
    assert state_of(troubled, 2, wait).word == "Running"


def test_a_problem_is_the_operators_to_read(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    book = stage.server.backend.campaigns
    plain = type(book).get

    def troubled(self: CampaignBook, campaign_id: str) -> Registered | None:
        found = plain(self, campaign_id)
        return None if found is None else replace(found, problem="the disk /dev/sda is full")

    monkeypatch.setattr(type(book), "get", troubled)
    path = f"/campaigns/{stage.campaigns['spring']}"
    for role, subject, sees in (("operator", "", True), ("advertiser", "Ad-1", False)):
        words = stage.visitor(role, subject).look(path).words
        assert ("The last release failed" in words) is sees
        assert ("/dev/sda" in words) is sees
        assert "The newest figures are late" not in words


def test_a_page_is_made_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = stage.server.backend
    registered = backend.campaigns.get(stage.campaigns["spring"])
    assert registered is not None
    first = body_of(sight_of(backend, registered))

    def never(*_: object) -> None:
        raise AssertionError("made again")

    monkeypatch.setattr(Campaign, "report", never)
    assert body_of(sight_of(backend, registered)) is first


def test_a_shelf_forgets_what_was_asked_for_longest_ago() -> None:
    shelf: Shelf[str] = Shelf(2)
    made: list[str] = []

    def make(name: str) -> str:
        made.append(name)
        return name

    for name in ("a", "b", "a", "c", "a", "b"):
        assert shelf.get((name, 0, 0, False, 0), partial(make, name)) == name
    assert made == ["a", "b", "c", "b"]


@pytest.mark.parametrize(
    "made",
    [MadeUp(), MadeUp(released=1), MadeUp(volume=0.1, scale=20), MadeUp(slots=300, released=300)],
    ids=["plain", "first", "noise", "long"],
)
def test_sparks_stay_in_their_picture(made: MadeUp) -> None:
    spark = spark_of(made.report())
    for points in (spark.line, spark.band):
        for x, y in (point.split(",") for point in points.split()):
            assert -0.05 <= float(x) <= WIDTH * made.released / made.slots + 0.05
            assert -0.05 <= float(y) <= HEIGHT + 0.05
    assert len(spark.line.split()) <= 102
