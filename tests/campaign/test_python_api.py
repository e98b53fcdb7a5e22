"""`from adsbpc import Campaign`: the four verbs, and results as tables."""

from __future__ import annotations

import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import adsbpc
from adsbpc import Campaign
from adsbpc.campaign import Releases
from adsbpc.errors import SourceError, SpecError
from tests.campaign.book_files import kept
from tests.campaign.files import FIXED, PERSONAL, write_campaign
from tests.conftest import SPARK_OPTIONS
from tests.effort import first


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return Campaign.load(write_campaign(tmp_path))


def test_releases_as_tables(campaign: Campaign) -> None:
    released = campaign.release(through="2026-03-02")
    assert [one.release.slot for one in released] == [1, 2]
    assert [one.release.slot for one in released[1:]] == [2]
    table = released.to_arrow()
    assert table.column_names == [
        "slot", "replayed", "measure", "view", "query", "value", "standard_error", "publisher",
    ]  # fmt: skip
    assert table.num_rows == 2 * (1 + 3)
    assert released.to_pandas()["value"].tolist() == table["value"].to_pylist()
    assert released.to_polars()["value"].to_list() == table["value"].to_pylist()
    assert "2 slots released, 0 were released before" in released._repr_html_()
    assert repr(released) == "Releases(2 slots released, 0 were released before)"
    assert campaign.status().to_arrow()["released"].to_pylist() == [2]


def test_a_plan_as_a_table(campaign: Campaign) -> None:
    plan = campaign.plan()
    assert plan.to_arrow().num_rows == 2 * 5
    shown = plan._repr_html_()
    assert "rho = 1 zCDP for one user" in shown
    assert shown.count("<svg ") == 1
    assert "<script" not in shown
    expected = campaign.plan(
        expected={"conversions": 400}, targets=["conversions/publisher=50%"]
    )._repr_html_()
    assert "400" in expected
    assert "Proposed: rho =" in expected
    assert plan.to_polars()["standard_error"].to_list() == [
        query.standard_error for query in plan.queries
    ]


def test_a_report_as_tables(campaign: Campaign) -> None:
    campaign.release()
    report = campaign.report(level=0.9)
    assert report.to_arrow().num_rows == len(report.rows()) == 5 * 4
    assert "<svg" in report._repr_html_()
    assert campaign.report(adjusted=True).rows()[0].low >= 0


def test_personal_budgets_as_tables(tmp_path: Path) -> None:
    campaign = Campaign.load(write_campaign(tmp_path, privacy=PERSONAL))
    before = campaign.status()
    assert (before.bound, before.allowance) == (None, None)
    assert campaign.plan().to_arrow().num_rows == 2 * 5
    released = campaign.release()
    assert released.to_pandas()["standard_error"].min() > 0
    found = campaign.report().to_pandas()
    assert len(found) == 5 * 4
    assert set(found["publisher"]) >= {"P-1", "P-2", "other"}
    assert np.isfinite(found[["low", "value", "high", "cut"]].to_numpy(float)).all()
    assert (found["low"] <= found["value"]).all()
    assert (found["value"] <= found["high"]).all()
    assert (found["low"] < found["high"]).all()
    status = campaign.status()
    assert status.bound is None
    assert status.allowance == released[-1].release.measures[0].allowance
    assert status.to_arrow()["allowance"].to_pylist() == [status.allowance]
    assert status.to_arrow()["bound"].to_pylist() == [None]
    assert 0.99 < status.campaign_budget.spent <= 1
    adjusted = campaign.report(adjusted=True).to_pandas()
    assert (adjusted["low"] >= 0).all()


def test_what_was_cut_is_in_the_table(tmp_path: Path) -> None:
    """An allowance that lets in a part of everybody: intervals reach up to what is missing, and
    two reports of the same releases are the same."""
    campaign = Campaign.load(write_campaign(tmp_path, privacy=FIXED, conversions_per_slot=400))
    campaign.release()
    assert campaign.status().allowance == pytest.approx(1.0, rel=0.01)
    rows = campaign.report().rows()
    last = [row for row in rows if row.cut > 0 and np.isfinite(row.high)]
    assert last
    assert all(row.high >= row.estimate + row.cut for row in last)
    assert campaign.report().rows() == rows


