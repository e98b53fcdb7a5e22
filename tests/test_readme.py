"""The README's commands and its Python run as they stand there."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from adsbpc.lab.journeys import make_campaign
from tests.cli.program import adsbpc

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def serve(directory: Path) -> None:
    """It serves until it is told to stop."""
    process = subprocess.Popen(
        [sys.executable, "-m", "adsbpc", "serve"],
        cwd=directory, env=os.environ | {"ADSBPC_SERVICE_PORT": "0"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    found = re.match(r"adsbpc serves (\S+)", process.stdout.readline())
    assert found is not None
    assert httpx.get(f"{found[1]}/readyz", trust_env=False, timeout=60).is_success
    process.send_signal(signal.SIGTERM)
    notes = process.communicate(timeout=60)[1]
    assert "No operator can sign in yet" not in notes
    assert process.returncode in (0, -signal.SIGTERM)


@pytest.mark.slow
def test_the_commands_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_campaign(tmp_path / "made", 200, 31, 1, "last_touch")
    commands = [
        shlex.split(line.removeprefix("$ adsbpc "), comments=True)
        for block in reversed(blocks("console"))
        for line in block.splitlines()
        if line.startswith("$ adsbpc ")
    ]
    assert {"init", "plan", "release", "report"} <= {command[0] for command in commands}
    for command in commands:
        if command[0] == "serve":
            serve(tmp_path)
            continue
        done = adsbpc(*command, cwd=tmp_path)
        assert done.returncode == 0, (command, done.stderr)
        if command[0] == "init":
            text = made.spec.read_text()
            for file in ("impressions.parquet", "conversions.parquet", "spend.csv"):
                text = text.replace(f'"{file}"', f'"made/{file}"')
            (tmp_path / "spring.toml").write_text(text)
    assert "were released before: nothing was drawn or charged again" in done.stdout
    monkeypatch.chdir(tmp_path)
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), {})
