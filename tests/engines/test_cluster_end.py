"""The end of a program that used a cluster: Spark is stopped in order, and nobody complains."""

from __future__ import annotations

import subprocess
import sys

import pytest

from adsbpc.engines.spark_session import find_java

_PROGRAM = """
from adsbpc.engines.spark_engine import SparkEngine
options = {"spark.master": "local-cluster[1,1,1024]", "spark.sql.shuffle.partitions": 1}
engine = SparkEngine(options)
print(engine.rows("count", "SELECT count(*) FROM range(10)"))
engine.close()
"""


@pytest.mark.slow
def test_a_program_ends_without_tracebacks_of_its_cluster() -> None:
    if find_java() is None:
        pytest.skip("no Java: clusters are NOT TESTED. Install Java 17")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[(10,)]\n"
    for complaint in ("Exception", "Traceback", "ERROR Worker", "ERROR TaskScheduler"):
        assert complaint not in done.stderr, done.stderr
