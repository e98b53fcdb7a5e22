"""The audit of campaigns as they should be, of those that have not started, and on the command
line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from adsbpc import Campaign
from adsbpc.audit import recount
from adsbpc.lab.journeys import make_campaign
from tests.audit.campaigns import KINDS, Released, broken
from tests.audit.forgery import CUT, Forgery
from tests.campaign.files import FIXED, PERSONAL, edit, write_campaign
from tests.cli.program import adsbpc
from tests.effort import first

BOOKS = {
    "noise scale", "multipliers", "choices", "book files", "cells", "kept totals", "names",
    "people in the books", "costs of people", "plain recount", "accounts", "noise", "histograms",
}  # fmt: skip
ALWAYS = {
    "chain of the ledger", "budgets", "plan", "charges", "releases", "answers", "published files",
}  # fmt: skip


def details(file: Path, chosen: bool = False) -> dict[str, str]:
    found = Campaign.load(file).audit()
    assert broken(found, chosen) == {}
    assert found.held or chosen
    return {claim.name: claim.detail for claim in found.claims}


@pytest.mark.parametrize("slots", first(1, [5, 1]))
@pytest.mark.parametrize("kind", first(6, [*KINDS]))
def test_every_claim_holds(kind: str, slots: int, released: Released, tmp_path: Path) -> None:
    file = released.copy(kind, tmp_path, slots)
    found = details(file, chosen="renewed" in kind)
    fit = {"attribution fit"} if "fit" in kind else set()
    if "personal" in kind:
        people = {"people counted once"} if "people" in kind else set()
        assert found.keys() == ALWAYS | BOOKS | fit | people
    else:
        assert found.keys() == ALWAYS | {"noise scale", "limits of this audit"} | fit
        assert "NOT CHECKED, because AdsBPC keeps no books" in found["limits of this audit"]
    factor = 2 if "substitution" in kind or kind == "personal, fit" else 1
    assert found["noise scale"].startswith(f"{factor} x ")


@pytest.mark.parametrize("kind", ["personal, cut", "personal, cut, substitution"])
def test_people_come_near_the_limit(kind: str, released: Released, tmp_path: Path) -> None:
    """What the audit would find there is worth something: people are cut, and spend nearly all."""
    file = released.copy(kind, tmp_path)
    assert all(Forgery(tmp_path).rows(slot, CUT) for slot in (1, 3, 4, 5))
    told = re.search(r"12 of them .* spent ([0-9.]+)%", details(file)["costs of people"])
    assert told is not None
    assert 99 < float(told[1]) <= 100


def test_books_in_parts(
    released: Released, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As large ones are gone through: the same figures, whatever the parts."""
    file = released.copy("personal, cut", tmp_path)
    whole = details(file)
    monkeypatch.setattr(recount, "ROWS_OF_A_PART", 7)
    steps: list[tuple[int, int]] = []
    parts = Campaign.load(file).audit(lambda done, total: steps.append((done, total)))
    assert steps[-1] == (2 * 5 + 14, 2 * 5 + 14)
    for claim in parts.claims:
        if claim.name != "plain recount":
            assert (claim.held, claim.detail) == (True, whole[claim.name])


