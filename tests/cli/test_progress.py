"""How far long work is, where no terminal shows a bar."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from adsbpc.cli import console
from adsbpc.cli.main import app
from tests.campaign.files import write_campaign
from tests.campaign.test_series import write_series


def test_a_log_gets_a_line_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_campaign(tmp_path)
    monkeypatch.setattr(console, "_CALM_SECONDS", 0.0)
    told = CliRunner().invoke(app, ["release", str(file)]).stderr
    assert [f"Releasing slots: {slot} of 5" in told for slot in range(1, 6)] == [True] * 5


def test_a_log_of_a_campaign_without_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows how many slots there are."""
    file = write_series(tmp_path)
    monkeypatch.setattr(console, "_CALM_SECONDS", 0.0)
    done = CliRunner().invoke(app, ["release", str(file), "--through", "2026-02-28"])
    assert done.exit_code == 0, done.exception
    told = [line for line in done.stderr.splitlines() if line.startswith("Releasing")]
    assert told == ["Releasing slots: 1", "Releasing slots: 2"]


def test_short_work_says_nothing(tmp_path: Path) -> None:
    file = write_campaign(tmp_path)
    CliRunner().invoke(app, ["release", str(file)])
    assert CliRunner().invoke(app, ["release", str(file)]).stderr == ""
