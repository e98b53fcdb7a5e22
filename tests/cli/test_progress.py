"""How far long work is, where no terminal shows a bar."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from adsbpc.cli import console
from adsbpc.cli.main import app
from tests.campaign.files import write_campaign


def test_a_log_gets_a_line_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_campaign(tmp_path)
    monkeypatch.setattr(console, "_CALM_SECONDS", 0.0)
    told = CliRunner().invoke(app, ["release", str(file)]).stderr
    assert [f"Releasing slots: {slot} of 5" in told for slot in range(1, 6)] == [True] * 5


def test_short_work_says_nothing(tmp_path: Path) -> None:
    file = write_campaign(tmp_path)
    CliRunner().invoke(app, ["release", str(file)])
    assert CliRunner().invoke(app, ["release", str(file)]).stderr == ""
