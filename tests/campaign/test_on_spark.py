"""Releases on Spark: the same totals before noise, and a campaign from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adsbpc import Campaign
from adsbpc.campaign import attribute, contributed
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import load_spec
from tests.campaign.files import FIXED, PERSONAL, write_campaign
from tests.conftest import SPARK_OPTIONS, open_test_engine

MOST_JOBS = {"adsbpc": 9, "personal-budget": 13}


@pytest.mark.spark
def test_the_same_totals_before_noise_on_duckdb_and_spark(tmp_path: Path) -> None:
    """Through the steps of a release, slot by slot, an empty one included."""
    spec = load_spec(write_campaign(tmp_path))
    found: dict[str, list[list[int]]] = {}
    for name in ("duckdb", "spark"):
        engine = open_test_engine(name)
        found[name] = []
        for slot in (2, 3):
            credits = attribute(spec, engine, slot)
            with contributed(credits, spec.measures[0]) as contributions:
                found[name] += [
                    contributions.totals(slot, bound).tolist() for bound in (None, UNIT, 2 * UNIT)
                ]
                found[name].append(contributions.histogram(slot, [UNIT, 2 * UNIT]).tolist())
        engine.close()
    assert found["duckdb"] == found["spark"]
    assert sum(map(sum, found["duckdb"])) > 0


def options() -> str:
    return "\n".join(f'"{key}" = {json.dumps(value)}' for key, value in SPARK_OPTIONS.items())


@pytest.mark.spark
def test_a_campaign_on_spark(tmp_path: Path) -> None:
    file = write_campaign(tmp_path, 2, engine="spark", options=options(), privacy=PERSONAL)
    released = Campaign.load(file).release()
    assert [one.release.slot for one in released] == [1, 2]
    assert Campaign.load(file).release(2)[0].text == released[1].text


@pytest.mark.spark
@pytest.mark.parametrize("mechanism", sorted(MOST_JOBS))
def test_a_release_takes_few_jobs(mechanism: str, tmp_path: Path) -> None:
    """As Spark counts them. Nearly all of a small slot's time goes into them; they may fall, and
    whoever makes them grow has to say why. With a fixed allowance no noise decides on them."""
    from pyspark import SparkContext

    privacy = FIXED if mechanism == "personal-budget" else ""
    file = write_campaign(tmp_path, 3, engine="spark", options=options(), privacy=privacy)
    campaign = Campaign.load(file)
    campaign.release(1)
    jvm_context = SparkContext.getOrCreate()._jsc.sc()
    jobs = []
    for slot in (2, 3):
        before = jvm_context.dagScheduler().numTotalJobs()
        campaign.release(slot)
        jobs.append(jvm_context.dagScheduler().numTotalJobs() - before)
    assert min(jobs) > 0
    assert max(jobs) <= MOST_JOBS[mechanism], jobs
