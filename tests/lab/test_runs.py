"""Runs are remembered, resumed and spread over processes without changing their results."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc.errors import EngineError, SourceError, SpecError
from adsbpc.lab import runs as runs_module
from adsbpc.lab.reproduction.experiments import EXPERIMENTS, Size, experiment_named
from adsbpc.lab.runs import Run, compute, compute_all, version_of

RUNS = [Run("facebook", name, slots=5, trials=2) for name in ("ipa", "bin", "adsbpc")]


def without_time(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "seconds"}


def test_finished_runs_are_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = dict(pair for pair in _keyed(compute_all(RUNS[:2], tmp_path)))

    def computed(run: Run) -> dict[str, Any]:
        assert run.mechanism == "adsbpc", "computed again"
        return compute(run)

    monkeypatch.setattr(runs_module, "compute", computed)
    again = dict(_keyed(compute_all(RUNS, tmp_path)))
    assert {key: again[key] for key in first} == first
    assert len(again) == 3
    # A damaged file of the cache is computed anew.
    (tmp_path / f"{RUNS[2].key}.json").write_text("{")
    assert len(dict(_keyed(compute_all(RUNS, tmp_path)))) == 3


def _keyed(found: Any) -> Any:
    return ((run.key, row) for run, row in found)


def test_processes_find_the_same() -> None:
    alone = {key: without_time(row) for key, row in _keyed(compute_all(RUNS))}
    together = {key: without_time(row) for key, row in _keyed(compute_all(RUNS, jobs=2))}
    assert alone == together


def test_a_run_is_known_by_everything_that_matters() -> None:
    base = RUNS[0]
    others = [
        replace(base, rho=2.0), replace(base, seed=2), replace(base, trials=3),
        replace(base, adjacency="substitute"), replace(base, options={"times": 2.0}),
        replace(base, queries="sliding"), replace(base, copies=2), replace(base, users=3),
    ]  # fmt: skip
    assert len({run.key for run in (base, *others)}) == 9


def test_own_data(tmp_path: Path) -> None:
    table = {
        "user_id": [f"u{k % 40}" for k in range(200)],
        "slot": [1 + k % 6 for k in range(200)],
        "publisher_id": [f"P-{k % 3}" for k in range(200)],
        "weight": [1.0] * 200,
    }
    pq.write_table(pa.table(table), tmp_path / "own.parquet")
    row = compute(Run("own", "ipa", slots=0, trials=2, data=str(tmp_path / "own.parquet")))
    assert (row["slots"], row["users"], row["publishers"]) == (6, 40, 3)
    assert row["gs"] == 5
    assert row["wrmse"] > 0


def test_own_data_that_changes_under_its_name(tmp_path: Path) -> None:
    """Same name, same size, same time: other contents are other results."""
    file, found = tmp_path / "own.csv", []
    for weight in ("1", "9"):
        lines = ["user_id,slot,publisher_id,weight", *(f"u{k},1,P,{weight}" for k in range(20))]
        file.write_text("\n".join(lines))
        os.utime(file, (1, 1))
        run = Run("own", "ipa", slots=1, trials=2, data=str(file), data_version=version_of(file))
        found += [row for _, row in compute_all([run], tmp_path / "cache")]
    assert found[1]["gs"] == 9 * found[0]["gs"]


def test_results_of_other_code_are_not_recalled(monkeypatch: pytest.MonkeyPatch) -> None:
    before = RUNS[0].key
    monkeypatch.setattr(runs_module, "_edition", lambda: "another")
    assert RUNS[0].key != before


def test_options_of_mechanisms_that_have_none() -> None:
    with pytest.raises(SpecError, match="'stream' has no options"):
        compute(replace(RUNS[0], mechanism="stream", options={"times": 2}))


def test_errors_come_through_from_other_processes() -> None:
    for error in (
        SourceError("here", "this", "that", "Do it."),
        EngineError("duckdb", "step", "cause", "SELECT"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))


def test_every_experiment_has_what_the_paper_printed() -> None:
    """Each printed figure of the result tables stands beside exactly one run."""
    size = Size(trials=1)
    printed = dict.fromkeys(EXPERIMENTS, 0)
    for name in EXPERIMENTS:
        points = experiment_named(name, size).points
        assert points
        printed[name] = sum(point.published is not None for point in points)
    assert printed == {
        "prefix": 42, "sliding": 42, "people": 0, "doubled": 7, "facebook": 0, "budgets": 0,
        "days": 0, "n365": 12, "time": 12, "shares": 10, "scales": 10, "thresholds": 10,
        "constant-bound": 12, "daily-quantile": 12,
    }  # fmt: skip
