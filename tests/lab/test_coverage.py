"""Repeated campaigns count what is true of their people, and what a report says of them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adsbpc.contributions import ArrayAccounts, CellIndex
from adsbpc.errors import SpecError
from adsbpc.lab.coverage import BAND, FIRST, HALF, LAST, Held, one_trial, rows_of
from adsbpc.lab.repeated import Month, RepeatedCampaign, Stream
from adsbpc.privacy import Terms
from tests.cli.program import adsbpc

ROOT = Path(__file__).parents[2]
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
        truth = month.truth(measure, 3)
        for depth in range(len(layout.sizes)):
            found = layout.summed(whole, depth)
            for keys, total in zip(layout.names(depth), found, strict=True):
                expected = truth[keys] / measure.unit_value
                # Values are rounded down to units, once for each purchase.
                room = month.buyer.size if measure.value_cap else 0.5
                assert abs(total - expected) <= room, (measure.name, keys)
    reach = month.truth(SMALL.spec.measures[-1], 3)
    assert reach[()] < sum(reach[name,] for name in ("search", "social", "video", "news", "other"))


def test_what_is_true_grows() -> None:
    """After every slot there is as much as is contributed up to then."""
    month = Month.of(SMALL, np.random.default_rng(3))
    stream = RepeatedCampaign(people=200, slots=3, dataset="baskets").draw(4)[1]
    measure = SMALL.spec.measures[0]
    by_slot = [month.truth(measure, slot)[()] for slot in (1, 2, 3)]
    assert by_slot == [float((month.bought_on < slot).sum()) for slot in (1, 2, 3)]
    assert isinstance(stream, Stream)
    spec = RepeatedCampaign(people=200, slots=3, dataset="baskets").draw(4)[0]
    whole = stream.truth(spec.measures[0], 3)
    assert whole[()] == sum(total for keys, total in whole.items() if keys)
    assert 0 < stream.truth(spec.measures[0], 1)[()] < whole[()]


def test_figures_of_every_kind_are_judged() -> None:
    found = one_trial(SMALL, 1)
    of_measures = {
        "conversions": ("total", "publisher", "publisher x country"),
        "revenue": ("total", "publisher", "publisher x country"),
        "impressions": ("total", "publisher"),
        "reach": ("total", "publisher"),
    }
    ratios = ("value per conversion", "conversion rate", "frequency")
    assert set(found) == {
        (name, view, when)
        for name, views in of_measures.items()
        for view in views
        for when in (FIRST, HALF, LAST, BAND)
    } | {(name, view, LAST) for name in ratios for view in ("total", "publisher")}
    for row in rows_of([found, one_trial(SMALL, 2)]):
        assert row["intervals"] + row["cannot_be_told"] > 0
        assert row["coverage"] is None or 0 <= row["coverage"] <= 1


def test_data_sets_and_the_other_mechanism() -> None:
    """AdsBPC counts nobody once, so that there is no reach."""
    found = one_trial(replace(SMALL, mechanism="adsbpc"), 1)
    assert {name for name, _, _ in found} == {
        "conversions", "revenue", "impressions", "value per conversion",
    }  # fmt: skip
    of_stream = one_trial(replace(SMALL, mechanism="adsbpc", dataset="small"), 1)
    assert {view for _, view, _ in of_stream} == {"total", "publisher"}


def test_a_band_fails_where_it_fails_once() -> None:
    held = Held().with_ends([(0.0, 2.0), (0.0, 2.0)], [1.0, 3.0])
    assert (held.figures, held.told, held.below, held.above, held.missed) == (1, 1, 1, 0, 1)
    held = held.with_ends([(0.0, 2.0), (0.0, 2.0)], [3.0, -1.0])
    assert (held.below, held.above, held.missed) == (2, 1, 2)
    held = held.with_ends([(0.0, 2.0), (None, None)], [1.0, 1.0])
    assert (held.figures, held.told, held.missed) == (3, 2, 2)


def test_the_command(tmp_path: Path) -> None:
    asked = ("lab", "coverage", "--trials", 2, "--people", 200, "--slots", 3)
    done = adsbpc(*asked, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert {"figure", "view", "when", "coverage", "standard_error", "intervals"} <= rows[0].keys()
    _assert_tables(done.stdout, rows, tmp_path / "rows.json")
    assert "what is true" in adsbpc(*asked, cwd=tmp_path).stdout
    assert list(tmp_path.iterdir()) == []
    refused = adsbpc("lab", "coverage", "--rho", "much", cwd=tmp_path)
    assert refused.returncode == 2
    assert "much" in refused.stderr
    refused = adsbpc("lab", "coverage", "--mechanism", "adbpc", cwd=tmp_path)
    assert refused.returncode == 2
    assert "adsbpc" in refused.stderr


def _assert_tables(printed: str, rows: list[dict[str, Any]], file: Path) -> None:
    """The document's script has a line for every figure, and says which ends fail."""
    file.write_text(printed)
    script = [sys.executable, str(ROOT / "docs" / "measures.py"), str(file)]
    lines = subprocess.run(script, capture_output=True, text=True, check=True).stdout.splitlines()
    file.unlink()
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    for row in rows:
        own = next(line for line in table if line[:2] == [row["figure"], row["view"]])
        held = own[2 + (FIRST, HALF, LAST, BAND).index(row["when"])]
        told = row["coverage"] is not None
        assert held.partition(" ")[0] == (f"{100 * row['coverage']:.1f}" if told else "")
        assert ("±" in held) == (row["standard_error"] is not None)
        outside = told and (
            row["coverage"] < 0.935 or (row["coverage"] > 0.975 and row["when"] != BAND)
        )
        names = [row["figure"], row["view"], row["when"]]
        assert any(line[:3] == names for line in table) == outside


@pytest.mark.slow
@pytest.mark.parametrize(
    "campaign",
    [
        RepeatedCampaign(),
        RepeatedCampaign(2_500, mechanism="adsbpc", dataset="baskets"),
        RepeatedCampaign(5_000, mechanism="adsbpc", dataset="small"),
    ],
    ids=lambda campaign: f"{campaign.mechanism}-{campaign.dataset}",
)
def test_intervals_and_bands_hold(campaign: RepeatedCampaign) -> None:
    """Twenty-five campaigns each; `adsbpc lab coverage` has more."""
    for row in rows_of([one_trial(campaign, seed) for seed in range(25)]):
        least = 0.93 if row["when"] == BAND else 0.935
        assert row["coverage"] + 4 * row["standard_error"] >= least, row


def test_a_set_of_more_dimensions_is_refused() -> None:
    with pytest.raises(SpecError, match="countries: expected sets that tell publishers apart"):
        RepeatedCampaign(people=50, slots=2, dataset="countries").draw(1)
