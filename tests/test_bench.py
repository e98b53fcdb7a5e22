"""The benchmarks run and print what machines rely on. Nothing is asserted about time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_every_case_runs_on_a_small_scale(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench", "--scale", "0.001", "--data", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    results = json.loads(done.stdout)
    assert {"attribution_last_touch", "attribution_uniform", "contributions_by_slot"} <= set(
        results
    )
    for case in results.values():
        assert set(case) == {"ratio", "floor_seconds", "seconds", "peak_mib"}
        assert all(value > 0 for value in case.values())


@pytest.mark.slow
def test_growth_has_a_row_for_each_size() -> None:
    command = [sys.executable, "-m", "bench.growth", "--sizes", "20000", "40000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    _, _, *rows = done.stdout.splitlines()
    assert [row.split(" | ")[0] for row in rows] == ["| 20,000", "| 40,000"]