def test_a_long_table_is_cut_in_a_notebook(campaign: Campaign) -> None:
    released = Releases(list(campaign.release()) * 5)
    assert released.to_arrow().num_rows == 100
    assert "40 rows more" in released._repr_html_()


CONTENT: dict[str, Any] = {
    "campaign": {
        "name": "spring", "scope": "acme", "advertiser": "Ad-1", "start": date(2026, 3, 1),
        "slots": 5, "publishers": ["P-1", "P-2"],
    },
    "attribution": {"model": "uniform"},
    "privacy": {"rho": 1.0, "personal_budget": {"allowance": 1.0}},
    "ledger": {"location": "ledger.sqlite"},
}  # fmt: skip


@pytest.mark.parametrize("library", first(1, ["pandas", "polars", "arrow"]))
@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_events_in_memory(engine: str, library: str, tmp_path: Path) -> None:
    """The same is let in as from files, and no event is left on the disk."""
    file = write_campaign(tmp_path / "files", privacy=FIXED)
    Campaign.load(file).release()
    convert = {
        "pandas": pa.Table.to_pandas, "polars": pl.from_arrow, "arrow": lambda table: table,
    }[library]  # fmt: skip
    frames = {
        source: convert(pq.read_table(file.parent / f"{source}.parquet"))
        for source in ("impressions", "conversions")
    }
    options = SPARK_OPTIONS if engine == "spark" else {}
    content = {**CONTENT, "events": {"engine": engine}, "engine": {"options": options}}
    memory = tmp_path / "memory"
    memory.mkdir()
    campaign = Campaign.from_dict(content, memory, **frames)
    assert campaign.rehearse().conversions == 12
    assert len(campaign.release()) == 5
    assert kept(memory) == kept(file.parent)
    assert campaign.audit().held
    left = {path.suffix for path in memory.rglob("*") if "adsbpc-books" not in path.parts}
    assert ".parquet" not in left


def test_a_campaign_as_a_dict_is_the_one_of_its_file(tmp_path: Path) -> None:
    file = write_campaign(tmp_path, privacy=FIXED)
    content = tomllib.loads(file.read_text())
    assert Campaign.from_dict(content, tmp_path) == Campaign.load(file)
    assert len(Campaign.from_dict(content, tmp_path).release()) == 5


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"impressions: found a list that is no table"):
        Campaign.from_dict(CONTENT, tmp_path, impressions=[1, 2])
    with pytest.raises(SourceError, match=r"conversions: found a DataFrame that is no table"):
        Campaign.from_dict(CONTENT, tmp_path, conversions=pd.DataFrame({"user_id": [1, "a", {}]}))
    named = {**CONTENT, "events": {"impressions": "x.parquet", "conversions": "y.parquet"}}
    with pytest.raises(SpecError, match=r"handed over, and \[events\] impressions names them too"):
        Campaign.from_dict(named, tmp_path, impressions=pa.table({"user_id": ["u"]}))
    with pytest.raises(SpecError, match=r"\[events\] conversions"):
        Campaign.from_dict(CONTENT, tmp_path, impressions=pa.table({"user_id": ["u"]}))
    broken = Campaign.from_dict(
        CONTENT, tmp_path, impressions=pa.table({"a": [1]}), conversions=pa.table({"a": [1]})
    )
    with pytest.raises(SourceError, match="column"):
        broken.release(1)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_the_package_has_nothing_else() -> None:
    assert adsbpc.Campaign is Campaign
    assert dir(adsbpc) == ["Campaign", "Client", "__version__"]
    with pytest.raises(AttributeError, match="no attribute 'Champaign'"):
        _ = adsbpc.Champaign
