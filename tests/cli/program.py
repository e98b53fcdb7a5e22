"""The program as people run it: a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def adsbpc(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "adsbpc", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=cwd,
        env={**os.environ, **environment},
    )  # fmt: skip
