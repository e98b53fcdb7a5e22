"""What a release reads, from DuckDB's own profile of every statement: each source once, and of it
the rows of its own slot. These figures may fall; whoever makes them grow has to say why."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc.campaign import Campaign
from adsbpc.campaign.together import Asked, releasing_together
from adsbpc.contributions import EngineContributions
from adsbpc.engines import Relation
from adsbpc.engines.duckdb_engine import DuckDBEngine
from adsbpc.model import Layout
from tests.campaign.audience import audience, write_audience
from tests.campaign.files import PERSONAL, edit, write_campaign

# What slots cost is a table that is made and dropped: as text in four statements, it took longer to
# plan than they take, the longer the campaign.
MOST_STATEMENTS = {"adsbpc": 24, "personal-budget": 65}
# A slot that lets the past in again, which released figures decide, looks at all of it.
OF_A_RENEWAL, LOOKS_OF_A_RENEWAL = 30, 6
IN_A_SLOT = 12
# From so many on, what a campaign starts with is judged by its first slot alone.
ENOUGH = 20


@dataclass
class Profile:
    """Statements, those that attribute, scans of files by name, and the rows that they took."""

    statements: int = 0
    attributions: int = 0
    renewals: int = 0
    scans: Counter[str] = field(default_factory=Counter)
    rows: Counter[str] = field(default_factory=Counter)

    def clear(self) -> None:
        self.statements = self.attributions = self.renewals = 0
        self.scans.clear()
        self.rows.clear()

    def add(self, operators: list[dict[str, Any]]) -> None:
        for operator in walk(operators):
            files = operator.get("extra_info", {}).get("Filename(s)", "")
            for name in {Path(file).name for file in files.split(", ") if file}:
                self.scans[name] += 1
                self.rows[name] += operator["rows_scanned"]


def walk(operators: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for operator in operators:
        yield operator
        yield from walk(operator.get("children", []))


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Profile:
    """Filled by every statement of every engine that is opened from now on."""
    found, execute, told = Profile(), DuckDBEngine._execute, tmp_path / "profile.json"

    def profiled(self: DuckDBEngine, step: str, sql: str) -> list[tuple[Any, ...]]:
        self._connection.execute("SET enable_profiling = 'json'")
        self._connection.execute(f"SET profiling_output = '{told}'")
        told.unlink(missing_ok=True)
        rows = execute(self, step, sql)
        self._connection.execute("SET enable_profiling = 'no_output'")
        found.statements += 1
        found.attributions += "busy_users" in sql
        found.renewals += step == "renewing"
        if told.exists():
            found.add(json.loads(told.read_text())["operator"])
        return rows

    monkeypatch.setattr(DuckDBEngine, "_execute", profiled)
    return found


@pytest.mark.parametrize("mechanism", sorted(MOST_STATEMENTS))
def test_a_release_reads_each_source_once(mechanism: str, profile: Profile, tmp_path: Path) -> None:
    privacy = PERSONAL if mechanism == "personal-budget" else ""
    file = write_campaign(tmp_path / "campaign", privacy=privacy, conversions_per_slot=ENOUGH)
    campaign = Campaign.load(file)
    for slot in (1, 2, 3):
        profile.clear()
        campaign.release(slot)
        # Before a campaign starts, its operator is shown what was found: one more look.
        looks, statements = (2, 5) if slot == 1 else (1, 0)
        assert profile.scans["impressions.parquet"] == looks
        assert profile.scans["conversions.parquet"] == 1
        assert profile.scans["cells.parquet"] <= 1 + LOOKS_OF_A_RENEWAL * profile.renewals
        most = MOST_STATEMENTS[mechanism] + statements + OF_A_RENEWAL * profile.renewals
        assert profile.statements <= most


def test_a_small_first_slot_is_judged_with_the_others(profile: Profile, tmp_path: Path) -> None:
    """Read as one slot is, and counted: twice as many looks, and none of them later."""
    campaign = Campaign.load(write_campaign(tmp_path / "campaign", conversions_per_slot=ENOUGH - 1))
    for slot, looks in ((1, 2), (2, 1)):
        profile.clear()
        campaign.release(slot)
        assert profile.scans["impressions.parquet"] == looks**2
        assert profile.scans["conversions.parquet"] == looks


def test_several_measures_read_and_attribute_once(profile: Profile, tmp_path: Path) -> None:
    """Books are each measure's own: those of conversions are looked at for each of three views,
    and where people are counted once, once more for who was counted before."""
    metrics = ("conversions", "converters", "reach", "impressions")
    campaign = Campaign.load(write_audience(tmp_path, audience(30), metrics))
    for slot in range(1, 5):
        profile.clear()
        campaign.release(slot)
        # The first slot is small.
        looks = 2 if slot == 1 else 1
        assert profile.scans["first.parquet"] == looks**2
        assert profile.scans["conversions.parquet"] == looks
        assert profile.scans["cells.parquet"] <= 3 + 2 + 2 + 3 + 9 * profile.renewals
        assert profile.attributions == looks


def test_campaigns_of_the_same_events_share_a_scan(profile: Profile, tmp_path: Path) -> None:
    """One to keep the rows of their advertisers and one to count the others, however many they are;
    and one attribution for those whose journeys are the same, another for the one whose are not."""
    write_campaign(tmp_path, conversions_per_slot=ENOUGH)
    files = [tmp_path / f"{k}.toml" for k in range(4)]
    for k, file in enumerate(files):
        shutil.copy(tmp_path / "spring.toml", file)
        edit(file, 'name = "spring"', f'name = "campaign-{k}"')
        edit(file, 'scope = "acme"', f'scope = "scope-{k}"')
    edit(files[1], 'publishers = ["P-1", "P-2"]', 'publishers = ["P-2"]')
    edit(files[-1], "[attribution]", '[attribution]\nclick_lookback = "2h"')
    campaigns = [Campaign.load(file) for file in files]
    for slot in (1, 2, 3):
        profile.clear()
        done = list(releasing_together(Asked(campaign, slot) for campaign in campaigns))
        assert [outcome.failure for outcome in done] == [None] * len(files)
        windows = 2
        assert profile.scans["impressions.parquet"] == 1 + windows
        assert profile.scans["conversions.parquet"] == 2
        # Of the one alone, what it starts with is counted once for people and once for publishers.
        assert profile.attributions == (1 + 3 if slot == 1 else 1 + 1)


def test_event_ids_cost_one_more_look_at_each_source(profile: Profile, tmp_path: Path) -> None:
    file = write_campaign(tmp_path / "campaign")
    for name in ("impressions", "conversions"):
        path = file.parent / f"{name}.parquet"
        table = pq.read_table(path)
        ids = [[str(k) for k in range(table.num_rows)]]
        pq.write_table(table.append_column("event_id", ids), path)
    Campaign.load(file).release(1)
    profile.clear()
    Campaign.load(file).release(2)
    assert profile.scans["impressions.parquet"] <= 2
    assert profile.scans["conversions.parquet"] == 1


def test_contributions_in_files_are_read_once_a_slot(profile: Profile, tmp_path: Path) -> None:
    """Whatever is asked about it, in whatever order."""
    names = ("user_id", "slot", "time_us", "conversion_number", "cell_index", "weight")
    file = tmp_path / "contributed.parquet"
    columns = ([7, 7, 8], [1, 2, 2], [5, 6, 7], [1, 1, 1], [0, 1, 0], [10, 20, 30])
    pq.write_table(pa.table(dict(zip(names, columns, strict=True))), file)
    engine = DuckDBEngine()
    rows = Relation.of(f"SELECT * FROM '{file}'")
    contributions = EngineContributions(engine, rows, 2, Layout.of_publishers(("P-1", "other")))
    for slot, total in ((1, [4, 0]), (2, [4, 4])):
        profile.clear()
        assert contributions.totals(slot, 4).tolist() == total
        assert contributions.histogram(slot, [25]).sum() == slot
        assert contributions.users_above(slot, 9) == slot
        assert profile.scans["contributed.parquet"] == 1
    engine.close()


def test_a_slot_reads_its_own_rows(profile: Profile, tmp_path: Path) -> None:
    """Of conversions those of the slot, of impressions those up to its end: what lies elsewhere is
    left out by the scan itself."""
    file = write_campaign(tmp_path / "campaign", slots=5)
    campaign = Campaign.load(file)
    campaign.release(1)
    campaign.release(2)
    profile.clear()
    campaign.release(3)
    # Slot 2 is empty, and a few impressions of the next slot's conversions are there before it.
    assert profile.rows["conversions.parquet"] == IN_A_SLOT
    assert 2 * IN_A_SLOT <= profile.rows["impressions.parquet"] < 3 * IN_A_SLOT


@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("zone", ["UTC", None])
def test_a_slot_reads_its_rows_in_every_unit(unit: str, zone: str | None, tmp_path: Path) -> None:
    """With event ids, for which everything before the slot is read: nanoseconds begin in 1677."""
    file = write_campaign(tmp_path)
    for name in ("impressions", "conversions"):
        path = file.parent / f"{name}.parquet"
        table = pq.read_table(path)
        moments = table["timestamp"].cast(pa.timestamp("us")).cast(pa.timestamp(unit, zone))
        table = table.set_column(table.schema.get_field_index("timestamp"), "timestamp", moments)
        ids = [[str(k) for k in range(table.num_rows)]]
        pq.write_table(table.append_column("event_id", ids), path)
    found = [one.conversions for one in Campaign.load(file).release()]
    assert found == [IN_A_SLOT, 0, IN_A_SLOT, IN_A_SLOT, IN_A_SLOT]
