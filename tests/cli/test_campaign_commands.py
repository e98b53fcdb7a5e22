"""A campaign from `init` to `report` on the command line, and what it says to bad input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from adsbpc.model import load_spec
from tests.campaign.files import ADSBPC, edit, published, write_campaign
from tests.cli.program import adsbpc, in_a_process
from tests.small_world import fill_and_free, in_a_small_world, read_only, small


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_campaign(tmp_path)


def run(*arguments: object, cwd: Path) -> str:
    done = adsbpc(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def refused(done: subprocess.CompletedProcess[str], code: int, *messages: str) -> None:
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert "Traceback" not in done.stderr
    for message in messages:
        assert message in done.stderr


def test_init_writes_a_file_that_can_be_planned(tmp_path: Path) -> None:
    told = run("init", "spring.toml", "--start", "2026-03-01", "--publisher", 'P "1"', cwd=tmp_path)
    assert "adsbpc plan spring.toml" in told
    spec = load_spec(tmp_path / "spring.toml")
    assert spec.campaign.publishers == ('P "1"',)
    assert "rho = 1" in run("plan", "spring.toml", cwd=tmp_path)
    refused(adsbpc("init", "spring.toml", cwd=tmp_path), 2, "is there already. Give another name")
    assert json.loads(run("init", "--json", cwd=tmp_path)) == {"file": "campaign.toml"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--start", "soon"), "--start soon: expected a date such as 2026-03-01"),
        (("--publisher", "a", "--publisher", "a"), "publishers lists 'a' more than once"),
        (("no/where.toml",), "cannot be written (No such file or directory)"),
    ],
)
def test_init_with_bad_input(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    refused(adsbpc("init", *arguments, cwd=tmp_path), 2, message)
    assert list(tmp_path.iterdir()) == []


def test_release_prints_what_was_stored(file: Path) -> None:
    first = lines(run("release", file.name, "--slot", 1, "--json", cwd=file.parent))
    assert [one["slot"] for one in first] == [1]
    assert first[0]["replayed"] is False
    assert {"part", "rho"} <= first[0]["charges"][0].keys()
    total, publisher, *_ = first[0]["estimates"]
    assert total.keys() == {"measure", "view", "query", "value", "standard_error"}
    assert publisher.keys() == {*total, "publisher"}
    rest = lines(run("release", file.name, "--through", "2026-03-03", "--json", cwd=file.parent))
    assert [(one["slot"], one["replayed"]) for one in rest] == [(1, True), (2, False), (3, False)]
    assert {**rest[0], "replayed": False} == first[0]
    everything = lines(run("release", file.name, "--json", cwd=file.parent))
    assert [one["replayed"] for one in everything] == [True] * 3 + [False] * 2
    again = lines(run("release", file.name, "--json", cwd=file.parent))
    for one in again:
        text = json.loads(published(file.parent)[one["slot"]])
        assert {**text, "replayed": True}.items() <= one.items()
    told = run("release", file.name, cwd=file.parent)
    assert "5 slots were released before: nothing was drawn or charged again." in told
    assert "Budget of the campaign: 1 of rho = 1 spent, 0 left." in told


def test_release_for_people(file: Path) -> None:
    done = adsbpc("release", file.name, "--through", "2026-03-02", cwd=file.parent)
    assert "Released slots 1 to 2." in done.stdout
    assert "P-1" in done.stdout
    assert "left" in done.stdout
    later = adsbpc("release", file.name, "--slot", 3, cwd=file.parent)
    assert "Released slot 3." in later.stdout


def test_status(file: Path) -> None:
    before = json.loads(run("status", file.name, "--json", cwd=file.parent))
    assert (before["released"], before["spent"], before["left"]) == (0, 0, 1)
    assert before["verified"] is None
    assert not (file.parent / "ledger.sqlite").exists()
    run("release", file.name, "--through", "2026-03-03", cwd=file.parent)
    found = json.loads(run("status", file.name, "--json", "--verify", cwd=file.parent))
    assert (found["released"], found["slots"], found["verified"]) == (3, 5, True)
    assert found["spent"] + found["left"] == pytest.approx(1)
    assert found["spent"] == pytest.approx(found["scope"]["spent"])
    table = run("status", file.name, "--verify", cwd=file.parent)
    assert "3 of 5 slots" in table
    assert found["head"] in table


def test_a_flipped_bit_is_found(file: Path) -> None:
    run("release", file.name, cwd=file.parent)
    ledger = file.parent / "ledger.sqlite"
    content = bytearray(ledger.read_bytes())
    content[content.index(b'"bound"') + 8] ^= 1
    ledger.write_bytes(content)
    done = adsbpc("status", file.name, "--verify", "--json", cwd=file.parent)
    assert done.returncode == 1
    assert json.loads(done.stdout)["verified"] is False
    assert "does not verify" in done.stderr


def test_a_deleted_ledger_is_refused(file: Path) -> None:
    run("release", file.name, "--slot", 1, cwd=file.parent)
    (file.parent / "ledger.sqlite").unlink()
    for command in ("release", "status", "report"):
        done = in_a_process(command, file.name, cwd=file.parent)
        refused(done, 1, "A lost ledger counts as spent: restore it from its newest backup")


def test_report_in_every_format(file: Path) -> None:
    refused(adsbpc("report", file.name, cwd=file.parent), 1, "Nothing is released yet")
    run("release", file.name, "--through", "2026-03-03", cwd=file.parent)
    assert "P-1" in run("report", file.name, "--level", 0.9, "--adjusted", cwd=file.parent)
    found = json.loads(run("report", file.name, "--json", cwd=file.parent))
    assert len(found["cells"]) == 3 * 4
    assert "all at once" in run("report", file.name, "--band", cwd=file.parent)
    banded = json.loads(run("report", file.name, "--band", "--json", cwd=file.parent))
    assert all(cell["band_low"] < cell["low"] for cell in banded["cells"])
    for file_format in ("html", "csv", "parquet", "json"):
        told = run("report", file.name, "--format", file_format, cwd=file.parent)
        assert told == f"Wrote report.{file_format}\n"
    assert pq.read_table(file.parent / "report.parquet").num_rows == 12
    assert json.loads((file.parent / "report.json").read_text()) == found
    run("report", file.name, "--out", "april.csv", cwd=file.parent)
    assert (file.parent / "april.csv").read_text() == (file.parent / "report.csv").read_text()


def test_report_with_bad_input(file: Path) -> None:
    run("release", file.name, "--slot", 1, cwd=file.parent)
    for arguments, code, message in (
        (("--out", "ledger.sqlite", "--format", "csv"), 2, "is the ledger, which must not be lost"),
        (("--out", "ledger.sqlite.seal", "--format", "csv"), 2, "is the ledger"),
        (("--out", "spring.toml", "--format", "csv"), 2, "a campaign file"),
        (("--out", "impressions.parquet"), 2, "is a file of events"),
        (("--out", "x.html", "--format", "csv"), 2, "its ending is not --format csv"),
        (("--format", "htm"), 2, 'csv, parquet, json, mmm. Did you mean "html"?'),
        (("--out", "report"), 2, "has no ending that says which format"),
        (("--level", 2), 2, "level = 2.0: expected a number from 0.5 to 0.9999"),
        (("--out", "no/where.csv"), 2, "does not exist. Create it first"),
    ):
        refused(adsbpc("report", file.name, *arguments, cwd=file.parent), code, message)


BAD_FILES = [
    ("scope =", "scoop =", 2, ('[campaign] scoop: unknown key. Did you mean "scope"?',)),
    ('["P-1", "P-2"]', '["P-1", "P-1"]', 2, ("publishers lists 'P-1' more than once: remove",)),
    ("slots = 5", "end = 2026-02-01", 2, ("end = 2026-02-01 is before start = 2026-03-01",)),
    ("slots = 5", "slots = 0", 2, ("[campaign] slots = 0: ",)),
    ('"conversions.parquet"', '"missing.parquet"', 1, ("missing.parquet: found no file",)),
    ("rho = 1.0", "rho = 1.0000000000001", 2, ("expected at most twelve decimals",)),
    ("rho = 1.0", "rho = 1.0\nscope_rho = 0.5", 1, ("requested 1, spent 0, left 0.5",)),
    ('"ledger.sqlite"', '"no/where.sqlite"', 1, ("cannot be created (No such file", "folder")),
    ('"ledger.sqlite"', '"mysql://h/d"', 2, ("mysql:// is not supported",)),
    ('name = "spring"', 'name = "a\\nb"', 2, ("expected no line breaks",)),
    (f"[privacy]\nrho = 1.0\n{ADSBPC}", "", 2, ("has no [privacy] section. Add one",)),
]


@pytest.mark.parametrize(("before", "after", "code", "messages"), BAD_FILES)
def test_bad_campaign_files(
    before: str, after: str, code: int, messages: tuple[str, ...], file: Path
) -> None:
    edit(file, before, after)
    refused(adsbpc("release", file.name, cwd=file.parent), code, *messages)
    assert published(file.parent) == {}


def in_shell(file: Path, mount: str, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in the campaign's folder, with `adsbpc` as the program."""
    program = f"adsbpc() {{ '{sys.executable}' -m adsbpc \"$@\"; }}; cd '{file.parent}'\n"
    return in_a_small_world(mount, "sh", "-c", program + script)


