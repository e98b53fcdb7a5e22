"""Broken set-ups: each is found, with the next step, and hides nothing else."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adsbpc import Campaign
from adsbpc.campaign.doctor import Setup
from adsbpc.model import load_spec
from tests.campaign.files import edit, write_campaign
from tests.cli.program import adsbpc
from tests.small_world import in_a_small_world, read_only, small

NOWHERE = "postgresql://adsbpc:secret@127.0.0.1:1/adsbpc"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_campaign(tmp_path / "campaign")


def checks(file: Path, **environment: str) -> dict[str, dict[str, Any]]:
    """Findings by name; the exit code says whether all is well."""
    done = adsbpc("doctor", file, "--json", cwd=file.parent, **environment)
    return _by_name(done.stdout, done.returncode, done.stderr)


def _by_name(stdout: str, code: int, stderr: str) -> dict[str, dict[str, Any]]:
    assert stdout, stderr
    found = json.loads(stdout)
    assert code == (0 if found["held"] else 1)
    assert found["held"] == all(each["held"] for each in found["checks"])
    for each in found["checks"]:
        assert each["found"]
        assert each["held"] == (not each["to_do"]), each
    return {each["name"]: each for each in found["checks"]}


def only(found: dict[str, dict[str, Any]], *names: str) -> dict[str, Any]:
    """The first of the findings that are broken, which are just these."""
    assert {name for name, each in found.items() if not each["held"]} == set(names)
    return found[names[0]]


def test_all_is_well(file: Path) -> None:
    Campaign.load(file).release(1)
    before = sorted(path.name for path in file.parent.rglob("*"))
    found = checks(file)
    assert not [each for each in found.values() if not each["held"]]
    assert {"engine", "disk", "ledger", "clock", "folder", "extras", "conversions"} <= set(found)
    assert sorted(path.name for path in file.parent.rglob("*")) == before
    assert "All is well." in adsbpc("doctor", file, cwd=file.parent).stdout
    # The machine alone, and the service.
    assert adsbpc("doctor", cwd=file.parent).returncode == 0
    settings = file.parent / "service.toml"
    settings.write_text('[service]\ndata = "data"\n')
    done = adsbpc("doctor", "--config", settings, "--json", cwd=file.parent)
    assert "service database" in _by_name(done.stdout, done.returncode, done.stderr)


def test_no_java(file: Path, tmp_path: Path) -> None:
    edit(file, 'engine = "duckdb"', 'engine = "spark"')
    edit(file, "threads = 1", "")
    found = only(
        checks(file, JAVA_HOME=str(tmp_path)), "java", "engine", "impressions", "conversions"
    )
    assert "none was found" in found["found"]
    assert "apt-get install openjdk-17-jre-headless" in found["to_do"]


def test_old_java(file: Path, tmp_path: Path) -> None:
    edit(file, 'engine = "duckdb"', 'engine = "spark"')
    edit(file, "threads = 1", "")
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    found = only(
        checks(file, JAVA_HOME=str(tmp_path)), "java", "engine", "impressions", "conversions"
    )
    assert 'version "11.0.2"' in found["found"]
    assert "Install Java 17 or newer" in found["to_do"]


def test_a_full_disk(file: Path) -> None:
    disk = file.parent / "disk"
    disk.mkdir()
    mount = f"{small(disk, 512)} && cp {file.parent}/*.toml {file.parent}/*.parquet {disk}"
    done = in_a_small_world(
        mount, sys.executable, "-m", "adsbpc", "doctor", f"{disk}/{file.name}", "--json"
    )
    found = only(_by_name(done.stdout, done.returncode, done.stderr), "disk")
    assert f"0 MiB are free at {disk}" in found["found"]
    assert "Free some space" in found["to_do"]


def test_a_read_only_folder(file: Path) -> None:
    done = in_a_small_world(
        read_only(file.parent), sys.executable, "-m", "adsbpc", "doctor", str(file), "--json"
    )
    found = only(_by_name(done.stdout, done.returncode, done.stderr), "folder")
    assert "Read-only file system" in found["found"]
    assert "right to write there" in found["to_do"]


def test_a_clock_that_is_behind(file: Path) -> None:
    """What is there was written tomorrow."""
    Campaign.load(file).release(1)
    tomorrow = time.time() + 86_400
    os.utime(next(file.parent.glob("adsbpc-releases/**/0001.json")), (tomorrow, tomorrow))
    found = only(checks(file), "clock")
    assert "0001.json was written at" in found["found"]
    assert "Set the clock" in found["to_do"]


def test_an_old_sqlite(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.22.0")
    found = only(checks(file), "sqlite")
    assert "SQLite 3.22.0" in found["found"]
    assert "newer SQLite" in found["to_do"]


def test_a_missing_extra(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(file, 'engine = "duckdb"', 'engine = "spark"')
    edit(file, "threads = 1", "")
    for module in ("pyspark", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, module, None)
    found = checks(file)
    assert not found["extras"]["held"]
    assert found["extras"]["to_do"] == "pip install 'adsbpc[spark]'"
    assert not found["engine"]["held"]


def test_a_missing_extra_of_a_table(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(file, '"conversions.parquet"', '"delta:lake/conversions"')
    monkeypatch.setitem(sys.modules, "deltalake", None)
    found = only(checks(file), "extras", "conversions")
    assert found["to_do"] == "pip install 'adsbpc[delta]'"


def test_a_cluster_reads_tables_with_its_own_connectors(file: Path) -> None:
    edit(file, '"conversions.parquet"', '"delta:lake/conversions"')
    edit(file, '"impressions.parquet"', f'"{NOWHERE}#ads"')
    edit(file, 'engine = "duckdb"', 'engine = "spark"')
    for master, needed in (
        ("local[2]", {"spark", "delta", "postgresql"}),
        ("spark://master:7077", {"spark", "postgresql"}),
    ):
        spec = load_spec(file)
        setup = replace(Setup.of(spec), engine_options={"spark.master": master})
        assert setup.needed_extras == needed


def test_an_unreachable_database(file: Path) -> None:
    edit(file, 'location = "ledger.sqlite"', f'location = "{NOWHERE}"')
    found = only(checks(file), "ledger")
    assert "Connection refused" in found["found"]
    assert "Start the server" in found["to_do"]
    assert "[ledger] location" in found["to_do"]
    assert "secret" not in json.dumps(found)


def test_a_damaged_ledger(file: Path) -> None:
    ledger = file.parent / "ledger.sqlite"
    ledger.write_bytes(b"no database at all, and long enough to be looked at" * 100)
    ledger.chmod(0o600)
    assert "Restore it from a backup" in only(checks(file), "ledger")["to_do"]


def test_a_ledger_that_others_may_read(file: Path) -> None:
    Campaign.load(file).release(1)
    ledger = file.parent / "ledger.sqlite"
    ledger.chmod(0o644)
    assert only(checks(file), "ledger")["to_do"] == f"chmod 600 {ledger}"


def test_a_ledger_of_a_later_version(file: Path) -> None:
    Campaign.load(file).release(1)
    with closing(sqlite3.connect(file.parent / "ledger.sqlite")) as connection, connection:
        connection.execute("UPDATE adsbpc_schema SET version_num = '0099'")
    assert only(checks(file), "ledger")["to_do"] == "Upgrade adsbpc"


def test_no_events(file: Path) -> None:
    (file.parent / "conversions.parquet").unlink()
    found = only(checks(file), "conversions")
    assert "conversions.parquet: found no file" in found["found"]
    assert "[events] conversions" in found["to_do"]


def test_an_option_that_the_engine_refuses(file: Path) -> None:
    edit(file, "threads = 1", 'memory_limit = "lots"')
    found = only(checks(file), "engine", "impressions", "conversions")
    assert "[engine.options]" in found["found"]


def test_a_missing_folder_for_data(tmp_path: Path) -> None:
    done = adsbpc("doctor", "missing.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "adsbpc init" in done.stderr
