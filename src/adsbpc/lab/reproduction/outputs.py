"""Results of an experiment: rows with what was published, as CSV, JSON and a figure."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from adsbpc.lab.figures import lines_figure, points_figure, write_figure
from adsbpc.lab.optimality import Optimum, compare_with_solver
from adsbpc.lab.reproduction.experiments import Experiment, published
from adsbpc.lab.runs import Run, compute_all
from adsbpc.model import Adjacency

_ACROSS = {"budgets": "rho", "days": "days", "people": "people"}
_AXES = {
    "wrmse": "weighted root mean squared error",
    "max_variance": "largest variance / 10,000",
    "seconds": "seconds",
}
_OPTIMALITY_SLOTS = (2, 4, 6, 8, 10, 12, 14)
# Twice as many corners: the solver takes minutes beyond this.
_MOST_ADD_REMOVE = 10


def compute_experiments(
    experiments: Sequence[Experiment],
    cache: Path | None,
    jobs: int,
    on_progress: Callable[[int, int], None],
) -> dict[str, list[dict[str, Any]]]:
    """Rows of each experiment, in order. A run that several of them need is computed once."""
    runs: dict[str, Run] = {
        point.run.key: point.run for experiment in experiments for point in experiment.points
    }
    found: dict[str, dict[str, Any]] = {}
    for run, row in compute_all(list(runs.values()), cache, jobs):
        found[run.key] = row
        on_progress(len(found), len(runs))
    return {each.name: rows_of(each, found) for each in experiments}


def rows_of(experiment: Experiment, found: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            **found[point.run.key],
            "experiment": experiment.name,
            "setting": point.setting,
            "value": found[point.run.key][experiment.metric] / experiment.unit,
            "published": point.published,
        }
        for point in experiment.points
    ]


def write_outputs(experiment: Experiment, rows: list[dict[str, Any]], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_table(rows, folder / experiment.name)
    mechanisms = list(dict.fromkeys(row["mechanism"] for row in rows))
    axis = _AXES[experiment.metric]
    across = _ACROSS.get(experiment.name)
    if across is None:
        figure = points_figure(experiment.title, rows, axis, mechanisms)
    else:
        figure = lines_figure(experiment.title, rows, across, axis, mechanisms)
    write_figure(figure, folder / experiment.name)


def write_table(rows: list[dict[str, Any]], stem: Path) -> None:
    stem.with_suffix(".json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    with stem.with_suffix(".csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def optimality_rows(seed: int, slots: Sequence[int] = _OPTIMALITY_SLOTS) -> list[dict[str, Any]]:
    """For random bounds between 1 and 10, as in the paper, whose own it does not print."""
    rng = np.random.default_rng(seed)
    found: list[Optimum] = []
    for n in slots:
        bounds = rng.uniform(1, 10, n)
        found.append(compare_with_solver(bounds))
        if n <= _MOST_ADD_REMOVE:
            found.append(compare_with_solver(bounds, Adjacency.ADD_REMOVE))
    return [
        {
            **asdict(optimum),
            "difference": optimum.solver / optimum.closed_form - 1,
            "published": published(
                "optimality_objective", "random_r_1_10", f"n={optimum.slots}", "adsbpc-published"
            )
            if optimum.adjacency == Adjacency.SUBSTITUTE
            else None,
        }
        for optimum in found
    ]
