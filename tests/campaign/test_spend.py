"""Spend beside what was released: from files, with clear messages for what cannot be meant."""

from __future__ import annotations

import csv
import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc import Campaign
from adsbpc.campaign.spend import read_spend
from adsbpc.errors import SourceError
from adsbpc.model import load_spec
from adsbpc.report import Report
from adsbpc.report.schema import ReportObject
from tests.campaign.files import ADSBPC, edit, write_campaign
from tests.campaign.measured import Shop, write_shop

GOOD = "publisher_id,day,amount\nP-1,2026-03-01,100\nP-1,2026-03-01,20.5\nother,2026-03-02,7\n"


def with_spend(file: Path, content: str, name: str = "spend.csv") -> Path:
    (file.parent / name).write_text(content)
    file.write_text(file.read_text() + f'\n[spend]\nfile = "{name}"\n')
    return file


def test_spend_of_days(tmp_path: Path) -> None:
    file = with_spend(write_campaign(tmp_path), GOOD)
    spend = read_spend(load_spec(file))
    assert spend is not None
    assert spend.amounts == {(("P-1",), 1): 120.5, (("other",), 2): 7.0}
    assert spend.until(1) == 120.5
    assert spend.until(5) == 127.5
    assert spend.by(["publisher"], 2, 5) == {("other",): 7.0}
    assert spend.by(["publisher", "country"], 1, 5) is None


def test_spend_of_hours_counts_when_the_day_is_over(tmp_path: Path) -> None:
    file = with_spend(write_campaign(tmp_path, slots=48, slot="1h"), GOOD)
    spend = read_spend(load_spec(file))
    assert spend is not None
    assert set(spend.amounts) == {(("P-1",), 24), (("other",), 48)}


def test_spend_in_parquet(tmp_path: Path) -> None:
    file = write_campaign(tmp_path)
    rows = {"who": ["P-2"], "on": pa.array([date(2026, 3, 5)]), "paid": [3.0]}
    pq.write_table(pa.table(rows), tmp_path / "spend.parquet")
    file.write_text(
        file.read_text()
        + '\n[spend]\nfile = "spend.parquet"\npublisher = "who"\nday = "on"\namount = "paid"\n'
    )
    spend = read_spend(load_spec(file))
    assert spend is not None
    assert spend.amounts == {(("P-2",), 5): 3.0}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("publisher_id,day,amount\nP-3,2026-03-01,1\n", "publisher 'P-3'; expected one that"),
        ("publisher_id,day,amount\n,2026-03-01,1\n", "publisher ''"),
        ("publisher_id,day,amount\nP-1,2026-04-01,1\n", "day 2026-04-01; expected a day of the"),
        ("publisher_id,day,amount\nP-1,01.03.2026,1\n", "day '01.03.2026'; expected a day"),
        ("publisher_id,day,amount\nP-1,2026-03-01,-1\n", "amount '-1'; expected a number from 0"),
        ("publisher_id,day,amount\nP-1,2026-03-01,nan\n", "amount 'nan'"),
        ("publisher_id,day,amount\nP-1,2026-03-01,\n", "amount ''"),
        ("publisher_id,day,amount\nP-1,2026-03-01\n", "amount None"),
        ("publisher,day,amount\nP-1,2026-03-01,1\n", 'Map it in .spend.. Did you mean "publisher"'),
        ("", "column 'publisher_id'"),
    ],
)
def test_spend_that_cannot_be_meant(content: str, words: str, tmp_path: Path) -> None:
    file = with_spend(write_campaign(tmp_path), content)
    with pytest.raises(SourceError, match=words):
        read_spend(load_spec(file))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    file = with_spend(write_campaign(tmp_path), GOOD)
    (tmp_path / "spend.csv").unlink()
    with pytest.raises(SourceError, match=r"cannot be read.*Correct \[spend\] file"):
        read_spend(load_spec(file))


def test_costs_and_returns_of_a_shop(tmp_path: Path) -> None:
    shop = write_shop(tmp_path, privacy=ADSBPC)
    with_spend(shop.file, "publisher_id,day,amount\nP-1,2026-03-01,500\nP-2,2026-03-03,90\n")
    campaign = Campaign.load(shop.file)
    campaign.release(through="2026-03-02")
    found = json.loads(campaign.report().to_json())["ratios"]
    told = {(each["publisher"], each["name"]): each for each in found}
    # The second publisher is paid later.
    assert set(told) == {
        ("(all)", "cost per conversion"), ("(all)", "return on spend"),
        ("P-1", "cost per conversion"), ("P-1", "return on spend"),
        *((name, "value per conversion") for name in ("(all)", "P-1", "P-2", "other")),
    }  # fmt: skip
    total = told["P-1", "cost per conversion"]
    bought = sum(n for (slot, name, _), n in shop.conversions.items() if slot < 3 and name == "P-1")
    assert total["low"] / 1.3 <= 500 / bought <= total["high"] * 1.3
    # Spend may be added to a campaign that runs: nothing of the promise depends on it.
    edit(shop.file, "spend.csv", "more.csv")
    (tmp_path / "more.csv").write_text(GOOD.replace("other", "P-2"))
    campaign = Campaign.load(shop.file)
    campaign.release()
    assert campaign.report().spend is not None


