"""How large errors are beside what is counted, and which budget reaches a target."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from adsbpc import Campaign
from adsbpc.campaign.accuracy import REACH, Target
from adsbpc.campaign.plan import Plan
from adsbpc.errors import SpecError
from tests.campaign.files import ADSBPC, FIXED, PERSONAL, edit
from tests.campaign.measured import write_shop
from tests.cli.program import adsbpc

EXPECTED = {"conversions": 5_000.0, "revenue": 90_000.0}
TARGETS = ("conversions/publisher=10%", "conversions/total=1%", "revenue/publisher@2%=60%")


def shop(folder: Path, rho: str = "1.0", shares: tuple[str, str] = ("0.6", "0.4")) -> Campaign:
    file = write_shop(folder, people=1, privacy=FIXED).file
    edit(file, "rho = 1.0", f"rho = {rho}")
    for old, new in zip(("share = 0.6\n", "share = 0.4\n"), shares, strict=True):
        edit(file, old, f"share = {new} # new\n")
    return Campaign.load(file)


def off(planned: Plan, target: Target) -> float:
    """How far a sum is off, as a part of what is expected of it."""
    found = next(
        row
        for row in planned.accuracy
        if (row.measure, row.view, row.period) == (target.measure, target.view, "campaign")
    )
    return found.error / ((target.part or found.part) * EXPECTED[target.measure])


@pytest.mark.parametrize("privacy", [ADSBPC, PERSONAL, FIXED], ids=["adsbpc", "personal", "fixed"])
def test_errors_stand_beside_what_is_expected(tmp_path: Path, privacy: str) -> None:
    file = write_shop(tmp_path, people=1, privacy=privacy).file
    planned = Campaign.load(file).plan(expected=EXPECTED)
    last = {(q.measure, q.view): q.standard_error for q in planned.queries if q.slot == 3}
    for row in planned.accuracy:
        if row.period == "campaign":
            assert row.error == pytest.approx(REACH * last[row.measure, row.view])
            assert row.amount == pytest.approx(row.part * EXPECTED[row.measure])
        assert row.within == pytest.approx(row.error / row.amount)
    parts = [row.part for row in planned.accuracy if row.view == "publisher x country"]
    assert parts == [1 / 9, 0.1, 0.02] * 2


def test_the_workload_does_not_matter(tmp_path: Path) -> None:
    """Totals at the end are what people plan for, whatever else they ask."""
    found = []
    for folder in ("prefix", "slot"):
        file = write_shop(tmp_path / folder, people=1, privacy=ADSBPC).file
        asked = f'[[workload]]\nqueries = "{folder}"\n\n[[measure]]\nname = "conversions"'
        edit(file, '[[measure]]\nname = "conversions"', asked)
        found.append(Campaign.load(file).plan(expected=EXPECTED).accuracy)
    assert {(row.view, row.period) for row in found[0]} == {(r.view, r.period) for r in found[1]}
    assert len(found[0]) == len(found[1]) == 28


def test_what_is_proposed_reaches_the_targets_and_nothing_smaller_does(tmp_path: Path) -> None:
    proposal = shop(tmp_path / "asked").plan(expected=EXPECTED, targets=TARGETS).proposal
    assert proposal is not None
    assert sum(proposal.shares.values()) == pytest.approx(1, abs=1e-12)
    shares = (str(proposal.shares["conversions"]), str(proposal.shares["revenue"]))
    targets = [Target.from_text(text) for text in TARGETS]
    enough = shop(tmp_path / "enough", str(proposal.rho), shares).plan(expected=EXPECTED)
    assert all(off(enough, target) <= target.within for target in targets)
    less = shop(tmp_path / "less", f"{0.995 * proposal.rho:.6f}", shares).plan(expected=EXPECTED)
    missed = {target.measure for target in targets if off(less, target) > target.within}
    assert missed, "a smaller budget reaches them too: the proposal was too large"
    # The harder of two targets of one measure is the one that counts.
    assert off(enough, targets[0]) < 0.5 * targets[0].within


def test_a_measure_without_a_target_stays_as_accurate(tmp_path: Path) -> None:
    asked = shop(tmp_path / "asked")
    proposal = asked.plan(expected=EXPECTED, targets=TARGETS[2:]).proposal
    assert proposal is not None
    assert proposal.rho * proposal.shares["conversions"] == pytest.approx(0.6, rel=0.05)


def test_shares_are_proposed_under_which_measures_are_off_least(tmp_path: Path) -> None:
    proposal = shop(tmp_path / "asked").plan(expected=EXPECTED).proposal
    assert proposal is not None
    assert proposal.rho == 1.0
    share = round(1000 * proposal.shares["conversions"])
    sums = []
    for k, thousandths in enumerate((share - 40, share, share + 40)):
        shares = f"{thousandths / 1000}", f"{(1000 - thousandths) / 1000}"
        planned = shop(tmp_path / str(k), "1.0", shares).plan(expected=EXPECTED)
        sums.append(sum(off(planned, Target(name, "publisher", 1.0)) for name in EXPECTED))
    assert sums[1] == min(sums)
    assert shop(tmp_path / "part").plan(expected={"revenue": 10.0}).proposal is None


def test_the_frontier_is_what_other_weights_would_plan(tmp_path: Path) -> None:
    rows = {
        row.weights: row.errors
        for row in shop(tmp_path / "own").plan().frontier
        if row.measure == "conversions"
    }
    assert list(rows) == [(0, 8, 8), (1, 8, 8), (2, 8, 8), (4, 8, 8), (8, 8, 8)]
    for weights, errors in rows.items():
        file = write_shop(tmp_path / str(weights[0]), people=1, privacy=FIXED).file
        edit(file, "share = 0.6", f"share = 0.6\nweights = {list(weights)}")
        planned = Campaign.load(file).plan(expected=EXPECTED)
        found = {
            row.view: row.error
            for row in planned.accuracy
            if (row.measure, row.period) == ("conversions", "campaign")
        }
        assert found == pytest.approx(errors)
    assert rows[8, 8, 8]["total"] < rows[0, 8, 8]["total"]
    assert rows[8, 8, 8]["publisher"] > rows[1, 8, 8]["publisher"]


@pytest.mark.parametrize(
    ("expected", "targets", "told"),
    [
        ({"revnue": 5.0}, (), 'Did you mean "revenue"'),
        ({"revenue": 0.0}, (), "a number above 0"),
        (EXPECTED, ("revnue/total=5%",), 'Did you mean "revenue"'),
        (EXPECTED, ("revenue/publishers=5%",), 'Did you mean "publisher"'),
        (EXPECTED, ("revenue/publisher",), "such as conversions/publisher=10%"),
        (EXPECTED, ("revenue/publisher=0%",), "such as conversions/publisher=10%"),
        ({}, ("revenue/publisher=5%",), "--expect revenue="),
    ],
)
def test_bad_input_is_told(
    tmp_path: Path, expected: dict[str, float], targets: tuple[str, ...], told: str
) -> None:
    with pytest.raises(SpecError, match=re.escape(told)):
        shop(tmp_path).plan(expected=expected, targets=targets)


def test_what_is_expected_is_no_part_of_the_promise(tmp_path: Path) -> None:
    """A campaign that runs may change what it expects, and goes on."""
    file = write_shop(tmp_path, people=20).file
    Campaign.load(file).release(slot=1)
    file.write_text(file.read_text() + "\n[expected]\nconversions = 40\n")
    campaign = Campaign.load(file)
    campaign.release(slot=2)
    assert campaign.status().released == 2
    assert campaign.plan().expected == {"conversions": 40.0}
    file.write_text(file.read_text().replace("conversions = 40", "convrsions = 40"))
    with pytest.raises(SpecError, match='Did you mean "conversions"'):
        Campaign.load(file)


def test_the_command(tmp_path: Path) -> None:
    write_shop(tmp_path, people=1)
    asked = ["plan", "shop.toml", "--expect", "conversions=5,000", "--expect", "revenue=90000"]
    done = adsbpc(*asked, "--target", TARGETS[0], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"conversions by.*1,667.*± \d+ .*%", done.stdout)
    assert "the total against its parts" in done.stdout
    assert "The targets need rho = " in done.stdout
    found = json.loads(adsbpc(*asked, "--json", cwd=tmp_path).stdout)
    assert found["expected"] == EXPECTED
    assert found["proposal"]["rho"] == 1.0
    assert found["accuracy"][0].keys() == {
        "measure", "view", "period", "part", "amount", "error", "within",
    }  # fmt: skip
    assert "say how much you expect of conversions, revenue" in " ".join(
        adsbpc("plan", "shop.toml", cwd=tmp_path).stdout.split()
    )
    refused = adsbpc("plan", "shop.toml", "--expect", "conversions", cwd=tmp_path)
    assert refused.returncode == 2
    assert "conversions=70000" in refused.stderr


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("share = 0.6", "share = 0.7", "add up to 1.1: expected 1"),
        ("share = 0.6\n", "", "'conversions' has no share"),
    ],
)
def test_shares_that_do_not_add_up_are_told(tmp_path: Path, old: str, new: str, told: str) -> None:
    file = write_shop(tmp_path, people=1).file
    edit(file, old, new)
    with pytest.raises(SpecError, match=re.escape(told)):
        Campaign.load(file)
