"""Airflow, Dagster and dbt release the demo's data exactly once, although the task fails or is
killed after the release and runs again. `make test-integrations` makes their environments."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from adsbpc import Campaign
from adsbpc.lab.journeys import make_campaign

ROOT = Path(__file__).parents[2]
INTEGRATIONS = ROOT / "integrations"
ENVIRONMENTS = ROOT / ".venv-integrations"
SLOTS = 3
# How the first attempt ends, after it has released: with an error, or with everything around it.
ENDS = {"fails": "exit 137", "is killed": "kill -9 0"}


@dataclass(frozen=True)
class Stage:
    """A campaign, and a program that releases and then comes to grief once."""

    folder: Path
    campaign: Path
    environment: dict[str, str]

    def run(self, tool: str, *arguments: str, cwd: Path | None = None) -> tuple[int, str]:
        """The exit code and everything that was said."""
        command = [str(ENVIRONMENTS / tool / "bin" / arguments[0]), *arguments[1:]]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            env={**os.environ, **self.environment}, cwd=cwd or self.folder,
            # Whoever is killed takes the whole group along.
            start_new_session=True,
        )  # fmt: skip
        return done.returncode, done.stdout

    @property
    def attempts(self) -> int:
        return len((self.folder / "attempts").read_text().splitlines())

    def check_released_once(self) -> None:
        assert self.attempts >= 2, "it was not retried: this tests nothing"
        with closing(sqlite3.connect(self.folder / "demo-ledger.sqlite")) as connection:
            charges = connection.execute(
                "SELECT slot, part, count(*), sum(pico_rho) FROM adsbpc_entries"
                " WHERE kind = 'charge' GROUP BY slot, part"
            ).fetchall()
            releases = connection.execute(
                "SELECT slot FROM adsbpc_entries WHERE kind = 'release' ORDER BY slot"
            ).fetchall()
        assert releases == [(slot,) for slot in range(1, SLOTS + 1)]
        assert {count for _, _, count, _ in charges} == {1}
        assert 0 < sum(pico_rho for *_, pico_rho in charges) <= 10**12
        assert Campaign.load(self.campaign).audit().held


@pytest.fixture(params=ENDS)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Stage:
    campaign = make_campaign(tmp_path, 300, SLOTS, 1, "last_touch").spec
    program = tmp_path / "adsbpc"
    program.write_text(
        f"""#!/bin/sh