def test_a_read_only_folder(file: Path) -> None:
    done = in_shell(file, read_only(file.parent), "adsbpc release spring.toml")
    refused(done, 1, "ledger.sqlite: cannot be created (Read-only file system)", "may write there")
    run("release", file.name, "--slot", 1, cwd=file.parent)
    done = in_shell(file, read_only(file.parent), "adsbpc report spring.toml --out report.html")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "room", [4, *(pytest.param(room, marks=pytest.mark.slow) for room in (60, 80, 90, 100, 110))]
)
def test_a_full_disk_loses_nothing(room: int, file: Path, tmp_path_factory: Any) -> None:
    """However far a release comes before the disk is full, the next one goes on from there."""
    disk, out = tmp_path_factory.mktemp("disk"), tmp_path_factory.mktemp("out")
    mount = f"{small(disk, 1024)} && cp -r '{file.parent}/.' '{disk}'"
    script = fill_and_free(room, out)
    done = in_shell(disk / file.name, mount, script)
    assert done.stdout == "1 0\n", done.stderr
    assert "Free" in done.stderr
    assert "Traceback" not in done.stderr
    first, second = (lines((out / name).read_text()) for name in ("first", "second"))
    assert len(first) < len(second) == 5
    for before, after in zip(first, second, strict=False):
        assert {**before, "replayed": True} == after
    status = json.loads((out / "status").read_text())
    assert (status["released"], status["verified"]) == (5, True)


