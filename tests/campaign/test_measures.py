"""Campaigns with several measures and dimensions, from files to the report and the audit."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from adsbpc import Campaign
from adsbpc.campaign.data_path import attribute, contributed, write_credits
from adsbpc.campaign.promise import as_started, promise_of
from adsbpc.contributions import contributions_sql
from adsbpc.errors import LedgerError, SourceError, SpecError
from adsbpc.model import CampaignSpec, load_spec
from tests.campaign.files import ADSBPC, PERSONAL
from tests.campaign.measured import COUNTRIES, DEVICES, PUBLISHERS, SLOTS, Shop, write_shop
from tests.conftest import open_test_engine

MECHANISMS = {"adsbpc": ADSBPC, "personal-budget": PERSONAL}


@pytest.fixture(params=MECHANISMS)
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    return write_shop(tmp_path, privacy=MECHANISMS[request.param])


def exact_cells(shop: Shop, engine_name: str) -> dict[str, Any]:
    """Totals before any privacy, by measure, slot and cell, in the metric."""
    spec, engine = load_spec(shop.file), open_test_engine(engine_name)
    try:
        found = {}
        for measure in spec.measures:
            with contributed(attribute(spec, engine), measure) as people:
                totals = [people.totals(slot) for slot in range(1, SLOTS + 1)]
            found[measure.name] = np.array(totals) * measure.unit_value
    finally:
        engine.close()
    return found


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_cells_hold_what_happened(tmp_path: Path, engine: str) -> None:
    shop = write_shop(tmp_path, people=60, engine=engine)
    found = exact_cells(shop, engine)
    for name, truth, lists in (
        ("conversions", shop.conversions, COUNTRIES),
        ("revenue", shop.revenue, DEVICES),
    ):
        expected = [
            [truth[slot, publisher, value] for publisher in PUBLISHERS for value in lists]
            for slot in range(1, SLOTS + 1)
        ]
        np.testing.assert_allclose(found[name], expected, rtol=1e-5)


def test_removing_anybody_leaves_all_others_as_they_are(tmp_path: Path) -> None:
    """Dimensions of conversions and of touches, values that only one person has among them."""
    shop = write_shop(tmp_path, people=12)
    spec, engine = load_spec(shop.file), open_test_engine("duckdb")

    def rows() -> list[tuple[Any, ...]]:
        credits = attribute(spec, engine).credits
        return [
            (measure.name, *row)
            for measure in spec.measures
            for row in engine.rows("rows", contributions_sql(measure, spec.index_columns, credits))
        ]

    before = rows()
    files = [tmp_path / f"{name}.parquet" for name in ("impressions", "conversions")]
    whole = [pq.read_table(file) for file in files]
    for person in ("u0", "u5", "u11"):
        for file, table in zip(files, whole, strict=True):
            pq.write_table(table.filter(pc.not_equal(table["user_id"], person)), file)
        assert sorted(rows()) == sorted(row for row in before if row[1] != person)
    engine.close()


def test_a_campaign_from_files_to_the_audit(shop: Shop) -> None:
    campaign = Campaign.load(shop.file)
    released = campaign.release()
    assert [one.release.slot for one in released] == [1, 2, 3]
    assert campaign.status().campaign_budget.spent <= 1
    for one in released:
        assert [each.measure for each in one.release.measures] == ["conversions", "revenue"]
        for measured in one.release.measures:
            assert_adds_up(measured.answers)
            assert_adds_up(measured.slot_totals)
    spent = sum(line.pico_rho for one in released for line in one.release.charges)
    assert Fraction(spent, 10**12) == campaign.status().campaign_budget.spent
    findings = campaign.audit()
    assert findings.held, findings.broken
    names = [claim.name for claim in findings.claims]
    assert "revenue: answers" in names
    assert "conversions: charges" in names
    # A second run draws and charges nothing.
    assert [one.text for one in campaign.release()] == [one.text for one in released]
    assert campaign.verify().problem is None


def assert_adds_up(answers: Any) -> None:
    by_query: dict[str, list[Any]] = {}
    for each in answers:
        by_query.setdefault(each.query, []).append(each)
    for total, publishers, cells in by_query.values():
        (whole,) = total.values
        assert sum(publishers.values) == pytest.approx(whole, abs=1e-9 * max(1, abs(whole)))
        rows = np.array(cells.values).reshape(len(publishers.values), -1)
        np.testing.assert_allclose(rows.sum(axis=1), publishers.values, atol=1e-9 * 1e4)


def test_estimates_are_near_the_truth(shop: Shop) -> None:
    """Within six standard errors, of every measure, view and sum, cut included."""
    campaign = Campaign.load(shop.file)
    campaign.release()
    report = campaign.report(level=0.9999)
    truths: dict[str, Any] = {"conversions": shop.conversions, "revenue": shop.revenue}
    for cell in report.rows():
        truth = sum(
            amount
            for (slot, *keys), amount in truths[cell.measure].items()
            if slot <= cell.slot and tuple(keys[: len(cell.keys)]) == cell.keys
        )
        room = 2 * cell.standard_error + (0.2 * truth if cell.cut == 0 else 0)
        assert cell.low - room <= truth <= cell.high + room, cell


def test_the_long_form(shop: Shop) -> None:
    campaign = Campaign.load(shop.file)
    campaign.release()
    found = campaign.report().to_polars()
    assert isinstance(found, polars.DataFrame)
    # Ratios stand below, under their names.
    ratios = found.filter(polars.col("query") == "ratio")
    assert ratios.group_by("measure", "view").len().sort("len").rows() == [
        ("value per conversion", "total", 1),
        ("value per conversion", "publisher", 3),
    ]
    assert ratios["standard_error"].null_count() == len(ratios)
    assert ratios["device"].unique().to_list() == ["(all)"]
    found = found.filter(polars.col("query") != "ratio")
    assert {"measure", "view", "first_slot", "last_slot", "publisher", "country", "device",
            "value", "low", "high", "standard_error"} <= set(found.columns)  # fmt: skip
    views = found.group_by("measure", "view").len().sort("measure", "len").rows()
    assert views == [
        ("conversions", "total", 3), ("conversions", "publisher", 9),
        ("conversions", "publisher x country", 27), ("revenue", "total", 3),
        ("revenue", "publisher", 9), ("revenue", "publisher x device", 18),
    ]  # fmt: skip
    total = found.filter((polars.col("view") == "total") & (polars.col("measure") == "revenue"))
    assert total["publisher"].unique().to_list() == ["(all)"]
    html = campaign.report().to_html()
    assert "attributed conversions" in html
    # Figures of all measures on top, and what is below publishers.
    for shown in (
        "<dt>conversions</dt>",
        "<dt>revenue, EUR</dt>",
        "value per conversion",
        '"levels":["publisher","country"]',
    ):
        assert shown in html
    assert '"shown":1' in campaign.report(measure="revenue").to_html()
    with pytest.raises(SpecError, match='Did you mean "revenue"'):
        campaign.report(measure="revenu")
    revenue = json.loads(campaign.report().to_json())
    assert [each["name"] for each in revenue["measures"]] == ["conversions", "revenue"]


@pytest.mark.slow
def test_a_killed_run_and_a_lost_ledger(tmp_path: Path) -> None:
    """What was published goes back into an older ledger, for all measures or for none."""
    shop = write_shop(tmp_path, people=100, privacy=PERSONAL)
    campaign = Campaign.load(shop.file)
    campaign.release(1)
    ledger = tmp_path / "adsbpc-ledger.sqlite"
    backup = ledger.read_bytes()
    before = [one.text for one in campaign.release(2)]
    for mark in (*tmp_path.glob("adsbpc-ledger.sqlite?*"), ledger):
        mark.unlink()
    ledger.write_bytes(backup)
    restored = Campaign.load(shop.file).restore()
    assert [one.text for one in restored.releases] == before
    assert Campaign.load(shop.file).release(3)[0].release.slot == 3
    assert Campaign.load(shop.file).audit().held


def test_books_of_a_measure_that_were_lost_are_refused(tmp_path: Path) -> None:
    shop = write_shop(tmp_path, people=60, privacy=PERSONAL)
    campaign = Campaign.load(shop.file)
    campaign.release(1)
    (folder,) = (tmp_path / "adsbpc-books").glob("*/*/measure=revenue*")
    shutil.rmtree(folder)
    with pytest.raises(LedgerError, match="Without them nobody knows what people have spent"):
        campaign.release(2)
    # Nothing of the slot was charged, of the other measure either.
    assert campaign.status().released == 1


def test_measures_may_not_change_once_started(tmp_path: Path) -> None:
    shop = write_shop(tmp_path, people=60)
    Campaign.load(shop.file).release(1)
    text = shop.file.read_text()
    for change in (
        ("share = 0.6", "share = 0.5"), ('"DE", "FR"', '"DE"'),
        ("value_cap = 40.0", "value_cap = 41.0"), ('column = "land"', 'column = "user_id"'),
    ):  # fmt: skip
        changed = text.replace(*change)
        if change[0] == "share = 0.6":
            changed = changed.replace("share = 0.4", "share = 0.5")
        shop.file.write_text(changed)
        with pytest.raises(LedgerError, match="promises something else now"):
            Campaign.load(shop.file).release(2)
    # Stating what is chosen anyway changes nothing.
    shop.file.write_text(text.replace("share = 0.6", "share = 0.6\nweights = [1, 8, 8]"))
    assert Campaign.load(shop.file).release(2)


def test_weights_that_an_earlier_version_chose_stay(tmp_path: Path) -> None:
    spec = load_spec(write_shop(tmp_path, people=1).file)
    stored = promise_of(spec)
    assert spec.measures[0].layout.weights == (1, 8, 8)
    stored["measures"]["conversions"]["weights"] = [1, 4, 4]
    assert as_started(spec, stored).measures[0].layout.weights == (1, 4, 4)


def test_keys_that_a_later_version_adds_change_no_promise(tmp_path: Path) -> None:
    """What was stored lacks them, and means what they are if left out."""
    spec = load_spec(write_shop(tmp_path, people=1).file)
    stored = promise_of(spec)
    del stored["measures"]["conversions"]["currency"], stored["dimensions"]["country"]["of"]
    assert as_started(spec, stored).measures == spec.measures
    del stored["measures"]["revenue"]["currency"]
    with pytest.raises(LedgerError, match="promises something else now"):
        as_started(spec, stored)


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    shop = write_shop(tmp_path, people=5)
    shop.file.write_text(shop.file.read_text().replace('column = "land"', 'column = "lnd"'))
    with pytest.raises(SourceError, match=r"\[dimensions.country\] column.*Did you mean \"land\""):
        Campaign.load(shop.file).release(1)


@pytest.mark.parametrize(
    ("line", "changed", "words"),
    [
        ("share = 0.6", "share = 1.2", r"measure.0. share = 1.2: expected at most 1. Lower it"),
        ("share = 0.6", "share = -0.1", r"share = -0.1: expected 0.001 or more. Raise it"),
        ("share = 0.6", "share = 0.9", r"measure.: the shares .* add up to 1.3: expected 1. Corr"),
        ("share = 0.6\n", "", r"'conversions' has no share, and others have: give all or none"),
        ('["DE", "FR"]', '["DE", "FR", "DE"]', r"country.: values lists 'DE' more .* remove the"),
    ],
)
def test_bad_files_say_what_is_wrong_and_what_to_do(
    line: str, changed: str, words: str, tmp_path: Path
) -> None:
    shop = write_shop(tmp_path, people=1)
    shop.file.write_text(shop.file.read_text().replace(line, changed))
    with pytest.raises(SpecError, match=words):
        load_spec(shop.file)


def test_a_column_of_impressions_that_is_not_there(tmp_path: Path) -> None:
    shop = write_shop(tmp_path, people=5)
    text = shop.file.read_text().replace('column = "device"', 'column = "devise"')
    shop.file.write_text(text)
    words = r"impressions.*\[dimensions.device\] column.*Did you mean \"device\""
    with pytest.raises(SourceError, match=words):
        Campaign.load(shop.file).release(1)


def test_credits_carry_dimensions(tmp_path: Path) -> None:
    shop = write_shop(tmp_path, people=30)
    engine = open_test_engine("duckdb")
    write_credits(attribute(load_spec(shop.file), engine), tmp_path / "credits.parquet")
    engine.close()
    found = polars.read_parquet(tmp_path / "credits.parquet")
    by_country = found.group_by("slot", "publisher_id", "country").agg(polars.col("credit").sum())
    for slot, publisher, country, credit in by_country.rows():
        if publisher in PUBLISHERS:
            assert credit == pytest.approx(shop.conversions[slot, publisher, country])


def test_plans_say_what_every_view_is_worth(shop: Shop) -> None:
    plan = Campaign.load(shop.file).plan()
    last = {
        (row.measure, row.view): row.standard_error for row in plan.queries if row.slot == SLOTS
    }
    assert set(last) == {
        ("conversions", "total"), ("conversions", "publisher"),
        ("conversions", "publisher x country"), ("revenue", "total"), ("revenue", "publisher"),
        ("revenue", "publisher x device"),
    }  # fmt: skip
    # Sums of cells would give the total three times the error of a cell.
    assert last["conversions", "total"] < 2.9 * last["conversions", "publisher x country"]
    assert sum(plan.split.values()) == 1
    assert {part.split(": ")[0] for part in plan.split} == {"conversions", "revenue"}


BASE: dict[str, Any] = {
    "campaign": {
        "name": "a", "advertiser": "A", "start": "2026-03-01", "slots": 3, "publishers": ["p"],
    },
    "events": {"impressions": "i", "conversions": "c"},
    "privacy": {"rho": 1.0},
}  # fmt: skip


def country(*values: str) -> dict[str, Any]:
    return {"country": {"column": "country", "values": values}}


COUNTRY = country("DE", "FR")
BY_COUNTRY = {"name": "m", "by": ["publisher", "country"]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"measure": [{"name": "a", "share": 0.7}, {"name": "b", "share": 0.7}]}, "add up to 1.4"),
        ({"measure": [{"name": "a", "share": 0.7}, {"name": "b"}]}, "'b' has no share"),
        ({"measure": [{"name": "a"}, {"name": "a"}]}, "two measures have the name 'a'"),
        ({"measure": [{"name": "a: b"}]}, "without a colon"),
        ({"measure": [{"name": "a", "metric": "value"}]}, "needs value_cap"),
        ({"measure": [{"name": "a", "value_cap": 3.0}]}, "value_cap belongs to"),
        ({"measure": [{"name": "a", "currency": "EUR"}]}, "belongs to metric"),
        ({"measure": [{"name": "a", "by": ["publisher", "publisher"]}]}, "more than once"),
        ({"measure": [{"name": "a", "weights": [1, 0]}]}, "the last one above 0"),
        ({"measure": [{"name": "a", "weights": [1, 2, 3]}]}, "expected 2 whole numbers"),
        ({"measure": [{"name": "a", "weights": [1, 9]}]}, "8"),
        (
            {"measure": [{"name": "a", "by": ["contry"]}], "dimensions": COUNTRY},
            'no \\[dimensions.contry\\].* Did you mean "country"',
        ),
        ({"dimensions": COUNTRY}, "no measure is by it"),
        (
            {"measure": [BY_COUNTRY], "dimensions": country("x", "x")},
            "more than once",
        ),
        (
            {"measure": [BY_COUNTRY], "dimensions": country("other")},
            "kept for everything that is not listed",
        ),
        (
            {"measure": [{"name": "a"}], "campaign": {**BASE["campaign"], "metric": "conversions"}},
            "move it into a measure",
        ),
        (
            {
                "measure": [BY_COUNTRY],
                "dimensions": {"country": {**COUNTRY["country"], "of": "impression"}},
                "attribution": {"model": "shapley_path"},
            },
            "credits publishers, not touches",
        ),
    ],
)
def test_files_that_make_no_sense(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises((SpecError, ValueError), match=words):
        CampaignSpec.model_validate({**BASE, **change})


def test_a_file_without_measures_means_what_it_meant() -> None:
    spec = CampaignSpec.model_validate(BASE)
    (measure,) = spec.measures
    assert (measure.name, measure.share) == ("conversions", Fraction(1))
    assert measure.layout.weights == (0, 1)
    assert measure.layout.names(1) == (("p",), ("other",))
