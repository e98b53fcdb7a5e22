"""More columns than are told apart by size: another form of the same mechanism, from files to the
report and the audit."""

from __future__ import annotations

from pathlib import Path

import pytest

from adsbpc import Campaign
from adsbpc.mechanisms.by_rows.sizes import MOST_SIZED, counted_layout
from tests.campaign.files import ADSBPC, PERSONAL, edit
from tests.campaign.measured import Shop, write_shop
from tests.campaign.test_measures import assert_adds_up

# Three publishers with each of them, and "other".
VALUES = 1_500


def write_wide_shop(directory: Path, privacy: str) -> Shop:
    """Nearly all cells stay empty, which nobody may know."""
    shop = write_shop(directory, people=300, privacy=privacy)
    names = ["DE", "FR", *(f"C-{number}" for number in range(VALUES - 2))]
    edit(shop.file, 'values = ["DE", "FR"]', f"values = {names}")
    return shop


@pytest.mark.slow
@pytest.mark.parametrize("privacy", [PERSONAL, ADSBPC], ids=["personal-budget", "adsbpc"])
def test_thousands_of_cells_from_files_to_the_audit(privacy: str, tmp_path: Path) -> None:
    shop = write_wide_shop(tmp_path, privacy)
    campaign = Campaign.load(shop.file)
    layout = campaign.spec.measures[0].layout
    assert layout.columns > MOST_SIZED
    # Sums are columns and not cells here.
    assert not counted_layout(layout).apart
    released = campaign.release()
    for one in released:
        assert_adds_up(one.release.of("conversions").answers)
    report = campaign.report()
    cells = {cell.keys: cell for cell in report.newest_totals(report.measure, deepest=2)}
    assert len(cells) == 1 + 3 + 3 * (VALUES + 1)
    for keys, cell in cells.items():
        truth = sum(
            count
            for (_, *where), count in shop.conversions.items()
            if tuple(where[: len(keys)]) == keys
        )
        room = 6 * cell.standard_error + 0.2 * truth
        assert cell.low - room <= truth <= cell.high + room, cell
    # Each publisher's sum is far closer than a sum of so many cells would be.
    errors = [cells[keys].standard_error for keys in ((), ("P-1",), ("P-1", "DE"))]
    assert max(errors) < 4 * errors[-1]
    assert report.to_csv().count("C-1,") == 3 * len(released)
    findings = campaign.audit()
    assert findings.held, findings.broken
