"""Repeated campaigns count what is true of their people, and what a report says of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from adsbpc.contributions import ArrayAccounts, CellIndex
from adsbpc.lab.coverage import Month, RepeatedCampaign, one_trial, rows_of
from adsbpc.privacy import Terms
from tests.cli.program import adsbpc

SMALL = RepeatedCampaign(people=150, slots=3, rho="1")


def test_what_is_contributed_is_what_is_true() -> None:
    """With a budget that holds everybody: cells of all slots together, and people once."""
    month = Month.of(SMALL, np.random.default_rng(3))
    for measure in SMALL.spec.measures:
        layout, accounts = measure.layout, ArrayAccounts(CellIndex.of(month.rows(measure, 3)))
        totals = np.zeros(len(layout) + 1)
        for slot in range(1, 4):
            costs = (*[0] * (slot - 1), 1)
            totals += accounts.admit(Terms(costs, 1, 1, 2**80, 2**70))
        assert totals[-1] == 0, "somebody was cut: this tests something else"
        whole = [int(total) for total in totals[:-1]]
        truth = month.truth(measure)
        for depth in range(len(layout.sizes)):
            found = layout.summed(whole, depth)
            for keys, total in zip(layout.names(depth), found, strict=True):
                expected = truth[keys] / measure.unit_value
                # Values are rounded down to units, once for each purchase.
                room = month.buyer.size if measure.value_cap else 0.5
                assert abs(total - expected) <= room, (measure.name, keys)
    reach = month.truth(SMALL.spec.measures[-1])
    assert reach[()] < sum(reach[name,] for name in ("search", "social", "video", "news", "other"))


def test_figures_of_every_kind_are_judged() -> None:
    found = one_trial(SMALL, 1)
    assert set(found) == {
        (name, view)
        for name, views in {
            "conversions": ("total", "publisher", "publisher x country"),
            "revenue": ("total", "publisher", "publisher x country"),
            "impressions": ("total", "publisher"),
            "reach": ("total", "publisher"),
            "value per conversion": ("total", "publisher"),
            "conversion rate": ("total", "publisher"),
            "frequency": ("total", "publisher"),
        }.items()
        for view in views
    }
    for row in rows_of([found, one_trial(SMALL, 2)]):
        assert row["intervals"] + row["cannot_be_told"] > 0
        assert row["coverage"] is None or 0 <= row["coverage"] <= 1


def test_the_command(tmp_path: Path) -> None:
    asked = ("lab", "coverage", "--trials", 2, "--people", 200, "--slots", 3)
    done = adsbpc(*asked, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert {"figure", "view", "coverage", "standard_error", "intervals"} <= rows[0].keys()
    assert "what is true" in adsbpc(*asked, cwd=tmp_path).stdout
    assert list(tmp_path.iterdir()) == []
    refused = adsbpc("lab", "coverage", "--rho", "much", cwd=tmp_path)
    assert refused.returncode == 2
    assert "much" in refused.stderr


@pytest.mark.slow
def test_intervals_hold() -> None:
    """Twenty-five campaigns; `adsbpc lab coverage` has more."""
    for row in rows_of([one_trial(RepeatedCampaign(), seed) for seed in range(25)]):
        assert row["coverage"] + 4 * row["standard_error"] >= 0.94, row
