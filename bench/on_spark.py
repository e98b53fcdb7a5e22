"""`make bench-spark`: days of made-up events on a standalone Spark cluster of this machine.

It has one worker, then two, of one core each; the floor is DuckDB with as many threads. Prints one
JSON object, as `make bench` does; whatever was started is stopped. How days of more conversions
grow, `bench.spark_growth` measures.

The first day plans the campaign, and is not measured.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from adsbpc.campaign import Campaign
from adsbpc.model import CampaignSpec
from bench.cases import events_content
from bench.data import Sizes, make_events
from bench.measured import Measured, peak_mib, seconds_of
from bench.spark_cluster import started_cluster

_DAYS = 3
# Of the full size of `make bench`: a million impressions, a hundred thousand conversions.
_SCALE = 0.05


def _seconds_of_days(data: Path, engine: dict[str, Any]) -> float:
    """Of every day after the first, with everything that a release does."""
    with TemporaryDirectory(dir=data) as directory:
        content = events_content(data, "last_touch")
        content["events"]["engine"] = engine["name"]
        content["engine"] = {"options": engine["options"]}
        content["privacy"] |= {"mechanism": "personal-budget"}
        campaign = Campaign(CampaignSpec.model_validate({**content, "directory": Path(directory)}))
        campaign.release(1)
        seconds = seconds_of(lambda: [campaign.release(day) for day in range(2, _DAYS + 1)])
        findings = campaign.audit()
        if not findings.held:
            raise RuntimeError(f"the audit fails: {findings.broken}")
        return seconds / (_DAYS - 1)


def _one_case(data: Path, workers: int) -> Measured:
    floor = _seconds_of_days(data, {"name": "duckdb", "options": {"threads": workers}})
    with TemporaryDirectory(dir=data) as folder, started_cluster(Path(folder), workers) as master:
        options = {
            "spark.master": master,
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "1g",
        }
        seconds = _seconds_of_days(data, {"name": "spark", "options": options})
        from pyspark import SparkContext

        # Before its workers are.
        SparkContext.getOrCreate().stop()
    return Measured.of(floor, seconds, peak_mib())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.on_spark", description=__doc__)
    parser.add_argument("--scale", type=float, default=_SCALE, help="share of the full size")
    parser.add_argument("--data", type=Path, default=Path(".bench"), help="where to keep the data")
    options = parser.parse_args()
    # Whoever ends this program ends the cluster, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    results = {}
    sizes = Sizes().scaled(options.scale)
    data = (options.data / f"spark-{options.scale:g}").absolute()
    if not (data / "events.done").exists():
        (data / "events").mkdir(parents=True, exist_ok=True)
        make_events(data / "events", sizes)
        (data / "events.done").touch()
    for workers in (1, 2):
        name = f"day_of_{sizes.conversions}_conversions_on_{workers}_spark_workers"
        print(f"running {name}", file=sys.stderr)
        results[name] = asdict(_one_case(data, workers))
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
