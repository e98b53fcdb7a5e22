"""Several campaign files and folders of them: what one fails with is its own."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adsbpc import Campaign
from tests.campaign.files import edit, published, write_campaign
from tests.campaign.test_series import END, write_series
from tests.cli.program import adsbpc

SLOTS = 5


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three campaigns over the same events, two of them in one ledger."""
    file = write_campaign(tmp_path / "shop", SLOTS)
    for name, location in (("summer", "ledger.sqlite"), ("autumn", "autumn.sqlite")):
        copy = file.with_name(f"{name}.toml")
        shutil.copy(file, copy)
        edit(copy, 'name = "spring"', f'name = "{name}"')
        edit(copy, 'scope = "acme"', f'scope = "of-{name}"')
        edit(copy, 'location = "ledger.sqlite"', f'location = "{location}"')
    return file.parent


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def released(folder: Path, name: str) -> int:
    return Campaign.load(folder / f"{name}.toml").status().released


def test_a_folder_is_released_campaign_by_campaign_and_slot_by_slot(folder: Path) -> None:
    done = adsbpc("release", folder, "--through", "2026-03-02", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = [(line["slot"], line["campaign"], line["replayed"]) for line in lines(done.stdout)]
    assert found == [
        (slot, name, False) for slot in (1, 2) for name in ("autumn", "spring", "summer")
    ]
    told = adsbpc("release", folder, folder / "spring.toml", cwd=folder)
    assert told.returncode == 0
    assert "Released 9 slots of 3 campaigns; 6 slots were released before." in told.stdout
    assert "acme/spring" in told.stdout
    again = adsbpc("release", folder, "--json", cwd=folder)
    assert [line["replayed"] for line in lines(again.stdout)] == [True] * 3 * SLOTS
    assert Campaign.load(folder / "spring.toml").audit().held


def test_what_one_fails_with_stops_only_that_one(folder: Path) -> None:
    (folder / "broken.toml").write_text("[campaign]\nname = 3\n")
    for name, before, after in (
        ("winter", 'impressions = "impressions.parquet"', 'impressions = "none.parquet"'),
        ("refused", 'advertiser = "Ad-1"', 'advertiser = "Ad-2"'),
        ("greedy", 'scope = "acme"', 'scope = "acme"'),
        ("unreadable", 'conversions = "conversions.parquet"', 'conversions = "torn.parquet"'),
    ):
        copy = folder / f"{name}.toml"
        shutil.copy(folder / "spring.toml", copy)
        edit(copy, before, after)
        edit(copy, 'name = "spring"', f'name = "{name}"')
        if name != "greedy":
            edit(copy, 'scope = "acme"', f'scope = "of-{name}"')
    (folder / "torn.parquet").write_bytes((folder / "conversions.parquet").read_bytes()[:-20])
    assert adsbpc("release", folder / "spring.toml", "--slot", 1, cwd=folder).returncode == 0

    done = adsbpc("release", folder, "--json", cwd=folder)

    assert done.returncode == 1
    for message in (
        "broken.toml: ",
        "of-winter/winter (",
        "none.parquet: found no file; expected at least one. Check [events] impressions",
        "of-refused/refused (",
        "are of other advertisers than [campaign] advertiser = 'Ad-2'",
        "acme/greedy (",
        "of-unreadable/unreadable (",
        "5 campaigns failed, and 3 did not.",
    ):
        assert message in done.stderr, message
    assert {line["campaign"] for line in lines(done.stdout)} == {"spring", "summer", "autumn"}
    assert [released(folder, name) for name in ("spring", "summer", "autumn")] == [SLOTS] * 3


def test_a_slot_is_of_one_campaign(folder: Path) -> None:
    done = adsbpc("release", folder, "--slot", 1, cwd=folder)
    assert done.returncode == 2
    assert "--through DATE" in done.stderr


def test_an_empty_folder_is_a_mistake(tmp_path: Path) -> None:
    done = adsbpc("release", tmp_path, cwd=tmp_path)
    assert done.returncode == 2
    assert "adsbpc init" in done.stderr


def test_one_that_starts_later_is_no_mistake(folder: Path) -> None:
    edit(folder / "autumn.toml", "start = 2026-03-01", "start = 2026-03-04")
    done = adsbpc("release", folder, "--through", "2026-03-02", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert released(folder, "autumn") == 0
    assert released(folder, "spring") == 2


def test_a_dry_run_charges_nothing_of_anybody(folder: Path) -> None:
    told = adsbpc("release", folder, "--dry-run", "--json", cwd=folder)
    assert [(line["campaign"], line["matched"]) for line in lines(told.stdout)] == [
        ("autumn", 12), ("spring", 12), ("summer", 12),
    ]  # fmt: skip
    assert [released(folder, name) for name in ("spring", "summer", "autumn")] == [0, 0, 0]
    assert "These counts have no noise" in adsbpc("release", folder, "--dry-run", cwd=folder).stdout


def test_periods_of_a_campaign_without_an_end_follow_each_other(tmp_path: Path) -> None:
    """A turn of the quarter that was missed does not wait for one more run."""
    write_series(tmp_path)
    found = lines(adsbpc("release", tmp_path, "--through", END, "--json", cwd=tmp_path).stdout)
    assert [(line["campaign"], line["slot"]) for line in found] == [
        ("spring@2026-Q1", 1), ("spring@2026-Q1", 2), ("spring@2026-Q1", 3),
        ("spring@2026-Q2", 1), ("spring@2026-Q2", 2),
    ]  # fmt: skip
    again = adsbpc("release", tmp_path, "--through", END, cwd=tmp_path).stdout
    # The quarter that is complete is not gone through again.
    assert "Released 0 slots of 1 campaign; 2 slots were released before." in again


def test_a_killed_run_is_repeated(folder: Path) -> None:
    """Whatever was printed stands, and nothing is drawn or charged again."""
    command = [sys.executable, "-m", "adsbpc", "release", str(folder), "--json"]
    seen: list[dict[str, Any]] = []
    for wanted in (1, 7):
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as run:
            assert run.stdout is not None
            seen += [json.loads(run.stdout.readline()) for _ in range(wanted)]
            run.send_signal(signal.SIGKILL)
    finished = lines(adsbpc("release", folder, "--json", cwd=folder).stdout)
    assert len(finished) == 3 * SLOTS
    by_slot = {(line["campaign"], line["slot"]): line for line in finished}
    for line in seen:
        assert by_slot[line["campaign"], line["slot"]] == {**line, "replayed": True}
    assert len(published(folder)) == SLOTS
    for name in ("spring", "summer", "autumn"):
        campaign = Campaign.load(folder / f"{name}.toml")
        assert campaign.verify().problem is None
        assert campaign.audit().held