'{sys.executable}' -m adsbpc "$@"; code=$?
[ "$1" = release ] && echo >> '{tmp_path}/attempts'
[ "$1" = release ] && [ "$(wc -l < '{tmp_path}/attempts')" = 1 ] && {ENDS[request.param]}
exit $code
"""
    )
    program.chmod(0o755)
    environment = {
        "ADSBPC_CAMPAIGN": str(campaign),
        "ADSBPC_PROGRAM": str(program),
        "PYTHONPATH": str(INTEGRATIONS / "src"),
    }
    return Stage(tmp_path, campaign, environment)


def until_it_succeeds(attempt: Callable[[], tuple[int, str]], most: int = 2) -> str:
    """A scheduler that was killed is started again by somebody; all that was said."""
    said = ""
    for _ in range(most):
        code, text = attempt()
        said += text
        if code == 0:
            return said
        assert code in (1, -signal.SIGKILL), text[-4_000:]
    raise AssertionError(said[-4_000:])


def test_airflow(stage: Stage) -> None:
    home = stage.folder / "airflow"
    stage.environment.update(
        AIRFLOW_HOME=str(home),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
        AIRFLOW__CORE__DAGS_FOLDER=str(INTEGRATIONS / "examples" / "airflow"),
    )
    code, said = stage.run("airflow", "airflow", "db", "migrate")
    assert code == 0, said
    said = until_it_succeeds(
        lambda: stage.run("airflow", "airflow", "dags", "test", "spring_shoes", "2026-04-02")
    )
    stage.check_released_once()
    assert "released [], 3 before" in said
    # What the program notes for its operator has counts without noise.
    assert "usable" not in said


def test_dagster(stage: Stage) -> None:
    home = stage.folder / "dagster"
    home.mkdir()
    stage.environment.update(DAGSTER_HOME=str(home), DAGSTER_DISABLE_TELEMETRY="yes")
    definitions = str(INTEGRATIONS / "examples" / "dagster" / "definitions.py")
    said = until_it_succeeds(
        lambda: stage.run(
            "dagster", "dagster", "job", "execute", "-f", definitions, "-j", "morning"
        )
    )
    stage.check_released_once()
    assert "released [], 3 before" in said
    assert "usable" not in said
    assert "spring-shoes" in (stage.folder / "report.html").read_text()


def test_dbt(stage: Stage) -> None:
    """From Snowplow's events in a warehouse to a table of what is released."""
    warehouse = stage.folder / "warehouse.duckdb"
    _fill(warehouse, stage)
    project = stage.folder / "project"
    shutil.copytree(INTEGRATIONS / "examples" / "dbt", project)
    packages = project / "packages.yml"
    packages.write_text(packages.read_text().replace("../../dbt", str(INTEGRATIONS / "dbt")))
    stage.environment.update(
        ADSBPC_WAREHOUSE=str(warehouse),
        DBT_PROFILES_DIR=str(project),
        DBT_SEND_ANONYMOUS_USAGE_STATS="false",
    )
    code, said = stage.run("dbt", "dbt", "deps", cwd=project)
    assert code == 0, said
    said = until_it_succeeds(lambda: stage.run("dbt", "dbt", "build", cwd=project))
    stage.check_released_once()
    assert "usable" not in said
    assert "Deprecation" not in said
    with duckdb.connect(warehouse, read_only=True) as connection:
        (rows, slots) = connection.execute(
            "SELECT count(*), max(last_slot) FROM releases"
        ).fetchall()[0]
        kinds = connection.execute(
            "SELECT kind, count(*) FROM adsbpc_impressions GROUP BY kind"
        ).fetchall()
    assert rows > SLOTS
    assert slots == SLOTS
    assert {kind for kind, _ in kinds} == {"click", "view"}


def _fill(warehouse: Path, stage: Stage) -> None:
    """The demo's events as Snowplow has them, and a campaign file that reads what dbt makes."""
    text = stage.campaign.read_text()
    for source in ("impressions", "conversions"):
        text = text.replace(f'"{source}.parquet"', f'"adsbpc_{source}.parquet"')
    # Snowplow's own columns have neither country nor device of the demo.
    measures, spend, workload = (text.index(f"[{each}") for each in ("[measure", "spend", "[work"))
    assert measures < spend < workload
    stage.campaign.write_text(text[:measures] + text[workload:])
    with duckdb.connect(warehouse) as connection:
        connection.execute("CREATE SCHEMA atomic")
        connection.execute(f"""
            CREATE TABLE atomic.events AS
            SELECT 'i' || row_number() OVER () AS event_id, user_id AS domain_userid,
                publisher_id AS mkt_source, "timestamp" AS derived_tstamp,
                "timestamp" AS collector_tstamp, CAST(NULL AS DOUBLE) AS tr_total,
                CASE kind WHEN 'click' THEN 'ad_click' ELSE 'ad_impression' END AS event_name
            FROM '{stage.folder}/impressions.parquet'
            UNION ALL BY NAME
            SELECT event_id, user_id AS domain_userid, "timestamp" AS derived_tstamp,
                "timestamp" AS collector_tstamp, value AS tr_total, 'purchase' AS event_name
            FROM '{stage.folder}/conversions.parquet'""")


# A source that a project adds to those of the package.
OWN = """
{% macro adsbpc_rows_own() %}
select event_id, domain_userid as user_id, mkt_source as publisher_id,
  derived_tstamp as happened_at, collector_tstamp as arrived_at, event_name, tr_total as value
from atomic.events
{% endmacro %}
"""


