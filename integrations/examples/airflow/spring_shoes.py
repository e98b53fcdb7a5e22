"""Every morning: wait until yesterday is over, release it, write the report.

The campaign file and the program come from the environment, so that this file runs anywhere.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from airflow.sdk import DAG

from adsbpc_integrations.airflow import ReleaseOperator, SlotSensor

CAMPAIGN = os.environ.get("ADSBPC_CAMPAIGN", "spring.toml")
PROGRAM = [os.environ.get("ADSBPC_PROGRAM", "adsbpc")]

with DAG(
    "spring_shoes",
    schedule="30 6 * * *",
    start_date=datetime(2026, 3, 2),
    catchup=False,
    # One at a time: two would be safe, and one of them in vain.
    max_active_runs=1,
):
    over = SlotSensor(task_id="slot_is_over", campaign=CAMPAIGN, program=PROGRAM, mode="reschedule")
    released = ReleaseOperator(
        task_id="release",
        campaign=CAMPAIGN,
        program=PROGRAM,
        retries=3,
        retry_delay=timedelta(seconds=1),
    )
    over >> released
