"""A new campaign: planned before anything is spent, created, and nothing typed is lost."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adsbpc.campaign.plan import plan
from adsbpc.errors import LedgerError, SpecError
from adsbpc.model import spec_of
from adsbpc.report.numbers import about
from adsbpc.service.dashboard import campaign_form as fields
from adsbpc.service.dashboard.campaign_form import Wrong, wrongs_of
from adsbpc.service.dashboard.new_campaign import expected
from tests.report.outline import Outline
from tests.service.dashboard.stage import Stage, Visitor

TODAY = date(2026, 3, 3)
WANTED = {
    **fields.defaults(TODAY),
    "name": "summer",
    "scope": "planner",
    "advertiser": "Ad-1",
    "publishers": "search\r\n  social \r\n\r\n",
}


def values_in(outline: Outline) -> dict[str, str | None]:
    """What the form has in its inputs."""
    return {
        str(attrs["name"]): attrs.get("value")
        for tag, attrs in outline.tags
        if tag == "input" and "name" in attrs
    }


def test_the_first_look_has_a_plan(operator: Visitor) -> None:
    outline = operator.look("/campaigns/new")
    values = values_in(outline)
    assert values["slots"] == "31"
    assert values["start"] == "2026-03-03"
    assert re.search(r"one publisher ± [\d.]+ all together ± [\d,.]+ epsilon 7.77", outline.words)
    assert "Someone who reads every number" in outline.words
    assert "0.95 noise on the totals of every slot and publisher" in outline.words
    chart = json.loads(outline.scripts[-1])["spec"]
    assert len(chart["data"]["values"]) == 2 * 31


def test_only_operators_plan(stage: Stage, advertiser: Visitor) -> None:
    assert advertiser.get("/campaigns/new").status_code == 403
    assert advertiser.send("/campaigns/new", WANTED).status_code == 403


def test_a_plan_is_the_campaigns_own(stage: Stage, operator: Visitor) -> None:
    book = stage.server.backend.campaigns
    before = len(book.all())
    wanted = {**WANTED, "mechanism": "adsbpc", "rho": "0.25"}
    answer = operator.send("/campaigns/new", {**wanted, "action": "plan"})
    assert answer.status_code == 200
    spec = book.spec(fields.planned(wanted))
    found = expected(spec, plan(spec, 2))
    assert f"one publisher ± {found.one} all together ± {found.all}" in Outline(answer.text).words
    assert json.loads(Outline(answer.text).scripts[-1])["spec"] == json.loads(
        json.dumps(found.chart["spec"])
    )
    assert len(book.all()) == before
    assert book.ledger.mark("planner") is None


def test_errors_stand_beside_what_is_expected(stage: Stage, operator: Visitor) -> None:
    wanted = {**WANTED, "volume_1": "7000", "count": "6"}
    words = Outline(operator.send("/campaigns/new", {**wanted, "action": "plan"}).text).words
    found = re.search(
        r"± ([\d.]+)% of an average one all together ± ([\d.]+) ± ([\d.]+)%",
        words,
    )
    assert found is not None
    one, together, part = (float(each) for each in found.groups())
    assert part == pytest.approx(100 * together / 7_000, rel=0.1)
    assert one > part
    content = fields.content_of(wanted)
    assert content["expected"] == {"conversions": 7_000}
    assert fields.content_of({**wanted, "metric_1": "value"})["expected"] == {"value": 7_000}
    wrong = operator.send("/campaigns/new", {**wanted, "volume_1": "-1", "action": "create"})
    assert wrong.status_code == 422
    assert "volume_1-wrong" in wrong.text


def test_targets_say_which_budget_they_take(stage: Stage, operator: Visitor) -> None:
    """As the command line and the API say it, and a plan with it reaches them."""
    wanted = {
        **WANTED, "volume_1": "7000", "target_1": "10%", "metric_2": "clicks", "volume_2": "90000",
        "target_2": "5",
    }  # fmt: skip
    spec = stage.server.backend.campaigns.spec(fields.planned(wanted))
    targets = ["conversions/publisher=10%", "clicks/publisher=5%"]
    proposal = plan(spec, targets=targets).proposal
    assert proposal is not None
    words = Outline(operator.send("/campaigns/new", {**wanted, "action": "plan"}).text).words
    shares = ", ".join(f"{name} {share:g}" for name, share in proposal.shares.items())
    assert f"The targets need rho = {proposal.rho:g}, with shares {shares}." in words
    assert "Measures are off least" not in words
    reached = {
        **wanted, "rho": str(proposal.rho),
        "share_1": str(proposal.shares["conversions"]), "share_2": str(proposal.shares["clicks"]),
    }  # fmt: skip
    spec = stage.server.backend.campaigns.spec(fields.planned(reached))
    average = {row.measure: row for row in reversed(plan(spec).accuracy)
               if (row.view, row.period) == ("publisher", "campaign")}  # fmt: skip
    assert average["conversions"].within <= 0.1
    assert average["clicks"].within <= 0.05
    # They are no part of the campaign.
    assert fields.content_of(wanted) == fields.content_of({**wanted, "target_1": ""})


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"target_1": "close"}, "Expected a percentage such as 10"),
        ({"target_1": "-1"}, "Expected a percentage such as 10"),
        ({"target_1": "10", "volume_1": ""}, "How close that is depends on how much is counted"),
    ],
)
def test_a_target_that_cannot_be_meant(
    operator: Visitor, changes: dict[str, str], told: str
) -> None:
    sent = {**WANTED, "volume_1": "7000", **changes, "action": "plan"}
    words = Outline(operator.send("/campaigns/new", sent).text).words
    assert f"A publisher within (%) (measure 1) : {told}" in words


def test_a_plan_has_a_small_publisher_and_the_frontier(stage: Stage, operator: Visitor) -> None:
    wanted = {**WANTED, "volume_1": "7000"}
    spec = stage.server.backend.campaigns.spec(fields.planned(wanted))
    planned = plan(spec)
    (small,) = (
        row
        for row in planned.accuracy
        if (row.view, row.period, row.part) == ("publisher", "campaign", 0.02)
    )
    words = Outline(operator.send("/campaigns/new", {**wanted, "action": "plan"}).text).words
    told = about(100 * small.within)
    assert f"Conversions of a publisher with 2% of the total: within {told}%." in words
    for row in planned.frontier:
        errors = " ".join(f"± {about(error)}" for error in row.errors.values())
        assert f"{', '.join(map(str, row.weights))} {errors}" in words
    unknown = Outline(operator.send("/campaigns/new", {**WANTED, "action": "plan"}).text).words
    assert "the total against its parts" not in unknown


def test_a_campaign_is_created(stage: Stage, operator: Visitor) -> None:
    answer = operator.send("/campaigns/new", {**WANTED, "action": "create", "slots": "7"})
    assert answer.status_code == 303, answer.text
    campaign_id = answer.headers["location"].rpartition("/")[2]
    registered = stage.server.backend.campaigns.get(campaign_id)
    assert registered is not None
    assert registered.spec.campaign.publishers == ("search", "social")
    assert registered.spec.campaign.slots == 7
    again = operator.send("/campaigns/new", {**WANTED, "action": "create"})
    assert again.status_code == 422
    assert "Scope 'planner' has a campaign of that name" in Outline(again.text).words


SEVERAL = {
    **WANTED,
    "share_1": "0.5", "volume_1": "9000",
    "metric_2": "value", "value_cap_2": "50", "by_2": "country", "share_2": "0.2",
    "values_country": "DE\r\nFR", "volume_2": "180000",
    # A row that was left out.
    "metric_4": "reach", "by_4": "country", "share_4": "0.1",
    "control_share": "0.1", "trial_share": "0.2",
}  # fmt: skip


def test_measures_are_those_of_a_campaign_file() -> None:
    found = fields.content_of(SEVERAL)
    assert "metric" not in found["campaign"]
    assert found["measure"] == [
        {"name": "conversions", "metric": "conversions", "share": 0.5},
        {
            "name": "value by country", "metric": "value", "value_cap": 50, "share": 0.2,
            "by": ["publisher", "country"],
        },
        {
            "name": "reach by country", "metric": "reach", "share": 0.1,
            "by": ["publisher", "country of ads"],
        },
        {"name": "buyers", "metric": "converters", "by": ["arm"], "share": 0.2},
    ]  # fmt: skip
    listed = {"column": "country", "values": ["DE", "FR"]}
    assert found["dimensions"] == {
        "country": {**listed, "of": "conversion"},
        "country of ads": {**listed, "of": "impression"},
    }
    assert found["lift"] == {"shares": {"treatment": 0.9, "control": 0.1}}
    assert found["expected"] == {"conversions": 9000, "value by country": 180000}
    # One by publisher means what it always meant.
    assert set(fields.content_of(WANTED)) == {"campaign", "privacy", "attribution"}
    assert fields.content_of(WANTED)["campaign"]["metric"] == "conversions"


def test_several_measures_are_planned_and_created(stage: Stage, operator: Visitor) -> None:
    wanted = {**SEVERAL, "name": "several", "scope": "several", "slots": "3"}
    planned = Outline(operator.send("/campaigns/new", {**wanted, "action": "plan"}).text)
    spec = stage.server.backend.campaigns.spec(fields.planned(wanted))
    sums = expected(spec, plan(spec)).sums
    assert [(each.measure, each.of) for each in sums] == [
        ("conversions", "all together"), ("conversions", "one publisher"),
        ("value by country", "all together"), ("value by country", "one publisher"),
        ("value by country", "one publisher and country"),
        ("reach by country", "all together"), ("reach by country", "one publisher"),
        ("reach by country", "one publisher and country of ads"),
        ("buyers", "all together"), ("buyers", "one arm"),
    ]  # fmt: skip
    # Beside what is expected, of those of which something is.
    assert [bool(each.part) for each in sums] == [True] * 5 + [False] * 5
    for each in sums:
        assert f"{each.measure} {each.of} ± {each.error} {each.part}".strip() in planned.words
    answer = operator.send("/campaigns/new", {**wanted, "action": "create"})
    assert answer.status_code == 303, answer.text
    campaign = answer.headers["location"].rpartition("/")[2]
    registered = stage.server.backend.campaigns.get(campaign)
    assert registered is not None
    assert [each.name for each in registered.spec.measures] == [
        "conversions", "value by country", "reach by country", "buyers",
    ]  # fmt: skip
    words = operator.look(f"/campaigns/{campaign}").words
    assert "Arms treatment 90%, control 10%" in words
    assert "attributed conversions and value and reach" in words
    assert "Who sees ads" in words
    assert stage.server.client("operator").assignment(campaign)["control"] == "control"


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"value_cap_2": ""}, "metric_2", 'Metric = "value" needs value_cap'),
        ({"value_cap_2": "much"}, "value_cap_2", "Expected a number"),
        ({"share_1": "0.9"}, "share_1", "The shares of measures add up to 1.4"),
        ({"share_2": "none"}, "share_2", "Expected a number"),
        ({"trial_share": "x"}, "trial_share", "Expected a number"),
        ({"metric_4": "sales"}, "metric_4", "Expected one of"),
        ({"values_country": "DE\nDE"}, "values_country", "Values lists 'DE' more than once"),
        ({"control_share": "1"}, "control_share", "Nobody would be in it"),
        ({"control_share": "few"}, "control_share", "Expected a number"),
        ({"volume_2": "-1"}, "volume_2", "Expected more than 0"),
        ({"mechanism": "adsbpc"}, "mechanism", "set mechanism ="),
    ],
)
def test_what_is_wrong_with_a_measure_stands_beside_it(
    operator: Visitor, changes: dict[str, str], field: str, told: str
) -> None:
    sent = {**SEVERAL, "name": "wrong", "scope": "wrong", "action": "create", **changes}
    answer = operator.send("/campaigns/new", sent)
    outline = Outline(answer.text)
    assert answer.status_code == 422
    assert told.lower() in outline.words.lower()
    wrong = {attrs["id"] for _, attrs in outline.tags if attrs.get("aria-invalid") == "true"}
    assert wrong == {field}
    values = values_in(outline)
    typed = {key: value for key, value in sent.items() if key in values}
    assert {key: values[key] for key in typed} == typed


def test_weeks_start_on_the_day_that_was_chosen(stage: Stage, operator: Visitor) -> None:
    wanted = {**WANTED, "name": "weekly", "slot": "1w", "week_starts": "tuesday", "slots": "4",
              "scope": "weekly"}  # fmt: skip
    planned = operator.send("/campaigns/new", {**wanted, "action": "plan"})
    assert "Expected after week 4" in Outline(planned.text).words
    answer = operator.send("/campaigns/new", {**wanted, "action": "create"})
    assert answer.status_code == 303, answer.text
    made = stage.server.backend.campaigns.get(answer.headers["location"].rpartition("/")[2])
    assert made is not None
    assert (made.spec.campaign.slot, made.spec.campaign.week_starts) == ("1w", "tuesday")
    assert made.spec.grid.bounds_text(4)[1].startswith("2026-03-31")


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"name": ""}, "name", "Is missing"),
        ({"slots": "many"}, "slots", "Expected a whole number"),
        ({"rho": "-1"}, "rho", "Expected 1e-06 or more"),
        ({"timezone": "Mars"}, "timezone", "Expected an IANA time zone"),
        ({"publishers": "a\na"}, "publishers", "Publishers lists 'a' more than once"),
        ({"metric_1": "value"}, "metric_1", 'Metric = "value" needs value_cap'),
        ({"start": "soon"}, "start", "Expected a day"),
        ({"model": "shapley", "fit_slots": "99"}, "fit_slots", "The fit serves the slots after"),
        ({"start": "2026-02-01"}, "start", "The first slot is over"),
        ({"scope_rho": "0.5"}, "", "has no room for campaign"),
        ({"slot": "1w"}, "start", 'Is a Tuesday, and with week_starts = "monday" weeks start on a'),
        ({"slot": "1mo"}, "start", "Is not the first day of a month"),
        ({"slot": "1w", "week_starts": "Tue"}, "week_starts", "Expected one of"),
    ],
)
def test_what_is_wrong_stands_beside_its_field(
    operator: Visitor, changes: dict[str, str], field: str, told: str
) -> None:
    sent = {**WANTED, "name": "wrong", "scope": "wrong", "action": "create", **changes}
    answer = operator.send("/campaigns/new", sent)
    outline = Outline(answer.text)
    assert answer.status_code == 422
    assert "It was not created" in outline.words
    assert told in outline.words
    if field:
        wrong = [attrs for _, attrs in outline.tags if attrs.get("aria-invalid") == "true"]
        assert [attrs["id"] for attrs in wrong] == [field]
        assert f"{field}-wrong" in str(wrong[0]["aria-describedby"]).split()
    # Nothing that was typed is lost.
    values = values_in(outline)
    typed = {key: value for key, value in sent.items() if key in values}
    assert {key: values[key] for key in typed} == typed


TEXTS = st.text(max_size=30)


@given(st.fixed_dictionaries(dict.fromkeys(WANTED, TEXTS)))
def test_any_text_makes_content_that_says_what_was_typed(values: dict[str, str]) -> None:
    content = fields.content_of(values)
    assert set(content) <= {
        "campaign", "privacy", "attribution", "expected", "measure", "dimensions", "lift",
    }  # fmt: skip
    for field, (section, key) in fields.PLACES.items():
        where = content
        for part in section.split("."):
            where = where.get(part, {})
        if key in where and field != "publishers":
            assert str(where[key]) == values[field].strip() or isinstance(where[key], int | float)


@given(
    st.lists(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8), unique=True),
    st.integers(1, 40),
)
def test_planned_publishers_are_as_many_as_asked_for(names: list[str], count: int) -> None:
    assume(all(name.strip() == name for name in names))
    values = {**WANTED, "publishers": "\n".join(names), "count": str(count)}
    planned = fields.planned(values)["campaign"]["publishers"]
    assert len(planned) == len(set(planned)) == count
    assert planned[: len(names)] == names[:count]


def test_problems_are_told_apart() -> None:
    content = {
        "campaign": {"advertiser": "Ad-1", "start": TODAY, "slots": 7, "publishers": ["a"]},
        "events": {"impressions": "i", "conversions": "c"},
        "attribution": {"model": "shapley", "fit": {"rho": "x", "slots": 3}},
        "engine": {"options": 3},
    }
    with pytest.raises(SpecError) as refused:
        spec_of(content, Path(), "the campaign")
    assert wrongs_of(refused.value, WANTED) == [
        Wrong("name", "Is missing. Add it"),
        Wrong("fit_rho", "Expected a number. Correct it"),
        Wrong("", "[engine] options = 3: expected a section with keys of its own. Correct it"),
    ]
    assert wrongs_of(SpecError("no room in the scope"), WANTED) == [
        Wrong("", "no room in the scope")
    ]
    assert wrongs_of(LedgerError("it changed\n  rho: was 1"), WANTED) == [
        Wrong("", "it changed"),
        Wrong("", "rho: was 1"),
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"metric_1": "value", "value_cap_1": "50", "volume_1": "180000"},
        {"mechanism": "adsbpc", "model": "markov", "slot": "1w", "start": "2026-03-02"},
        SEVERAL,
    ],
    ids=["plain", "value", "weeks of a fitted model", "several measures and a trial"],
)
def test_what_a_campaign_said_is_what_the_form_says(changes: dict[str, str]) -> None:
    content = fields.content_of({**WANTED, "scope_rho": "2", **changes})
    again = {**fields.defaults(TODAY), **fields.values_of(content)}
    assert fields.content_of(again) == content
