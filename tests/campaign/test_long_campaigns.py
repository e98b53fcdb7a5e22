"""Campaigns with more slots than dense strategies have: planned, released, replayed, killed,
audited and reported as any other."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from adsbpc import Campaign
from adsbpc.campaign import release as release_steps
from adsbpc.errors import LedgerError
from adsbpc.mechanisms import plan_measures
from adsbpc.mechanisms.by_slots.mechanism import BudgetBySlots
from adsbpc.mechanisms.by_slots.mixes import DecayingMix
from adsbpc.model import load_spec
from tests.audit.campaigns import found_in
from tests.audit.forgery import Forgery
from tests.campaign.book_files import committed, steps
from tests.campaign.files import PERSONAL, edit, published, write_campaign

SLOTS = 1_100
# Quick to plan; the default searches for a better one.
LONG = f'{PERSONAL}\n[privacy.personal_budget]\nstrategy = "toeplitz"\nbeta = 0.0'
RELEASED = 5


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of hours, of which some are released, each by a process of its own."""
    folder = tmp_path_factory.mktemp("long") / "begun"
    file = write_campaign(folder, slots=SLOTS, slot="1h", privacy=LONG, conversions_per_slot=6)
    edit(file, "beta = 0.0", "beta = 0.4")
    for slot in range(1, RELEASED + 1):
        Campaign.load(file).release(slot)
    return folder


@pytest.fixture
def file(begun: Path, tmp_path: Path) -> Path:
    shutil.copytree(begun, tmp_path / "copy")
    return tmp_path / "copy" / "spring.toml"


@pytest.mark.slow
def test_a_plan_says_which_strategy_it_has(file: Path, tmp_path: Path) -> None:
    planned = Campaign.load(file).plan()
    assert "decaying powers" in planned.shape
    assert "1,100" in planned.to_object()["shape"]
    short = write_campaign(tmp_path / "short", privacy=PERSONAL)
    assert "dense" in Campaign.load(short).plan().shape


@pytest.mark.slow
def test_a_running_campaign_keeps_its_strategy(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "adsbpc.mechanisms.by_slots.planning.near_toeplitz", lambda *_: pytest.fail("planned anew")
    )
    assert Campaign.load(file).release(RELEASED + 1)[0].replayed is False


def test_releases_are_replayed_byte_for_byte(file: Path) -> None:
    before = published(file.parent)
    for slot in range(1, RELEASED + 1):
        assert Campaign.load(file).release(slot)[0].replayed
    assert published(file.parent) == before


def test_a_slot_that_dies_before_its_commit_leaves_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Books of the attempt do not count, and the next run draws the slot once."""
    spent = Campaign.load(file).status().campaign_budget.spent

    def dies(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(release_steps, "release_of", dies)
        with pytest.raises(KeyboardInterrupt):
            Campaign.load(file).release(RELEASED + 1)
    assert Campaign.load(file).status().campaign_budget.spent == spent
    assert len(steps(file.parent)) == RELEASED
    released = Campaign.load(file).release(RELEASED + 1)
    assert not released[0].replayed
    assert found_in(file.parent) == {}


def test_the_audit_adds_everybody_up_again(file: Path) -> None:
    findings = Campaign.load(file).audit()
    assert all(claim.held for claim in findings.claims)
    names = {claim.name for claim in findings.claims}
    assert {"costs of people", "plain recount", "accounts", "answers", "noise"} <= names


def test_an_audit_says_what_it_does_not_check(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adsbpc.audit.book_claims.MOST_PAIRED", RELEASED - 1)
    findings = Campaign.load(file).audit()
    (limits,) = [claim for claim in findings.claims if claim.name == "limits of this audit"]
    assert "NOT CHECKED" in limits.detail
    assert "cost" in limits.detail


def account_that_says_less(forged: Forgery) -> None:
    for account in forged.accounts:
        account["spent_high"] -= max(1, account["spent_high"] // 1000)


def changed_multiplier(forged: Forgery) -> None:
    forged.step(4)["multiplier"] += 1


def moved_cell(forged: Forgery) -> None:
    forged.cell(1)["moved"] += forged.step(1)["multiplier"]


def negative_weight(forged: Forgery) -> None:
    forged.opening["decays"][1][0] *= -1


@pytest.mark.parametrize(
    ("plant", "broken"),
    [
        (account_that_says_less, {"accounts"}),
        (changed_multiplier, {"multipliers", "cells", "kept totals", "noise", "answers"}),
        (moved_cell, {"kept totals", "costs of people", "accounts", "cells"}),
        (negative_weight, {"plan", "answers", "noise", "accounts", "costs of people"}),
    ],
)
def test_planted_faults_are_found(file: Path, plant: Any, broken: set[str]) -> None:
    forged = Forgery(file.parent)
    plant(forged)
    forged.finish()
    found = set(found_in(file.parent))
    assert found
    assert found <= broken | {"book files", "plain recount"}


def test_books_of_the_slot_before_are_needed_and_no_others(file: Path) -> None:
    """Rows of earlier slots are for who audits; running sums are what the next slot stands on."""
    folders = committed(file.parent)
    (folders[0] / "cells.parquet").unlink()
    Campaign.load(file).release(RELEASED + 1)
    newest = committed(file.parent)[-1]
    (newest / "sums.parquet").write_bytes(b"")
    with pytest.raises(LedgerError, match=r"sums\.parquet: is not what was written"):
        Campaign.load(file).release(RELEASED + 2)


def test_running_sums_out_of_use_are_removed(file: Path) -> None:
    Campaign.load(file).release(RELEASED + 1)
    has_sums = [(folder / "sums.parquet").exists() for folder in committed(file.parent)]
    assert has_sums == [False] * (RELEASED - 3) + [True] * 4


def files_of(directory: Path, name: str) -> list[bool]:
    return [(folder / name).exists() for folder in committed(directory)]


def test_books_are_whole_now_and_then(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others hold what changed since, and whole ones that a newer one replaced are removed."""
    monkeypatch.setattr("adsbpc.campaign.books.WHOLE_EVERY", 4)
    for slot in range(RELEASED + 1, 17):
        Campaign.load(file).release(slot)
    whole = [step["books"]["whole"] for step in steps(file.parent)]
    assert [slot for slot, each in enumerate(whole, start=1) if each] == [8, 12, 16]
    has_sums = [(folder / "sums.parquet").exists() for folder in committed(file.parent)]
    assert [slot for slot, has in enumerate(has_sums, start=1) if has] == [12, 13, 14, 15, 16]
    Campaign.load(file).release(17)
    assert found_in(file.parent) == {}
    newest = committed(file.parent)
    (newest[15] / "users.parquet").write_bytes(b"")
    with pytest.raises(LedgerError, match=r"users\.parquet: is not what was written"):
        Campaign.load(file).release(18)


def test_a_report_shows_it(file: Path) -> None:
    report = Campaign.load(file).report()
    assert len(report.columns()["slot"]) > 0


def test_the_ledger_keeps_a_plan_of_a_few_numbers(file: Path) -> None:
    (_, mechanism), *_ = plan_measures(load_spec(file)).runs
    assert isinstance(mechanism, BudgetBySlots)
    assert isinstance(mechanism.mix, DecayingMix)
    stored = mechanism.stored_plan()
    assert stored.strategy == ()
    assert len(json.dumps(stored.decays)) < 200