def test_slots_that_cannot_be_released(file: Path) -> None:
    for arguments, code, message in (
        (("--slot", 3), 1, "slots are released in order, and slot 1 is next"),
        (("--slot", 9), 2, "slot 9: expected a number from 1 to 5"),
        (("--through", "2026-01-01"), 2, "is before the campaign starts"),
        (("--slot", 1, "--through", "2026-03-01"), 2, "not both"),
    ):
        refused(adsbpc("release", file.name, *arguments, cwd=file.parent), code, message)


def test_a_dry_run_charges_nothing(file: Path) -> None:
    told = run("release", file.name, "--dry-run", cwd=file.parent)
    assert "12 of 12 conversions (100.0%) have a touch." in told
    assert "Nothing was drawn or charged." in told
    found = json.loads(run("release", file.name, "--dry-run", "--json", cwd=file.parent))
    assert found == {
        "slot": 1, "conversions": 12, "matched": 12, "personal_data": True, "quarantined": [],
        "credited": {"P-1": 4.0, "P-2": 5.0, "other": 3.0},
        "usable": {"impressions": 12, "conversions": 12}, "late": 0,
        "refused": False, "problems": [],
    }  # fmt: skip
    assert published(file.parent) == {}


def test_a_dry_run_says_that_a_release_would_be_refused(file: Path) -> None:
    edit(file, "start = 2026-03-01", "start = 2025-03-01")
    found = json.loads(run("release", file.name, "--dry-run", "--json", cwd=file.parent))
    assert found["refused"] is True
    (problem,) = found["problems"]
    assert "belong to slots 1 to 5, from 2025-03-01T00:00:00+00:00" in problem
    told = " ".join(run("release", file.name, "--dry-run", cwd=file.parent).split())
    assert f"A release would be refused: {problem}" in told


