"""Releases of a campaign every morning, and a report that follows them.

The campaign file and the program come from the environment, so that this file runs anywhere.
"""

from __future__ import annotations

import os
from pathlib import Path

from dagster import Definitions, RetryPolicy, ScheduleDefinition, define_asset_job

from adsbpc_integrations.dagster import release_asset, report_asset

CAMPAIGN = os.environ.get("ADSBPC_CAMPAIGN", "spring.toml")
PROGRAM = [os.environ.get("ADSBPC_PROGRAM", "adsbpc")]

releases = release_asset(CAMPAIGN, program=PROGRAM, retry_policy=RetryPolicy(max_retries=3))
report = report_asset(CAMPAIGN, str(Path(CAMPAIGN).with_name("report.html")), program=PROGRAM)
morning = define_asset_job("morning", selection=[releases, report])

definitions = Definitions(
    assets=[releases, report],
    jobs=[morning],
    schedules=[ScheduleDefinition(job=morning, cron_schedule="30 6 * * *")],
)
