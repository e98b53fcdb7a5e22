"""`python -m bench.demo_on_spark`: seconds of every day of the demo, in one run on Spark and in one
on DuckDB, as one JSON object.

On Spark the first day starts the session. Days on which the past of personal budgets is let in
again stand out.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from adsbpc.campaign import Campaign
from adsbpc.lab.journeys import make_campaign
from adsbpc.model import CampaignSpec
from bench.measured import seconds_of

# What `adsbpc demo` makes up by itself.
_USERS, _SLOTS, _SEED, _MODEL = 40_000, 31, 1, "uniform"
_ENGINES: dict[str, dict[str, Any]] = {
    "spark": {"spark.master": "local[2]"},
    "duckdb": {"threads": 2},
}


def _seconds_of_days(engine: str, days: int) -> list[float]:
    with TemporaryDirectory() as folder:
        made = make_campaign(Path(folder), _USERS, _SLOTS, _SEED, _MODEL)
        content = tomllib.loads(made.spec.read_text())
        content["events"]["engine"] = engine
        content["engine"] = {"options": _ENGINES[engine]}
        content["directory"] = made.spec.parent
        campaign = Campaign(CampaignSpec.model_validate(content))
        releases = [partial(campaign.release, day) for day in range(1, days + 1)]
        return [round(seconds_of(release), 2) for release in releases]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.demo_on_spark", description=__doc__)
    parser.add_argument("--days", type=int, default=13, help="how many of the month")
    days = parser.parse_args().days
    found = {}
    for engine in _ENGINES:
        print(f"running {days} days on {engine}", file=sys.stderr)
        found[engine] = _seconds_of_days(engine, days)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