def test_long_campaigns_are_recounted_in_part(
    released: Released, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain Python is slow: where people have many rows it counts fewer, and says how many."""
    file = released.copy("personal, cut", tmp_path)
    assert details(file)["plain recount"].startswith("12 people")
    monkeypatch.setattr(recount, "_PLAIN_STEPS", 1)
    told = re.match(r"(\d+) people", details(file)["plain recount"])
    assert told is not None
    assert 1 <= int(told[1]) <= 2


@pytest.mark.slow
def test_the_demo(tmp_path: Path) -> None:
    made = make_campaign(tmp_path, 3_000, 10, 1, "uniform")
    Campaign.load(made.spec).release()
    found = details(made.spec)
    for measure in ("conversions", "revenue"):
        assert "people" in found[f"{measure}: costs of people"]


def test_several_campaigns_of_a_scope(tmp_path: Path) -> None:
    file = write_campaign(tmp_path, 3, privacy=FIXED)
    edit(file, "rho = 1.0", "rho = 1.0\nscope_rho = 2.0")
    other = file.with_name("summer.toml")
    other.write_text(file.read_text().replace('"spring"', '"summer"'))
    edit(other, FIXED, "")
    for each in (file, other, file, other):
        slots = Campaign.load(each).status().released
        Campaign.load(each).release(slots + 1)
    for each in (file, other):
        assert "of 2000000000000 pico-rho" in details(each)["budgets"]


@pytest.mark.parametrize("privacy", ["", PERSONAL], ids=["adsbpc", "personal-budget"])
def test_a_campaign_that_has_not_started(privacy: str, tmp_path: Path) -> None:
    file = write_campaign(tmp_path, privacy=privacy)
    done = adsbpc("audit", file.name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "The campaign has not started: nothing of it was charged or released" in done.stdout
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_lost_ledger(released: Released, tmp_path: Path) -> None:
    file = released.copy("adsbpc", tmp_path)
    for part in tmp_path.glob("ledger.sqlite*"):
        part.unlink()
    found = broken(Campaign.load(file).audit())
    assert found.keys() == {"published files"}
    assert "slots [1, 2, 3, 4, 5] were published" in found["published files"]


def test_a_ledger_that_is_none(released: Released, tmp_path: Path) -> None:
    file = released.copy("adsbpc", tmp_path)
    for part in tmp_path.glob("ledger.sqlite*"):
        part.write_bytes(b"nobody can read this" * 100)
    assert "chain of the ledger" in broken(Campaign.load(file).audit())


def test_postgresql(postgresql_database: str, tmp_path: Path) -> None:
    file = write_campaign(tmp_path, 3, location=postgresql_database, privacy=FIXED)
    Campaign.load(file).release()
    details(file)


# ---- the commands ------------------------------------------------------------------------------


def run(*arguments: object, cwd: Path, code: int = 0) -> str:
    done = adsbpc(*arguments, cwd=cwd)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def plant(directory: Path) -> None:
    """Somebody's account says less than was spent."""
    forged = Forgery(directory)
    forged.accounts[0]["spent_low"] -= 1
    forged.finish()


def test_a_line_for_each_claim(released: Released, tmp_path: Path) -> None:
    file = released.copy("personal, cut", tmp_path)
    *lines, told, note = run("audit", file.name, cwd=tmp_path).splitlines()
    assert {re.match(r"holds  (.*?)  ", line)[1] for line in lines} == ALWAYS | BOOKS  # type: ignore[index]
    assert told == f"All {len(lines)} claims hold."
    assert "not for publication" in note
    plant(tmp_path)
    *lines, told, note = run("audit", file.name, cwd=tmp_path, code=1).splitlines()
    (failing,) = [line for line in lines if line.startswith("FAILS")]
    assert re.match(r"FAILS  accounts .* 1 accounts differ", failing)
    assert told == f"Claims that DO NOT HOLD: 1 of {len(lines)}."


def test_json(released: Released, tmp_path: Path) -> None:
    file = released.copy("personal, cut", tmp_path)
    found: dict[str, Any] = json.loads(run("audit", file.name, "--json", cwd=tmp_path))
    assert found.keys() == {"claims", "held"}
    assert found["held"] is True
    for claim in found["claims"]:
        assert claim.keys() == {"name", "held", "checked", "detail"}
        assert claim["held"] is True
    plant(tmp_path)
    found = json.loads(run("audit", file.name, "--json", cwd=tmp_path, code=1))
    assert found["held"] is False
    assert [claim["name"] for claim in found["claims"] if not claim["held"]] == ["accounts"]


def test_status_verify_runs_it(released: Released, tmp_path: Path) -> None:
    file = released.copy("personal, cut", tmp_path)
    told = run("status", file.name, "--verify", cwd=tmp_path)
    assert "every claim of the audit holds" in told
    plant(tmp_path)
    done = adsbpc("status", file.name, "--verify", cwd=tmp_path)
    assert done.returncode == 1
    assert "does not verify: the audit's claim 'accounts' fails: 1 accounts differ" in done.stderr
    found = adsbpc("status", file.name, "--verify", "--json", cwd=tmp_path)
    assert json.loads(found.stdout)["verified"] is False
