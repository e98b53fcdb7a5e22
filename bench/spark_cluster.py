"""A Spark cluster on this machine: a master and workers, processes of their own, on loopback, from
the jars that pyspark brings."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def started_cluster(folder: Path, workers: int = 1, memory: str = "1g") -> Iterator[str]:
    """The address of a master whose workers have one core each. All of it ends with the block."""
    with ExitStack() as stack:
        master = _started(stack, "Master", r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            given = ("--cores", "1", "--memory", memory, "--work-dir", str(folder / str(number)))
            _started(stack, "Worker", r"Successfully registered with master", *given, master)
        yield master


def _started(stack: ExitStack, role: str, sign: str, *given: str) -> str:
    import pyspark

    home = Path(pyspark.__file__).parent
    process = subprocess.Popen(
        [home / "bin/spark-class", f"org.apache.spark.deploy.{role.lower()}.{role}",
         "--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *given],
        env={**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    stack.callback(process.wait)
    stack.callback(process.terminate)
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        found = re.search(sign, line)
        if found:
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return found[found.lastindex or 0]
    raise RuntimeError(f"the {role.lower()} does not start:\n{''.join(said)}")
