"""`from adsbpc import Campaign`: the four verbs, and results as tables."""

from __future__ import annotations

from pathlib import Path

import pytest

import adsbpc
from adsbpc import Campaign
from tests.campaign.files import write_campaign


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


def test_a_long_table_is_cut_in_a_notebook(tmp_path: Path) -> None:
    plan = Campaign.load(write_campaign(tmp_path, 100)).plan()
    assert "40 rows more" in plan._repr_html_()


def test_the_package_has_nothing_else() -> None:
    assert adsbpc.Campaign is Campaign
    with pytest.raises(AttributeError, match="no attribute 'Champaign'"):
        _ = adsbpc.Champaign