BY_COUNTRY = """publisher_id,day,amount,country
P-1,2026-03-01,300,DE
P-1,2026-03-01,150,FR
P-1,2026-03-02,50,other
P-2,2026-03-02,90,DE
"""


def shop_with(content: str, tmp_path: Path, by: str) -> Shop:
    shop = write_shop(tmp_path, privacy=ADSBPC)
    with_spend(shop.file, content)
    shop.file.write_text(shop.file.read_text() + f"by = {by}\n")
    return shop


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """After two days, of a shop whose spend is by country."""
    shop = shop_with(BY_COUNTRY, tmp_path_factory.mktemp("shop"), '["country"]')
    campaign = Campaign.load(shop.file)
    campaign.release(through="2026-03-02")
    return campaign.report()


def test_spend_by_country_adds_up_to_that_of_publishers(report: Report) -> None:
    """And every sum that conversions have, and spend too, has a cost."""
    assert report.spend is not None
    assert report.spend.by(["publisher"], 1, 2) == {("P-1",): 500.0, ("P-2",): 90.0}
    assert report.spend.by(["country"], 1, 2) == {("DE",): 390, ("FR",): 150, ("other",): 50}
    cells = {cell.keys: cell for cell in report.newest_totals(report.measure, deepest=2)}
    costs = {
        (each.publisher, *each.keys.values()): each
        for each in report.ratios
        if each.name == "cost per conversion"
    }
    for keys, paid in {
        ("(all)",): 590, ("P-1",): 500, ("P-2",): 90, ("P-1", "DE"): 300, ("P-1", "FR"): 150,
        ("P-1", "other"): 50, ("P-2", "DE"): 90,
    }.items():  # fmt: skip
        cell, ratio = cells[() if keys == ("(all)",) else keys], costs.pop(keys)
        if cell.low > 0:
            assert ratio.value == pytest.approx(paid / cell.estimate)
            assert (ratio.low, ratio.high) == pytest.approx((paid / cell.high, paid / cell.low))
    assert not costs
    # Revenue is by device, which spend is not: publishers are as far as returns go.
    returns = [each for each in report.ratios if each.name == "return on spend"]
    assert {(each.publisher, *each.keys) for each in returns} == {("(all)",), ("P-1",), ("P-2",)}


def test_costs_of_cells_in_files(report: Report) -> None:
    ReportObject.model_validate_json(report.to_json(), strict=True)
    rows = list(csv.DictReader(report.to_csv().splitlines()))
    (row,) = (
        each
        for each in rows
        if each["measure"] == "cost per conversion"
        and (each["publisher"], each["country"]) == ("P-1", "DE")
    )
    assert (row["view"], row["query"], row["device"]) == ("publisher x country", "ratio", "(all)")
    weeks = list(csv.DictReader(report.to_mmm().splitlines()))
    paid = {
        (each["measure"], each["publisher"], each["country"], each["device"]): each["spend"]
        for each in weeks
        if each["week"] == "2026-02-23"
    }
    assert paid["conversions", "P-1", "DE", "(all)"] == "300.0"
    assert paid["conversions", "P-2", "DE", "(all)"] == "0.0"
    assert paid["revenue", "P-1", "(all)", "(all)"] == "450.0"
    assert paid["revenue", "P-1", "(all)", "phone"] == ""


@pytest.mark.parametrize(
    ("content", "by", "words"),
    [
        (BY_COUNTRY.replace("FR", "Fr"), '["country"]', "row 2: found country 'Fr'; expected one"),
        (BY_COUNTRY.replace(",FR", ","), '["country"]', "country ''"),
        (BY_COUNTRY, '["device"]', r"column 'device'.*a column for each dimension"),
        (BY_COUNTRY, '["countri"]', '.countri. among countri.*Did you mean "country"'),
        (BY_COUNTRY, '["country", "country"]', "expected each once"),
    ],
)
def test_spend_by_dimensions_that_cannot_be_meant(
    content: str, by: str, words: str, tmp_path: Path
) -> None:
    shop = shop_with(content, tmp_path, by)
    with pytest.raises(SourceError, match=words):
        read_spend(load_spec(shop.file))
