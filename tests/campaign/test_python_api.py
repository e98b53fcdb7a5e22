"""`from adsbpc import Campaign`: the four verbs, and results as tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import adsbpc
from adsbpc import Campaign
from tests.campaign.files import FIXED, PERSONAL, write_campaign


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return Campaign.load(write_campaign(tmp_path))


def test_releases_as_tables(campaign: Campaign) -> None:
    released = campaign.release(through="2026-03-02")
    assert [one.release.slot for one in released] == [1, 2]
    assert [one.release.slot for one in released[1:]] == [2]
    table = released.to_arrow()
    assert table.column_names == [
        "slot", "replayed", "publisher", "query", "value", "standard_error",
    ]  # fmt: skip
    assert table.num_rows == 2 * 3
    assert released.to_pandas()["value"].tolist() == table["value"].to_pylist()
    assert released.to_polars()["value"].to_list() == table["value"].to_pylist()
    assert "2 slots released, 0 were released before" in released._repr_html_()
    assert repr(released) == "Releases(2 slots released, 0 were released before)"
    assert campaign.status().to_arrow()["released"].to_pylist() == [2]


def test_a_plan_as_a_table(campaign: Campaign) -> None:
    plan = campaign.plan()
    assert plan.to_arrow().num_rows == 5
    assert "rho = 1 zCDP for one user" in plan._repr_html_()
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
    assert campaign.plan().to_arrow().num_rows == 5
    released = campaign.release()
    assert released.to_pandas()["standard_error"].min() > 0
    found = campaign.report().to_pandas()
    assert len(found) == 5 * 4
    assert set(found["publisher"]) >= {"P-1", "P-2", "other"}
    assert np.isfinite(found[["low", "estimate", "high", "cut"]].to_numpy(float)).all()
    assert (found["low"] <= found["estimate"]).all()
    assert (found["estimate"] <= found["high"]).all()
    assert (found["low"] < found["high"]).all()
    status = campaign.status()
    assert status.bound is None
    assert status.allowance == released[-1].release.allowance
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


def test_a_long_table_is_cut_in_a_notebook(tmp_path: Path) -> None:
    plan = Campaign.load(write_campaign(tmp_path, 100)).plan()
    assert "40 rows more" in plan._repr_html_()


def test_the_package_has_nothing_else() -> None:
    assert adsbpc.Campaign is Campaign
    with pytest.raises(AttributeError, match="no attribute 'Champaign'"):
        _ = adsbpc.Champaign