@pytest.mark.parametrize("source", ["snowplow", "ga4", "own"])
def test_dbt_makes_the_same_events_of_every_source(source: str, tmp_path: Path) -> None:
    warehouse, project = tmp_path / "warehouse.duckdb", tmp_path / "project"
    shutil.copytree(INTEGRATIONS / "dbt", project)
    (project / "profiles.yml").write_text(json.dumps({
        "adsbpc": {"target": "dev", "outputs": {"dev": {"type": "duckdb", "path": str(warehouse)}}}
    }))  # fmt: skip
    (project / "macros" / "own.sql").write_text(OWN)
    settings = project / "dbt_project.yml"
    settings.write_text(settings.read_text() + "\nprofile: adsbpc\n")
    moment, micros = "TIMESTAMPTZ '2026-03-01 10:00:00+00'", 1_772_359_200_000_000
    with duckdb.connect(warehouse) as connection:
        connection.execute("CREATE SCHEMA atomic; CREATE SCHEMA analytics")
        connection.execute(f"""
            CREATE TABLE atomic.events AS SELECT * FROM (VALUES
                ('e1', 'u1', 'P-1', {moment}, {moment}, 'ad_click', NULL),
                ('e2', 'u1', NULL, {moment}, {moment}, 'purchase', 12.5),
                ('e3', 'u2', NULL, {moment}, {moment}, 'page_view', NULL)
            ) AS t(event_id, domain_userid, mkt_source, derived_tstamp, collector_tstamp,
                event_name, tr_total)""")
        connection.execute(f"""
            CREATE TABLE analytics.events AS SELECT * FROM (VALUES
                ('u1', 'P-1', {micros}, 'ad_click', NULL),
                ('u1', NULL, {micros}, 'purchase', 12.5),
                ('u2', NULL, {micros}, 'page_view', NULL)
            ) AS t(user_pseudo_id, traffic_source_source, event_timestamp, event_name,
                event_value_in_usd)""")
    stage = Stage(tmp_path, tmp_path, {
        "DBT_PROFILES_DIR": str(project), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
    })  # fmt: skip
    code, said = stage.run(
        "dbt", "dbt", "build", "--vars", json.dumps({"adsbpc_source": source}), cwd=project
    )
    assert code == 0, said
    with duckdb.connect(warehouse, read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        impressions = connection.execute(
            'SELECT user_id, publisher_id, advertiser_id, CAST("timestamp" AS VARCHAR), kind'
            " FROM adsbpc_impressions"
        ).fetchall()
        conversions = connection.execute(
            'SELECT user_id, advertiser_id, CAST("timestamp" AS VARCHAR), value'
            " FROM adsbpc_conversions"
        ).fetchall()
    assert impressions == [("u1", "P-1", "Ad-1", "2026-03-01 10:00:00+00", "click")]
    assert conversions == [("u1", "Ad-1", "2026-03-01 10:00:00+00", 12.5)]


def test_a_wrong_campaign_file_is_not_retried(tmp_path: Path) -> None:
    """In plain Python: what the fronts tell their schedulers."""
    sys.path.insert(0, str(INTEGRATIONS / "src"))
    from adsbpc_integrations.program import Program, ProgramError, UsageError

    program = Program([sys.executable, "-m", "adsbpc"])
    with pytest.raises(UsageError, match="no such campaign file"):
        program.release(str(tmp_path / "missing.toml"))
    with pytest.raises(UsageError, match="Install adsbpc"):
        Program(["no-such-program"]).status("campaign.toml")
    campaign = make_campaign(tmp_path, 300, SLOTS, 1, "last_touch").spec
    (tmp_path / "conversions.parquet").unlink()
    with pytest.raises(ProgramError, match="found no file") as refused:
        program.release(str(campaign))
    assert not isinstance(refused.value, UsageError)
