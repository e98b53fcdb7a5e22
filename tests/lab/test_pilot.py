"""A pilot finds a guess that its people fit under, and says what others would cost."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from adsbpc.cli.main import app
from adsbpc.errors import SourceError, SpecError
from adsbpc.lab.pilot import try_out
from adsbpc.model import load_spec
from tests.groceries import DEPARTMENTS, purchases, write_groceries


@pytest.fixture
def shop(tmp_path: Path) -> tuple[Path, Path]:
    """A campaign file, and purchases of other people."""
    bought, pilot = purchases(7), tmp_path / "pilot.parquet"
    rows = {
        "user_id": bought.person,
        "slot": bought.day + 1,
        "publisher_id": [DEPARTMENTS[number] for number in bought.department],
        "credit": [1.0] * bought.day.size,
    }
    pq.write_table(pa.table(rows), pilot)
    return write_groceries(tmp_path, purchases(1)), pilot


def test_it_finds_the_guess_between_noise_and_cut(shop: tuple[Path, Path]) -> None:
    file, pilot = shop
    tried = try_out(load_spec(file), pilot, (10, 100, 1_000))
    small, good, large = tried.guesses
    assert tried.best == good
    assert small.cut > 10 * good.cut >= large.cut == 0
    # Of what little is let in, much is added back, with noise of its own.
    assert good.noise < large.noise
    assert (tried.slots, tried.people) == (31, len(set(purchases(7).person)))


def test_a_guess_is_for_the_campaigns_own_length(shop: tuple[Path, Path]) -> None:
    """In a campaign of four months people convert four times as often as in the pilot's one."""
    file, pilot = shop
    (of_a_month,) = try_out(load_spec(file), pilot, (100,)).guesses
    file.write_text(file.read_text().replace("slots = 31", "slots = 124"))
    (of_four,) = try_out(load_spec(file), pilot, (400,)).guesses
    assert of_four.error == pytest.approx(of_a_month.error)


@pytest.mark.slow
def test_the_command(shop: tuple[Path, Path]) -> None:
    file, pilot = shop
    told = CliRunner().invoke(app, ["plan", str(file), "--pilot", str(pilot)])
    assert told.exit_code == 0
    assert "Write heavy_user = 100 under [privacy.personal_budget]" in told.stdout
    found = CliRunner().invoke(app, ["plan", str(file), "--pilot", str(pilot), "--json"])
    assert json.loads(found.stdout)["pilot"]["heavy_user"] == 100


def test_what_a_pilot_is_not_for(shop: tuple[Path, Path]) -> None:
    file, pilot = shop
    with pytest.raises(SourceError, match="'slot' too"):
        try_out(load_spec(file), file.parent / "conversions.parquet")
    file.write_text(file.read_text() + 'mechanism = "adsbpc"')
    with pytest.raises(SpecError, match="a parameter of personal budgets"):
        try_out(load_spec(file), pilot)
