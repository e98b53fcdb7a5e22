"""Pages whose commands and Python run as they stand there, from the top to the bottom."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from adsbpc.lab.journeys import make_campaign
from tests.cli.program import adsbpc
from tests.documents.pages import Block, arguments, blocks
from tests.odd_files import write_odd_files

_ADDRESS = "http://127.0.0.1:8080"
# In commands of a page that runs: what needs the network, or does not end.
_LEFT_OUT = ("pip install", "adsbpc demo --serve")
# What readers replace with a server of their own: all of such a block is theirs.
_READERS_OWN = "https://ads.example"
_SHELL = re.compile(r"[|<>;&*]")


def _odd_files(folder: Path) -> None:
    write_odd_files(folder, people=400, days=5)


def _made_up_campaign(folder: Path) -> None:
    make_campaign(folder, 200, 3, 1, "last_touch")
    assert adsbpc("release", "campaign.toml", cwd=folder).returncode == 0


def _with_a_service(folder: Path) -> None:
    make_campaign(folder, 200, 3, 1, "last_touch").spec.rename(folder / "spring.toml")
    (folder / "service.toml").write_text('[service]\ndata = "data"\n')


def _with_a_key(folder: Path) -> None:
    """Which the page makes at its end."""
    _with_a_service(folder)
    assert adsbpc("release", "spring.toml", cwd=folder).returncode == 0
    made = [each for block in blocks("docs/statement.md") for each in block.commands()]
    for command in made:
        if command.startswith("openssl"):
            assert _in_a_shell(command, folder).returncode == 0


# What is there before the first command; other pages make what they need.
_BEFORE: dict[str, Callable[[Path], None]] = {
    "docs/five-minutes.md": _odd_files,
    "docs/tutorials/first-campaign.md": _odd_files,
    "docs/how-to.md": _made_up_campaign,
    "docs/doctor.md": _with_a_service,
    "docs/statement.md": _with_a_key,
}


def _in_a_shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env={**os.environ, "PATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def _here(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Commands of the program in this process, which is quicker; others in a shell."""
    if not command.startswith("adsbpc ") or _SHELL.search(command):
        return _in_a_shell(command, folder)
    return adsbpc(*arguments(command)[1:], cwd=folder)


def _run_commands(
    block: Block, folder: Path, run: Callable[[str, Path], subprocess.CompletedProcess[str]]
) -> str:
    said = ""
    for command in block.commands():
        if command.startswith(_LEFT_OUT):
            continue
        done = run(command, folder)
        assert done.returncode == 0, f"{block}: {command}\n{done.stdout}{done.stderr}"
        said += done.stdout
    return said


def _run_page(
    page: str, folder: Path, run: Callable[[str, Path], subprocess.CompletedProcess[str]] = _here
) -> None:
    names: dict[str, Any] = {}
    for block in blocks(page):
        if block.language == "console" and _READERS_OWN not in block.text:
            said = _run_commands(block, folder, run)
            shown = [line for line in block.text.splitlines() if line.startswith("│")]
            assert [line for line in shown if line not in said] == [], block
        if block.language == "python":
            exec(compile(block.text, str(block), "exec"), names)
        if block.file_name:
            (folder / block.file_name).write_text(block.text, encoding="utf-8")


@pytest.mark.slow
def test_a_newcomer_gets_a_report_from_files_with_odd_columns(
    tmp_path: Path,
) -> None:
    """Literally: every line of the page in a shell."""
    _odd_files(tmp_path)
    _run_page("docs/five-minutes.md", tmp_path, _in_a_shell)
    page, cells = (tmp_path / "report.html").read_text(), (tmp_path / "report.csv").read_text()
    for publisher in ("Forum", "Radio", "Suche", "Zeitung"):
        assert publisher in page
        assert f",{publisher}," in cells
    again = _in_a_shell("adsbpc release spring.toml", tmp_path)
    assert "5 slots were released before: nothing was drawn or charged again." in again.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        "docs/doctor.md",
        "docs/how-to.md",
        "docs/statement.md",
        "docs/tutorials/first-campaign.md",
        "docs/tutorials/lift.md",
        "docs/tutorials/reading-a-report.md",
        "docs/tutorials/revenue.md",
    ],
)
def test_the_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if page in _BEFORE:
        _BEFORE[page](tmp_path)
    _run_page(page, tmp_path)


def test_what_is_printed_beside_a_budget_is_what_comes_out(tmp_path: Path) -> None:
    for block in blocks("docs/concepts/rho.md"):
        said = _run_commands(block, tmp_path, _here)
        shown = [line for line in block.text.splitlines() if not line.startswith("$ ")]
        assert said.splitlines() == shown


@pytest.mark.spark
@pytest.mark.slow
def test_the_page_about_spark_runs(tmp_path: Path) -> None:
    _run_page("docs/tutorials/spark.md", tmp_path)
    assert len(list((tmp_path / "demo/adsbpc-releases/on-spark/on-spark").glob("*.json"))) == 2


@pytest.mark.slow
def test_the_page_about_the_service_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, Any] = {}
    with _served(tmp_path, monkeypatch) as address:
        for block in blocks("docs/tutorials/service.md"):
            if block.language == "python":
                assert _ADDRESS not in block.text or "url =" in block.text
                exec(compile(block.text.replace(_ADDRESS, address), str(block), "exec"), names)
    assert [each["advertiser"] for each in names["campaigns"]] == ["acme"]


@contextmanager
def _served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The page's own commands: its keys, and a server with them."""
    shown = [
        command
        for block in blocks("docs/tutorials/service.md")
        for command in block.commands()
        if not command.startswith(_LEFT_OUT)
    ]
    *made, serve = shown
    assert serve == "adsbpc serve"
    for command in made:
        done = adsbpc(*arguments(command)[1:], cwd=folder)
        assert done.returncode == 0, done.stderr
        role, key = re.search(r"--role (\w+)", command), re.search(r"adsbpc_\S+", done.stdout)
        assert role is not None
        assert key is not None
        monkeypatch.setenv(f"{role[1].upper()}_KEY", key[0])
    environment = {**os.environ, "ADSBPC_SERVICE_PORT": "0", "NO_PROXY": "127.0.0.1"}
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments(serve)], cwd=folder, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        found = re.match(r"adsbpc serves (\S+)", process.stdout.readline())
        assert found is not None
        yield found[1]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