def test_a_run_that_reads_nothing_warns(file: Path) -> None:
    edit(file, 'advertiser = "Ad-1"', 'advertiser = "Ad-2"')
    done = adsbpc("release", file.name, "--slot", 1, cwd=file.parent)
    assert done.returncode == 1
    assert "rows are of other advertisers" in done.stderr
    assert published(file.parent) == {}
    edit(file, "[ledger]", "[checks]\nmax_quarantine_rate = 1\n[ledger]")
    done = adsbpc("release", file.name, "--slot", 1, cwd=file.parent)
    assert done.returncode == 0
    assert "WARNING: no conversion was read" in done.stderr


@pytest.mark.parametrize("name", ["a [/] b [red]", "[bold]x[/bold]"])
def test_names_with_brackets(name: str, file: Path) -> None:
    edit(file, 'name = "spring"', f'name = "{name}"')
    edit(file, 'scope = "acme"', f'scope = "{name}"')
    run("release", file.name, "--slot", 1, cwd=file.parent)
    for command in ("plan", "status", "report"):
        assert name in run(command, file.name, cwd=file.parent).replace("\n", " ") or (
            command in ("plan", "report")
        )


def test_stopping_a_run(file: Path) -> None:
    """Ctrl-C: one line, and the next run goes on."""
    edit(file, "slots = 5", "slots = 250")
    command = [sys.executable, "-m", "adsbpc", "release", file.name, "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=file.parent
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert told.endswith("Stopped. What was released is in the ledger: run it again to go on.\n")
    assert "Traceback" not in told
    found = json.loads(run("status", file.name, "--verify", "--json", cwd=file.parent))
    assert 0 < found["released"] < 250


def test_a_full_standard_output(file: Path) -> None:
    command = f"{sys.executable} -m adsbpc release {file.name} --json > /dev/full"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, check=False, cwd=file.parent
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr


def test_nothing_is_due_before_the_first_slot_ends(file: Path) -> None:
    edit(file, "start = 2026-03-01", "start = 2149-01-01")
    told = run("release", file.name, cwd=file.parent)
    assert told == "Nothing is due: slot 1 lasts until 2149-01-02T00:00:00+00:00.\n"


def test_bad_rows_go_to_the_operator_only(file: Path) -> None:
    table = pq.read_table(file.parent / "conversions.parquet")
    users = ["" if k == 0 else user for k, user in enumerate(table["user_id"].to_pylist())]
    pq.write_table(table.set_column(0, "user_id", [users]), file.parent / "conversions.parquet")
    done = adsbpc("release", file.name, "--json", cwd=file.parent)
    assert done.stderr.count("quarantined 1 conversions in one slot: no user") == 1
    assert "quarantine" not in done.stdout


def test_shell_completion(tmp_path: Path) -> None:
    """What bash asks the installed program while somebody types `adsbpc re<TAB>`."""
    program = str(Path(sys.executable).with_name("adsbpc"))
    asked = {"_ADSBPC_COMPLETE": "complete_bash", "COMP_WORDS": "adsbpc re", "COMP_CWORD": "1"}
    done = subprocess.run(
        [program], capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, **asked},
    )  # fmt: skip
    assert done.stdout.split() == ["release", "restore", "report"]
    assert "--install-completion" in run("--help", cwd=tmp_path)
