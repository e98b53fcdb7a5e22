"""Ledgers, books and releases of every earlier version are read, verified and continued."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from adsbpc.campaign import Campaign
from adsbpc.errors import LedgerError
from adsbpc.model import Release
from tests.compatibility.making import RELEASED_SLOTS, seeded_noise

EVERY = sorted((Path(__file__).parent / "stores").glob("*/*"))
# Of hours, more than a test can release.
LONG = [store for store in EVERY if store.name == "long"]
STORES = [store for store in EVERY if store not in LONG]
# What a release says of its ledger and of itself, not of the campaign.
ABOUT_ITSELF = {"ledger", "format"}


def named(store: Path) -> str:
    return f"{store.parent.name}-{store.name}"


@pytest.fixture(params=STORES, ids=named)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return shutil.copytree(request.param, tmp_path / "store")


@pytest.fixture(params=LONG, ids=named)
def long_store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return shutil.copytree(request.param, tmp_path / "store")


def content(text: str) -> dict[str, Any]:
    found: dict[str, Any] = Release.from_text(text).model_dump(exclude=ABOUT_ITSELF)
    return found


def test_there_are_stores_of_both_mechanisms() -> None:
    """Or the tests below test nothing."""
    assert len(STORES) >= 13
    assert LONG
    texts = [(store / "next.json").read_text() for store in EVERY]
    names = {Release.from_text(text).measures[0].mechanism for text in texts}
    assert names == {"adsbpc", "personal-budget"}


def test_the_next_release_is_the_one_that_the_version_of_then_would_have_made(store: Path) -> None:
    assert_goes_on(store)


def test_so_is_that_of_a_long_campaign_which_goes_on_and_verifies(long_store: Path) -> None:
    assert_goes_on(long_store)
    campaign = Campaign.load(long_store / "spring.toml")
    campaign.release(RELEASED_SLOTS + 2)
    assert campaign.verify().problem is None
    assert campaign.audit().held


def assert_goes_on(store: Path) -> None:
    with seeded_noise():
        (released,) = Campaign.load(store / "spring.toml").release(RELEASED_SLOTS + 1)
    assert_alike(content(released.text), content((store / "next.json").read_text()))


def assert_alike(found: Any, expected: Any) -> None:
    """The same, but for the last digits of sums over publishers, which then were not stored."""
    assert type(found) is type(expected)
    if isinstance(found, dict):
        assert found.keys() == expected.keys()
        for key, value in found.items():
            assert_alike(value, expected[key])
    elif isinstance(found, list | tuple):
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other)
    elif isinstance(found, float):
        assert found == pytest.approx(expected, rel=1e-12)
    else:
        assert found == expected


def test_an_old_store_verifies_and_runs_to_its_end(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With books of its own gathered on the way."""
    monkeypatch.setattr("adsbpc.campaign.books.GATHERED_EVERY", 4)
    campaign = Campaign.load(store / "spring.toml")
    before = [released.text for released in campaign.release(through="2026-03-02")]
    assert [each["slot"] for each in map(json.loads, before)] == [1, 2]
    folder = store / "adsbpc-releases" / "acme" / "spring"
    assert before == [(folder / f"{slot:04d}.json").read_text() for slot in (1, 2)]
    assert campaign.verify().problem is None
    campaign.release()
    assert campaign.status().released == 5
    assert campaign.verify().problem is None
    assert campaign.audit().held
    assert len(campaign.report().releases) == 5


@pytest.mark.parametrize(
    "early", [store for store in STORES if store.name == "personal-budget"], ids=named
)
def test_an_old_store_spends_on_histograms_what_it_began_with(early: Path, tmp_path: Path) -> None:
    """A twentieth, whatever a file that leaves it open means today."""
    file = shutil.copytree(early, tmp_path / "store") / "spring.toml"
    began = file.read_text()
    file.write_text(f"{began}\n[privacy.personal_budget]\nhistogram_share = 0.03\n")
    with pytest.raises(LedgerError, match=r"'histogram_share': 0.05.*'histogram_share': 0.03"):
        Campaign.load(file).release()
    file.write_text(f"{began}\n[privacy.personal_budget]\nhistogram_share = 0.05\n")
    assert Campaign.load(file).release(RELEASED_SLOTS + 1)


def test_an_old_store_has_a_statement(store: Path) -> None:
    statement = Campaign.load(store / "spring.toml").statement()
    (own,) = statement.campaigns
    assert [each.slot for each in own.releases] == [1, 2]
    charged = sum(charge.pico_rho for each in own.releases for charge in each.charges)
    assert own.budget.spent_pico_rho == charged
    assert own.audit is not None
    assert own.audit.held
    assert own.measures[0].limit is not None
