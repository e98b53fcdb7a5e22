"""Measures, dimensions and spend in the service: what files can have, pushed."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow.parquet as pq
import pytest

from adsbpc import Client
from adsbpc.client import ClientError
from adsbpc.service.ingest.rows import Source
from tests.service.clocks import SetClock
from tests.service.running import Running, content, running, settings_in

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
MEASURED: dict[str, Any] = {
    "measure": [
        {"name": "conversions", "by": ["publisher", "country"], "share": 0.6},
        {
            "name": "revenue", "metric": "value", "value_cap": 50.0, "currency": "EUR",
            "by": ["publisher", "device"], "share": 0.4,
        },
    ],
    "dimensions": {
        "country": {"column": "country", "values": ["DE", "FR"]},
        "device": {"column": "device", "of": "impression", "values": ["phone"]},
    },
    "expected": {"conversions": 30, "revenue": 900},
}  # fmt: skip
# So much that noise hides nothing.
CERTAIN = {"rho": 1e6, "mechanism": "adsbpc", "adsbpc": {"bounds": "fixed", "bound": 4}}


@pytest.fixture
def clock() -> SetClock:
    return SetClock(START)


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory, clock: SetClock) -> Iterator[Running]:
    settings = settings_in(tmp_path_factory.mktemp("measured"), scheduler={"enabled": False})
    with running(settings, clock) as found:
        yield found


@pytest.fixture
def operator(server: Running) -> Client:
    return server.client("operator")


def measured(**changes: Any) -> dict[str, Any]:
    return {**content(), **MEASURED, "privacy": CERTAIN, **changes}


def push_a_day(server: Running) -> None:
    """Two people buy after a click on a phone: one in Germany for 20, one elsewhere for 70."""
    moment = START - timedelta(hours=1)
    server.client("publisher", "P-1").push_impressions(
        [
            {"user_id": user, "advertiser_id": "Ad-1", "timestamp": moment, "kind": "click",
             "device": "phone"}
            for user in ("u1", "u2")
        ]
    )  # fmt: skip
    server.client("advertiser", "Ad-1").push_conversions(
        [
            {"user_id": "u1", "timestamp": START, "value": 20.0, "country": "DE"},
            {"user_id": "u2", "timestamp": START, "value": 70.0, "country": "Atlantis"},
        ]
    )


def test_what_is_pushed_is_measured(server: Running, operator: Client, clock: SetClock) -> None:
    created = operator.create_campaign(measured())
    assert created["content"]["measure"][1]["currency"] == "EUR"
    assert operator.campaign(created["id"])["content"]["dimensions"] == MEASURED["dimensions"]
    push_a_day(server)
    clock.moment = START + DAY
    operator.release(created["id"])
    server.show(created["id"])
    (release,) = operator.releases(created["id"])
    cells = {each["measure"]: each["slot_totals"][-1]["values"] for each in release["measures"]}
    # P-1, P-2 and other by DE, FR and other; by phone and other.
    assert cells["conversions"] == pytest.approx([1, 0, 1] + [0] * 6, abs=0.05)
    assert cells["revenue"] == pytest.approx([70, 0] + [0] * 4, abs=2)


def test_spend_makes_costs_and_returns(server: Running, operator: Client, clock: SetClock) -> None:
    campaign = operator.create_campaign(measured())["id"]
    push_a_day(server)
    clock.moment = START + DAY
    operator.release(campaign)
    server.show(campaign)
    advertiser = server.client("advertiser", "Ad-1")
    weeks = list(csv.DictReader(advertiser.report(campaign, "mmm").decode().splitlines()))
    assert {row["measure"] for row in weeks} == {"conversions", "revenue"}
    page = advertiser.report(campaign, "html", measure="revenue").decode()
    assert page != advertiser.report(campaign, "html").decode()
    with pytest.raises(ClientError, match=r"'revenu'.*Did you mean") as refused:
        advertiser.report(campaign, "html", measure="revenu")
    assert refused.value.status == 404
    assert json.loads(advertiser.report(campaign))["ratios"][0]["name"] == "value per conversion"
    row = {"publisher_id": "P-1", "day": START.date(), "amount": 10}
    told = advertiser.push_spend(campaign, [row, {**row, "publisher_id": "other", "amount": 4.5}])
    assert told == {"rows": 2, "total": 14.5}
    ratios = {
        (each["name"], each["publisher"]): each["value"]
        for each in json.loads(advertiser.report(campaign))["ratios"]
    }
    assert ratios["cost per conversion", "(all)"] == pytest.approx(14.5 / 2, rel=0.05)
    assert ratios["return on spend", "P-1"] == pytest.approx(7, rel=0.05)
    # Sent again, it counts once.
    advertiser.push_spend(campaign, [row])
    (cost,) = [
        each["value"]
        for each in json.loads(advertiser.report(campaign))["ratios"]
        if (each["name"], each["publisher"]) == ("cost per conversion", "(all)")
    ]
    assert cost == pytest.approx(5, rel=0.05)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"publisher_id": "P-9"}, "publisher 'P-9'"),
        ({"day": "2026-02-28"}, "day 2026-02-28"),
        ({"amount": -1}, "amount"),
        ({"amount": "NaN"}, "amount"),
        ({"dimensions": {"country": "DE"}}, "the dimensions country; expected those of row 1"),
    ],
)
def test_spend_that_has_no_place_changes_nothing(
    server: Running, operator: Client, change: dict[str, Any], told: str
) -> None:
    campaign = operator.create_campaign(measured())["id"]
    row = {"publisher_id": "P-1", "day": "2026-03-01", "amount": 10}
    operator.push_spend(campaign, [row])
    with pytest.raises(ClientError) as refused:
        operator.push_spend(campaign, [row, {**row, **change}])
    assert refused.value.status == 422
    assert told in refused.value.detail
    assert str(server.backend.settings.data) not in refused.value.detail
    folder = server.backend.campaigns.folder_of(campaign)
    assert (folder / "spend.csv").read_text().count("\n") == 2


def test_spend_of_cells(server: Running, operator: Client, clock: SetClock) -> None:
    campaign = operator.create_campaign(measured())["id"]
    push_a_day(server)
    clock.moment = START + DAY
    operator.release(campaign)
    server.show(campaign)
    row = {"publisher_id": "P-1", "day": START.date(), "amount": 10}
    for country in ("DE", "other"):
        told = operator.push_spend(campaign, [{**row, "dimensions": {"country": country}}])
        assert told == {"rows": 1, "total": 10}
        costs = {
            tuple(each["keys"].values())
            for each in json.loads(operator.report(campaign))["ratios"]
            if (each["name"], each["publisher"]) == ("cost per conversion", "P-1")
        }
        assert costs == {(), (country,)}
    with pytest.raises(ClientError, match="country 'XX'; expected one that"):
        operator.push_spend(campaign, [{**row, "dimensions": {"country": "XX"}}])
    with pytest.raises(ClientError, match="'land' among land"):
        operator.push_spend(campaign, [{**row, "dimensions": {"land": "DE"}}])


def test_nobody_pays_for_a_campaign_of_another(server: Running, operator: Client) -> None:
    campaign = operator.create_campaign(measured())["id"]
    with pytest.raises(ClientError) as refused:
        server.client("advertiser", "Ad-2").push_spend(campaign, [])
    assert refused.value.status == 404


def test_a_dimension_is_one_of_the_columns_of_events(operator: Client) -> None:
    other = {**MEASURED["dimensions"], "country": {"column": "land", "values": ["DE"]}}
    with pytest.raises(ClientError) as refused:
        operator.create_campaign(measured(dimensions=other))
    assert refused.value.status == 422
    assert "country, region, device, category" in refused.value.detail


def test_files_of_before_there_were_columns(
    server: Running, operator: Client, clock: SetClock
) -> None:
    """Their rows count, for what is not listed."""
    push_a_day(server)
    files = server.backend.files
    sources: tuple[Source, ...] = ("impressions", "conversions")
    for source in sources:
        for file in files.live(source, "Ad-1"):
            table = pq.read_table(file)
            pq.write_table(table.drop_columns(["country", "region", "device", "category"]), file)
    campaign = operator.create_campaign(measured())["id"]
    later = {"user_id": "u1", "timestamp": START, "value": 1.0, "country": "FR"}
    server.client("advertiser", "Ad-1").push_conversions([later])
    clock.moment = START + DAY
    operator.release(campaign)
    server.show(campaign)
    (release,) = operator.releases(campaign)
    cells = {each["measure"]: each["slot_totals"][-1]["values"] for each in release["measures"]}
    assert cells["conversions"] == pytest.approx([0, 1, 2] + [0] * 6, abs=0.05)
    assert cells["revenue"] == pytest.approx([0, 71] + [0] * 4, abs=2)


def test_targets_over_http(operator: Client) -> None:
    spec = measured(privacy={"rho": 1.0, "mechanism": "personal-budget"})
    planned = operator.plan(spec, targets=["conversions/publisher=50%", "revenue/total=20%"])
    assert planned["expected"] == MEASURED["expected"]
    assert sum(planned["proposal"]["shares"].values()) == pytest.approx(1)
    with pytest.raises(ClientError) as refused:
        operator.plan(spec, targets=["conversions"])
    assert refused.value.status == 422
    assert "conversions/publisher=10%" in refused.value.detail
