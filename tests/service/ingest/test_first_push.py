"""The first sender of a fresh server waits for nothing that the next one does not wait for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import json, sys
from pathlib import Path
import httpx
from adsbpc import Client
from tests.service.clocks import START, SetClock
from tests.service.pushed import IMPRESSION
from tests.service.running import running, settings_in

with running(settings_in(Path(sys.argv[1])), SetClock(START)) as server:
    publisher = server.client("publisher", "P-1")
    publisher.whoami()
    before = set(sys.modules)
    assert publisher.push_impressions([IMPRESSION])["accepted"] == 1
    print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_a_push_imports_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True,
    )  # fmt: skip
    imported = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert imported & {"pandas", "pyarrow", "numpy", "adsbpc"} == set(), imported
