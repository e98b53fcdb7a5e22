"""Sums over any slots: what they are, how noisy they are, and weeks for other models."""

from __future__ import annotations

import csv
import io
from datetime import date
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from adsbpc import Campaign
from adsbpc.errors import SpecError
from adsbpc.mechanisms import plan_adsbpc
from adsbpc.mechanisms.by_rows.planning import plan_by_rows
from adsbpc.model import Adjacency, Drawn, Measured
from adsbpc.model.release_spec import AdsBPCSection, PersonalBudgetSection
from tests.campaign.files import ADSBPC, PERSONAL, edit, write_campaign
from tests.campaign.measured import write_shop
from tests.cli.program import adsbpc
from tests.mechanisms.test_views import (
    LAYOUT,
    SLOTS,
    TRUTH,
    question,
    releases,
)


@pytest.mark.parametrize("mechanism", ["adsbpc", "personal-budget"])
def test_errors_of_a_range_are_those_of_what_is_released(mechanism: str) -> None:
    """Where a release states an error, it is the same; elsewhere, 300 runs have it."""
    asked = question(Adjacency.ADD_REMOVE)
    planned = (
        plan_adsbpc(asked, AdsBPCSection(bounds="fixed", bound=1))
        if mechanism == "adsbpc"
        else plan_by_rows(asked, PersonalBudgetSection(allowance=4.0))
    )

    def measured(drawn: list[Drawn]) -> list[Measured]:
        return [Measured(**dict(each), measure="m", metric="conversions") for each in drawn]

    def errors_of(first: int, last: int) -> list[float]:
        noise = planned.running_noise(first_run, (first - 1, last))
        own = noise.together((0, 1), (0, 1))
        return [sqrt(noise.of_sum(own, depth, 0)) for depth in range(3)]

    first_run = measured(releases(mechanism, Adjacency.ADD_REMOVE, 2))
    assert not any(a.added for each in first_run for a in (*each.running_totals, *each.slot_totals))
    for slot, each in enumerate(first_run, start=1):
        errors = errors_of(1, slot)
        assert errors == pytest.approx([a.standard_error for a in each.running_totals])
        errors = errors_of(slot, slot)
        assert errors == pytest.approx([a.standard_error for a in each.slot_totals])
    stated = errors_of(2, 3)
    truth, off = TRUTH[2] - TRUTH[0], []
    for seed in range(300):
        found = releases(mechanism, Adjacency.ADD_REMOVE, seed)
        later, before = (
            np.array(totals.values) - totals.added * np.array(found[k].shares(2))
            for k in (2, 0)
            for totals in (found[k].running_totals[2],)
        )
        off.append(later - before - truth)
    independent = 300 * len(LAYOUT)
    assert np.var(off) / stated[2] ** 2 == pytest.approx(1, abs=6 * (2 / independent) ** 0.5)
    assert SLOTS == 3


# Of which nothing is added back, because no histogram tells what is cut.
FIXED_BOUND = f'{ADSBPC}\n[privacy.adsbpc]\nbounds = "fixed"\nbound = 2'


@pytest.mark.parametrize(
    "privacy", [ADSBPC, FIXED_BOUND, PERSONAL], ids=["adsbpc", "fixed", "personal-budget"]
)
def test_any_range_of_a_report(privacy: str, tmp_path: Path) -> None:
    campaign = Campaign.load(write_campaign(tmp_path, privacy=privacy))
    campaign.release()
    report = campaign.report()
    # What was cut is shared out as the newest slot tells, in every range.
    for slots, shown in (((1, 5), report.running_totals([5])), ((5, 5), report.slot_totals([5]))):
        for cell, same in zip(report.between(*slots), shown, strict=True):
            assert (cell.keys, cell.first_slot, cell.slot) == (same.keys, *slots)
            assert cell.estimate == pytest.approx(same.estimate, abs=1e-9)
            assert cell.standard_error == pytest.approx(same.standard_error)
            assert cell.low == pytest.approx(same.low)
            assert cell.high == pytest.approx(same.high)
    parts = [report.between(1, 2), report.between(3, 5)]
    for one, other, both in zip(*parts, report.between(1, 5), strict=True):
        # What is added because it was cut depends on how much of it a range shows.
        if privacy == FIXED_BOUND:
            assert one.estimate + other.estimate == pytest.approx(both.estimate, abs=1e-9)
    for wrong in ((0, 2), (3, 2), (1, 6)):
        with pytest.raises(SpecError, match="from 1 to 5"):
            report.between(*wrong)


def test_weeks_for_marketing_mix_models(tmp_path: Path) -> None:
    shop = write_shop(tmp_path, people=60)
    (tmp_path / "spend.csv").write_text("publisher_id,day,amount\nP-1,2026-03-02,40\n")
    shop.file.write_text(shop.file.read_text() + '\n[spend]\nfile = "spend.csv"\n')
    campaign = Campaign.load(shop.file)
    campaign.release()
    done = adsbpc("report", "shop.toml", "--format", "mmm", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "weeks.csv").read_text()
    assert text == campaign.report().to_mmm()
    rows = list(csv.DictReader(io.StringIO(text)))
    # The first of March 2026 is a Sunday.
    assert {(row["week"], row["slots"]) for row in rows} == {
        (str(date(2026, 2, 23)), "1"),
        (str(date(2026, 3, 2)), "2"),
    }
    paid = {
        (row["week"], row["publisher"]): row["spend"]
        for row in rows
        if row["view"] in ("total", "publisher") and row["measure"] == "conversions"
    }
    assert paid["2026-03-02", "P-1"] == paid["2026-03-02", "(all)"] == "40.0"
    assert paid["2026-02-23", "P-1"] == "0.0"
    assert all(float(row["standard_error"]) > 0 for row in rows)


def test_no_name_in_weeks_is_a_formula(tmp_path: Path) -> None:
    file = write_campaign(tmp_path)
    edit(file, '"P-1"', '"=P-1"')
    campaign = Campaign.load(file)
    campaign.release()
    names = {row["publisher"] for row in csv.DictReader(io.StringIO(campaign.report().to_mmm()))}
    assert names == {"'=P-1", "P-2", "other", "(all)"}
