"""`adsbpc lift`, `adsbpc lab lift` and `adsbpc demo --lift`, as people run them."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import duckdb
import pytest

from adsbpc.model.arms import KeyedArms
from tests.campaign.trial import KEY, KEYED, TABLE, trial, write_trial
from tests.cli.program import adsbpc, in_a_process

USERS = ["ada", "Zoë", "o'neil \\ co", "漢字 😀"]
ARMS = KeyedArms.of(KEY, {"treatment": 0.6, "control": 0.3})


def test_a_key_is_written_once_and_for_the_owner_alone(tmp_path: Path) -> None:
    done = adsbpc("lift", "key", "new.key", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    key = (tmp_path / "new.key").read_text()
    assert KeyedArms.of(key.strip(), {"a": 0.5, "b": 0.5})
    assert stat.S_IMODE((tmp_path / "new.key").stat().st_mode) == 0o600
    again = adsbpc("lift", "key", "new.key", cwd=tmp_path)
    assert again.returncode != 0
    assert "must not be lost" in again.stderr
    assert (tmp_path / "new.key").read_text() == key
    assert key.strip() not in done.stdout + done.stderr + again.stderr


def test_people_are_in_the_same_arm_by_command_and_by_sql(tmp_path: Path) -> None:
    file = write_trial(tmp_path, trial(1))
    done = adsbpc("lift", "assign", file, *USERS, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = {row["user_id"]: row["arm"] for row in map(json.loads, done.stdout.splitlines())}
    assert found == {user: ARMS.arm_of(user) for user in USERS}
    text = adsbpc("lift", "assign", file, "--sql", "duckdb", cwd=tmp_path).stdout
    assert KEY not in text
    rows = duckdb.execute(
        f"SELECT user_id, {text} FROM (SELECT unnest($users) AS user_id)",
        {"users": USERS, "key": KEY},
    ).fetchall()
    assert dict(rows) == found
    spark = adsbpc("lift", "assign", file, "--sql", "spark", cwd=tmp_path).stdout
    assert "sha2(concat(:key, ':', user_id), 256)" in spark
    script = adsbpc("lift", "assign", file, "--javascript", cwd=tmp_path).stdout
    assert 'export const LIMITS = [["treatment", "9999999999999"]' in script
    assert KEY not in script
    assert len(script.splitlines()) <= 45


@pytest.mark.parametrize(
    ("lift", "arguments", "message"),
    [
        (KEYED, ["--sql", "duckbd"], 'Did you mean "duckdb"?'),
        (KEYED, ["--sql", "spark", "--javascript"], "give --sql or --javascript, not both"),
        (KEYED, [""], "a user id is empty"),
        (TABLE, ["ada"], "takes arms from the table 'arms.csv': look people up there"),
    ],
)
def test_what_makes_no_sense_is_told(
    lift: str, arguments: list[str], message: str, tmp_path: Path
) -> None:
    file = write_trial(tmp_path, trial(1), lift)
    done = adsbpc("lift", "assign", file, *arguments, cwd=tmp_path)
    assert done.returncode != 0
    assert message in " ".join(done.stderr.split())


def test_trials_are_repeated(tmp_path: Path) -> None:
    done = adsbpc(
        "lab", "lift", "--trials", 3, "--people", 4_000, "--slots", 5, "--rho", "0.5",
        "--plot", "price", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    coverage = [row for row in rows if row["figure"] == "coverage"]
    assert [row["scenario"] for row in coverage] == [
        "no effect", "small effect", "large effect", "rare conversions", "heavy-tailed value",
    ]  # fmt: skip
    assert all(row["trials"] == 3 for row in coverage)
    (price,) = (row for row in rows if row["figure"] == "price")
    assert 0 < price["wider_by_one_release"] < price["wider_by_daily_releases"]
    assert (tmp_path / "price.png").read_bytes().startswith(b"\x89PNG")
    wrong = adsbpc("lab", "lift", "--scenarios", "no efect", cwd=tmp_path)
    assert 'Did you mean "no effect"?' in wrong.stderr


@pytest.mark.slow
def test_the_demo_knows_what_ads_caused(tmp_path: Path) -> None:
    """From events over releases to the page."""
    done = in_a_process(
        "demo", "--lift", "--directory", "demo", "--users", 20_000, "--slots", 3, "--seed", 4,
        "--json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["caused"].keys() == {
        "buyers", "purchases", "buyers by search", "purchases by search",
    }  # fmt: skip
    assert 0 < made["caused"]["purchases by search"] < made["caused"]["purchases"]
    done = adsbpc("report", "demo/campaign.toml", "--out", "r.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "r.json").read_text())
    newest = {
        (row["measure"], row["arm"], row["control"]): row
        for row in found["lift"]
        if row["slot"] == 3
    }
    assert len(newest) == 2 * 3
    for name, control in (("", "control"), (" by search", "no_search")):
        for measure in ("buyers", "purchases"):
            row = newest[measure, "treatment", control]
            true = made["caused"][measure + name]
            # Four standard errors: once in ten thousand seeds, and the noise is not seeded.
            assert abs(row["incremental"] - true) < 4 * row["standard_error"]
    assert not found["balance"]["is_bad"]
    assert "What the campaign caused" in (tmp_path / "demo" / "report.html").read_text()
