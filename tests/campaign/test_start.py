"""Before a campaign is charged for the first time: what the operator sees, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from adsbpc.campaign import Campaign, Overview, attribute, write_credits
from adsbpc.engines import open_engine
from adsbpc.errors import BudgetError, LedgerError, ReleaseError
from adsbpc.lab.datasets.files import read_own_data
from tests.campaign.files import PERSONAL, edit, write_campaign


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_campaign(tmp_path, conversions_per_slot=30)


def change(file: Path, source: str, column: str, values: Any) -> None:
    path = file.parent / f"{source}.parquet"
    table = pq.read_table(path)
    position = table.schema.get_field_index(column)
    pq.write_table(table.set_column(position, column, values(table.column(column))), path)


def refusal(file: Path) -> str:
    with pytest.raises(ReleaseError) as caught:
        Campaign.load(file).release(1)
    assert "nothing was charged" in str(caught.value)
    assert not (file.parent / "ledger.sqlite").exists()
    assert Campaign.load(file).status().released == 0
    return str(caught.value)


def test_what_the_operator_sees(file: Path) -> None:
    seen: list[Overview] = []
    list(Campaign.load(file).releasing(1, shown=seen.append))
    (start,) = seen
    assert (start.slot, start.conversions, start.matched) == (1, 30, 30)
    assert start.credited == {"P-1": 12.0, "P-2": 12.0, "other": 6.0}
    assert {name: counts.usable for name, counts in start.sources.items()} == {
        "impressions": 30,
        "conversions": 30,
    }
    # Of later slots nothing is shown, and nothing stops them.
    list(Campaign.load(file).releasing(2, shown=seen.append))
    assert seen == [start]
    assert Campaign.load(file).rehearse(1) == start


def test_a_broken_join(file: Path) -> None:
    """The same people, whose ids have zeros before them in one file."""
    change(file, "conversions", "user_id", lambda ids: pc.utf8_lpad(ids, 5, "0"))
    told = refusal(file)
    assert "0 of 30 conversions have a touch" in told
    assert "min_match_rate" in told
    edit(file, "[ledger]", "[checks]\nmin_match_rate = 0\n[ledger]")
    assert len(Campaign.load(file).release(1)) == 1


def test_a_broken_join_of_slots_that_are_small(tmp_path: Path) -> None:
    """Hours of which none has enough conversions to judge."""
    file = write_campaign(tmp_path, slots=24, slot="1h", conversions_per_slot=2)
    change(file, "conversions", "user_id", lambda ids: pc.utf8_lpad(ids, 5, "0"))
    assert "0 of 46 conversions of slots 1 to 24 have a touch" in refusal(file)


@pytest.mark.parametrize("form", ["timestamp", "text"])
def test_rows_of_another_year(form: str, file: Path) -> None:
    """Typed timestamps are left out by the scan, and texts are read; neither is set aside."""
    edit(file, "start = 2026-03-01", "start = 2025-03-01")
    if form == "text":
        for source in ("impressions", "conversions"):
            change(file, source, "timestamp", lambda at: pc.strftime(at, "%Y-%m-%dT%H:%M:%SZ"))
    told = refusal(file)
    assert "0 of 120 impressions and 120 conversions belong to slots 1 to 5, " in told
    assert "from 2025-03-01T00:00:00+00:00 to 2025-03-06T00:00:00+00:00" in told
    assert "set min_rows = 0" in told
    edit(file, "[ledger]", "[checks]\nmin_rows = 0\n[ledger]")
    assert len(Campaign.load(file).release()) == 5


def test_an_empty_start_is_possible(tmp_path: Path) -> None:
    """Without a conversion on the first day, or any row at all."""
    file = write_campaign(tmp_path / "slow")
    edit(file, "start = 2026-03-01", "start = 2026-02-28")
    assert Campaign.load(file).release(1)[0].conversions == 0
    file = write_campaign(tmp_path / "empty")
    for source in ("impressions", "conversions"):
        path = file.parent / f"{source}.parquet"
        pq.write_table(pq.read_table(path).slice(0, 0), path)
    assert len(Campaign.load(file).release()) == 5


def test_publishers_that_are_misspelt(file: Path) -> None:
    edit(file, 'publishers = ["P-1", "P-2"]', 'publishers = ["p-1", "p-2"]')
    told = refusal(file)
    assert "100.0% of the credit for 30 conversions goes to publishers that [campaign]" in told
    edit(file, "[ledger]", "[checks]\nmax_other_rate = 1\n[ledger]")
    assert len(Campaign.load(file).release(1)) == 1


def test_one_listed_publisher_is_enough(file: Path) -> None:
    edit(file, 'publishers = ["P-1", "P-2"]', 'publishers = ["P-1", "p-2"]')
    assert Campaign.load(file).rehearse().problems == ()


@pytest.mark.parametrize(
    ("form", "shape"),
    [
        ("%m/%d/%Y", "99/99/9999"),
        ("%d %b %Y", "99 Aaa 9999"),
        ("%Y%m%d", "99999999"),
    ],
)
@pytest.mark.parametrize("source", ["impressions", "conversions"])
def test_timestamps_that_nobody_can_read(form: str, shape: str, source: str, file: Path) -> None:
    change(file, source, "timestamp", lambda moments: pc.strftime(moments, form))
    told = refusal(file)
    assert f"{source}: " in told
    assert f"timestamp does not parse, which looks like {shape};" in told
    assert "timestamps = 'auto'" in told
    assert "2026" not in told.replace("such as 2026-03-01T12:00:00Z", "")


def test_seconds_of_which_nobody_said_that_they_are(file: Path) -> None:
    for source in ("impressions", "conversions"):
        change(
            file, source, "timestamp",
            lambda moments: pc.divide(moments.cast("int64"), 1_000_000).cast("string"),
        )  # fmt: skip
    assert "looks like 9999999999;" in refusal(file)
    edit(file, "[events]", '[events]\ntimestamps = "epoch_seconds"')
    assert Campaign.load(file).rehearse(1).matched == 30


def test_a_declared_format_repairs_it(file: Path) -> None:
    for source in ("impressions", "conversions"):
        change(file, source, "timestamp", lambda moments: pc.strftime(moments, "%m/%d/%Y %H:%M:%S"))
    assert 'for example timestamp_format = "%d.%m.%Y %H:%M"' in refusal(file)
    # Arrow writes seconds with a fraction.
    edit(file, "[events]", '[events]\ntimestamp_format = "%m/%d/%Y %H:%M:%S.%f"')
    assert Campaign.load(file).rehearse(1).matched == 30
    assert len(Campaign.load(file).release()) == 5


def test_an_advertiser_that_is_misspelt(file: Path) -> None:
    edit(file, 'advertiser = "Ad-1"', 'advertiser = "Ad-l"')
    assert "rows are of other advertisers than [campaign] advertiser = 'Ad-l'" in refusal(file)


def test_most_rows_in_quarantine(file: Path) -> None:
    change(file, "impressions", "kind", lambda kinds: pa.array(["hover"] * len(kinds)))
    assert "cannot be used, and [checks] max_quarantine_rate = 0.5 allows 50%" in refusal(file)


def test_a_campaign_that_has_started_is_not_stopped(file: Path) -> None:
    """Then stopping would tell others what was read."""
    Campaign.load(file).release(1)
    change(file, "conversions", "user_id", lambda ids: pc.utf8_lpad(ids, 5, "0"))
    assert len(Campaign.load(file).release()) == 5


def test_a_rehearsal_of_a_finished_campaign_says_so(file: Path) -> None:
    Campaign.load(file).release()
    with pytest.raises(ReleaseError, match="all 5 slots are released"):
        Campaign.load(file).rehearse()
    assert Campaign.load(file).rehearse(5).slot == 5


def test_books_that_are_left_when_everything_else_is_gone(tmp_path: Path) -> None:
    """People have spent what the books say, whoever threw ledger and releases away."""
    file = write_campaign(tmp_path, privacy=PERSONAL)
    for slots in (1, 2):
        Campaign.load(file).release(slots)
        for name in ("ledger.sqlite", "ledger.sqlite.seal"):
            (tmp_path / name).rename(tmp_path / f"{name}.lost")
        (tmp_path / "adsbpc-releases").rename(tmp_path / "lost")
        with pytest.raises(LedgerError, match="was released before"):
            Campaign.load(file).release(1)
        for name in ("ledger.sqlite", "ledger.sqlite.seal"):
            (tmp_path / f"{name}.lost").rename(tmp_path / name)
        (tmp_path / "lost").rename(tmp_path / "adsbpc-releases")
    assert len(Campaign.load(file).release()) == 5


def test_books_of_a_run_that_was_killed_before_it_released(tmp_path: Path) -> None:
    file = write_campaign(tmp_path, privacy=PERSONAL)
    left = tmp_path / "adsbpc-books" / "acme" / "spring" / "slot=0001" / "attempt=ab"
    left.mkdir(parents=True)
    assert len(Campaign.load(file).release(1)) == 1


def test_a_scope_without_room(tmp_path: Path) -> None:
    """What is left is what nobody has reserved, and a plan that cannot be let in says so."""
    file = write_campaign(tmp_path, privacy="scope_rho = 1.5")
    assert float(Campaign.load(file).status().scope_free or 0) == 1.5
    Campaign.load(file).release(1)
    status = Campaign.load(file).status()
    assert float(status.scope_free or 0) == 0.5
    assert float(status.scope_budget.left) > 0.5
    Campaign.load(file).plan()
    edit(file, 'name = "spring"', 'name = "summer"')
    with pytest.raises(BudgetError, match="no room for campaign 'summer'"):
        Campaign.load(file).plan()


def test_credits_of_one_campaign_are_data_for_the_lab(tmp_path: Path, file: Path) -> None:
    spec, engine = Campaign.load(file).spec, open_engine("duckdb", {})
    try:
        write_credits(attribute(spec, engine), tmp_path / "credits.parquet")
    finally:
        engine.close()
    assert (tmp_path / "credits.parquet").stat().st_mode & 0o777 == 0o600
    assert read_own_data(tmp_path / "credits.parquet").users == 30
