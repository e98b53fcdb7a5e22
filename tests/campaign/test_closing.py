"""A campaign that ends early returns what it has not spent, and nothing else ever happens to it."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from adsbpc import Campaign
from adsbpc.cli.main import app
from adsbpc.errors import BudgetError, LedgerError
from adsbpc.ledger import Ledger
from tests.campaign.files import ADSBPC, FIXED, PERSONAL, edit, write_campaign

MECHANISMS = [ADSBPC, PERSONAL, FIXED, '[privacy.adsbpc]\nbounds = "svt"\nquantile_slots = 1']


@pytest.mark.parametrize("privacy", MECHANISMS)
def test_what_was_not_spent_goes_back(privacy: str, tmp_path: Path) -> None:
    file = write_campaign(tmp_path, privacy=privacy)
    campaign = Campaign.load(file)
    texts = [released.text for released in campaign.release(through="2026-03-02")]
    spent = campaign.status().campaign_budget.spent
    assert 0 < spent < 1
    assert campaign.close() == 1 - spent
    status = campaign.status()
    assert status.closed
    assert status.campaign_budget.left == 0
    assert status.scope_free == 1 - spent
    # What was released is there, and nothing more comes.
    assert [released.text for released in campaign.release()] == texts
    assert len(campaign.report().releases) == 2
    with pytest.raises(LedgerError, match="was closed after slot 2"):
        campaign.release(3)
    assert campaign.close() == 1 - spent
    assert campaign.verify().problem is None
    assert campaign.audit().held


def test_a_change_of_publishers(tmp_path: Path) -> None:
    """The way that the message shows: the same file, closed, renamed, and started again."""
    file = write_campaign(tmp_path, privacy=PERSONAL)
    Campaign.load(file).release(through="2026-03-02")
    edit(file, 'publishers = ["P-1", "P-2"]', 'publishers = ["P-1", "P-2", "X"]')
    with pytest.raises(LedgerError, match="adsbpc close ends this campaign") as refused:
        Campaign.load(file).release()
    assert "[campaign] publishers: was ['P-1', 'P-2']" in str(refused.value)
    left = Campaign.load(file).close()
    edit(file, 'name = "spring"', 'name = "spring-2"')
    edit(file, "start = 2026-03-01", "start = 2026-03-03")
    edit(file, "slots = 5", "slots = 3")
    previous = 'previous = "adsbpc-releases/acme/spring"'
    edit(file, PERSONAL, f"{PERSONAL}\n[privacy.personal_budget]\n{previous}")
    # The scope's limit stays: the first campaign promised it.
    with pytest.raises(BudgetError, match="no room"):
        Campaign.load(file).release()
    edit(file, "rho = 1.0", f"rho = {float(left)}\nscope_rho = 1.0")
    campaign = Campaign.load(file)
    released = campaign.release()
    (measured,) = released[0].release.measures
    assert measured.dimensions[0].values == ("P-1", "P-2", "X", "other")
    status = campaign.status()
    assert status.released == 3
    assert status.scope_budget.spent <= 1
    assert campaign.audit().held


def test_only_a_campaign_that_has_started_can_be_closed(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="nothing to close"):
        Campaign.load(write_campaign(tmp_path)).close()
    assert not (tmp_path / "ledger.sqlite").exists()


@pytest.mark.parametrize("_round", range(3))
def test_a_slot_and_a_closing_at_once(_round: int, tmp_path: Path) -> None:
    """Either the slot is charged and less returned, or it is refused: never both in full."""
    file = write_campaign(tmp_path)
    Campaign.load(file).release(1)

    def release() -> str:
        try:
            Campaign.load(file).release(2)
        except LedgerError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(2) as pool:
        released, returned = pool.submit(release), pool.submit(Campaign.load(file).close)
        refused, amount = released.result(), returned.result()
    status = Campaign.load(file).status()
    assert status.released == (1 if "was closed after slot 1" in refused else 2)
    assert status.scope_budget.spent + amount == Fraction(1)
    assert status.scope_free == amount
    assert Campaign.load(file).audit().held


def test_an_auditor_sees_what_came_after_a_closing(tmp_path: Path) -> None:
    """A ledger that somebody has added to by hand, with seals that are right."""
    file = write_campaign(tmp_path)
    campaign = Campaign.load(file)
    campaign.release(1)
    campaign.close()
    ledger = Ledger("ledger.sqlite", tmp_path)
    with ledger._database.writing("acme") as connection:
        from adsbpc.ledger import rows

        rows.append(connection, "acme", "charge", "spring", 2, "measurement", 1)
    broken = [claim.detail for claim in campaign.audit().broken]
    assert any("charge of 'spring' after it was closed" in detail for detail in broken)


def test_a_ledger_put_back_from_before_a_closing(tmp_path: Path) -> None:
    """Closed again, it has room again for the campaign that was started with what came back."""
    file = write_campaign(tmp_path)
    edit(file, "rho = 1.0", "rho = 0.5\nscope_rho = 1.0")
    Campaign.load(file).release(through="2026-03-02")
    backup = shutil.copy(tmp_path / "ledger.sqlite", tmp_path / "backup")
    returned = Campaign.load(file).close()
    other = tmp_path / "other.toml"
    other.write_text(file.read_text().replace('name = "spring"', 'name = "summer"'))
    edit(other, "rho = 0.5", "rho = 0.6")
    texts = [released.text for released in Campaign.load(other).release(through="2026-03-02")]
    for stale in tmp_path.glob("ledger.sqlite*"):
        stale.unlink()
    shutil.copy(backup, tmp_path / "ledger.sqlite")
    for act in (Campaign.load(other).release, Campaign.load(file).release):
        with pytest.raises(LedgerError):
            act()
    with pytest.raises(BudgetError):
        Campaign.load(other).restore()
    assert Campaign.load(file).close() == returned
    assert not Campaign.load(other).restore().lost
    assert [each.text for each in Campaign.load(other).release(through="2026-03-02")] == texts
    for campaign in (Campaign.load(file), Campaign.load(other)):
        assert campaign.verify().problem is None
        assert campaign.audit().held


def test_the_command_asks_first(tmp_path: Path) -> None:
    file = write_campaign(tmp_path)
    Campaign.load(file).release(1)
    runner = CliRunner()
    assert runner.invoke(app, ["close", str(file)], input="n\n").exit_code == 1
    assert not Campaign.load(file).status().closed
    told = runner.invoke(app, ["close", str(file), "--yes", "--json"])
    assert json.loads(told.stdout)["returned"] == pytest.approx(
        float(1 - Campaign.load(file).status().campaign_budget.spent)
    )
    assert "the campaign was closed" in runner.invoke(app, ["status", str(file)]).stdout
    assert "The campaign was closed" in runner.invoke(app, ["release", str(file)]).stdout
    assert runner.invoke(app, ["release", str(file), "--dry-run"]).exit_code == 1


def test_what_comes_back_is_printed_to_the_last_digit(tmp_path: Path) -> None:
    """A campaign with just that budget fits."""
    file = write_campaign(tmp_path, 7, privacy=PERSONAL)
    Campaign.load(file).release(1)
    told = CliRunner().invoke(app, ["close", str(file), "--yes"]).stdout
    amount = told.partition("rho = ")[2].split()[0]
    edit(file, 'name = "spring"', 'name = "summer"')
    edit(file, "rho = 1.0", f"rho = {amount}\nscope_rho = 1.0")
    assert len(Campaign.load(file).release(1)) == 1
    assert Campaign.load(file).status().scope_free == 0
