"""A campaign on executors that are processes of their own: fit, releases and audit, and the
integers of DuckDB."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from adsbpc import Campaign
from tests.campaign.files import ADSBPC, FIXED, edit
from tests.campaign.test_fits import with_fit

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# A process of its own, because one that has a Spark already gets no other.
_PROGRAM = """
import json, sys
from pathlib import Path
from adsbpc import Campaign
from adsbpc.campaign import attribute, contributed
from adsbpc.engines import open_engine
from adsbpc.model import Fit, load_spec

on_cluster, on_one = (load_spec(Path(each)) for each in sys.argv[1:])
campaign = Campaign.load(Path(sys.argv[1]))
released = [each for slot in (1, 2, 3) for each in campaign.release(slot)]
(fit,) = [each.release.fit for each in released if each.release.fit]
totals = []
for spec in (on_cluster, on_one):
    engine = open_engine(spec.events.engine, spec.engine_options)
    for slot in (1, 2, 3):
        with contributed(attribute(spec, engine, slot, fit), spec.measures[0]) as rows:
            totals.append([int(each) for each in rows.totals(slot)])
    if engine.name == "spark":
        executors = engine._session.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    engine.close()
print(json.dumps({
    "slots": [each.release.slot for each in released],
    "executors": executors,
    "cluster": totals[:3],
    "duckdb": totals[3:],
}))
"""
_OPTIONS = """
"spark.master" = "local-cluster[2,1,2048]"
"spark.executor.memory" = "1g"
"spark.driver.host" = "127.0.0.1"
"""


@pytest.mark.parametrize("mechanism", ["adsbpc", "personal-budget"])
def test_fit_releases_and_audit_on_separate_spark_executors(mechanism: str, tmp_path: Path) -> None:
    privacy = FIXED if mechanism == "personal-budget" else ADSBPC
    on_cluster, on_one = (
        with_fit(tmp_path / name, engine=engine, options=options, privacy=privacy)
        for name, engine, options in (
            ("cluster", "spark", _OPTIONS),
            ("one", "duckdb", "threads = 1"),
        )
    )
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, on_cluster, on_one],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["slots"], found["executors"]) == ([1, 2, 3], 2)
    assert found["cluster"] == found["duckdb"]
    assert sum(map(sum, found["duckdb"])) > 0
    assert Campaign.load(on_cluster).audit().held
    # And goes on with another engine, from the same books.
    edit(on_cluster, 'engine = "spark"', 'engine = "duckdb"')
    edit(on_cluster, _OPTIONS, "threads = 1")
    assert Campaign.load(on_cluster).release(4)[0].release.slot == 4
