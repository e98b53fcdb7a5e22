"""Computes the tables and pictures of docs/personal-budgets.md: `make personal-budgets`.

With names of tables, only those: `python docs/personal_budgets.py pipelinedp`.
"""

from __future__ import annotations

import json
import sys
from math import exp, fsum, log
from pathlib import Path
from typing import Any

from pages import between

from adsbpc.lab.figures import points_figure, write_figure
from adsbpc.lab.runs import Run, compute_all

ROOT = Path(__file__).parent
FOLDER = ROOT / "personal-budgets"
PAGE = ROOT / "personal-budgets.md"
OURS, BEST = "personal-budget", "personal-budget-oracle"
MECHANISMS = ("adsbpc", "adsbpc-oracle", OURS, BEST)
# People and trials; None is the paper's number of people.
SETS: dict[str, tuple[int | None, int]] = {
    "criteo": (None, 8),
    "zipf": (100_000, 5),
    "normal": (100_000, 5),
    "uniform": (100_000, 5),
    "facebook": (None, 50),
}
STREAMS = ("daily", "daily-loyal", "late", "heavy", "surge")
# Personal budgets by rows, in the lab only so far; shapes that nothing was tuned for beside them.
BY_ROWS = "personal-budget-by-rows"
SHAPES: dict[str, tuple[int | None, int]] = {
    "unlike": (100_000, 2),
    "middling": (200_000, 2),
    "season": (100_000, 2),
    "bursts": (100_000, 2),
    "small": (5_000, 10),
    "baskets": (2_500, 10),
}
YEAR: dict[str, tuple[int | None, int]] = {
    "criteo": (100_000, 2),
    "facebook": (None, 4),
}
# PipelineDP in plain Python takes some ten seconds for a million pairs of a user and a publisher.
ONE_SHOT = (OURS, "pipelinedp", "pipelinedp-guess", "pipelinedp-oracle")
ONE_SHOT_SETS: dict[str, tuple[int | None, int]] = {
    "criteo": (100_000, 5),
    "criteo-first": (100_000, 5),
    "criteo-uniform": (100_000, 5),
    "zipf": (20_000, 3),
    "normal": (20_000, 2),
    "uniform": (20_000, 2),
    "facebook": (None, 50),
    **dict.fromkeys(STREAMS, (10_000, 10)),
}


def runs() -> dict[str, list[Run]]:
    return {
        "sets": [
            Run(name, mechanism, users=users, trials=trials)
            for name, (users, trials) in SETS.items()
            for mechanism in MECHANISMS
        ],
        "streams": [
            Run(name, mechanism, users=10_000, trials=5)
            for name in STREAMS
            for mechanism in MECHANISMS
        ],
        "year": [
            Run(name, mechanism, users=users, trials=trials, slots=365, queries=queries)
            for name, (users, trials) in YEAR.items()
            for queries in ("prefix", "sliding", "slot")
            for mechanism in ("adsbpc", "adsbpc-oracle", OURS)
        ],
        "rows": [
            *(
                Run(name, BY_ROWS, users=users, trials=min(trials // 2, 10))
                for name, (users, trials) in SETS.items()
            ),
            *(Run(name, BY_ROWS, users=10_000, trials=5) for name in STREAMS),
            *(
                Run(name, mechanism, users=users, trials=trials)
                for name, (users, trials) in SHAPES.items()
                for mechanism in ("adsbpc-oracle", OURS, BY_ROWS)
            ),
        ],
        "pipelinedp": [
            Run(name, mechanism, users=users, trials=trials, queries="end")
            for name, (users, trials) in ONE_SHOT_SETS.items()
            for mechanism in ONE_SHOT
        ],
    }


def main(parts: list[str]) -> None:
    results = FOLDER / "results.json"
    tables: dict[str, list[dict[str, Any]]] = json.loads(results.read_text(encoding="utf-8"))
    for part, asked in runs().items():
        if parts and part not in parts:
            continue
        found = {}
        for run, row in compute_all(asked, FOLDER / "cache", jobs=2):
            found[run.key] = row
            sys.stderr.write(f"{part}: {len(found)} of {len(asked)}\r")
        tables[part] = [found[run.key] for run in asked]
        make = {
            "sets": _sets, "streams": _streams, "year": _year, "rows": _rows,
            "pipelinedp": _one_shot,
        }[part]  # fmt: skip
        # What the first tables have of the same data is not computed again.
        beside = tables["sets"] + tables["streams"] if part == "rows" else []
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(between(text, part, make(beside + tables[part])), encoding="utf-8")
    results.write_text(json.dumps(tables, indent=1), encoding="utf-8")
    _picture(tables["sets"] + tables["streams"])


def _by(rows: list[dict[str, Any]], *keys: str) -> dict[tuple[Any, ...], dict[str, dict[str, Any]]]:
    grouped: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(tuple(row[key] for key in keys), {})[row["mechanism"]] = row
    return grouped


def _sets(rows: list[dict[str, Any]], mean: bool = True) -> str:
    lines = [
        "| data | people | publishers | AdsBPC | AdsBPC, best bound in hindsight "
        "| personal budgets | of AdsBPC | of AdsBPC in hindsight | of itself in hindsight |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    ratios = []
    for (name,), of in _by(rows, "dataset").items():
        error = {mechanism: row["wrmse_closed_form"] for mechanism, row in of.items()}
        ratios.append(error[OURS] / error["adsbpc-oracle"])
        lines.append(
            f"| {name} | {of[OURS]['users']:,} | {of[OURS]['publishers']:,} "
            f"| {error['adsbpc']:.1f} | {error['adsbpc-oracle']:.1f} | **{error[OURS]:.2f}** "
            f"| {error[OURS] / error['adsbpc']:.2f} | {ratios[-1]:.2f} "
            f"| {error[OURS] / error[BEST]:.2f} |"
        )
    if mean:
        overall = exp(fsum(map(log, ratios)) / len(ratios))
        lines.append(f"| geometric mean | | | | | | | **{overall:.2f}** | |")
    return "\n".join(lines)


def _streams(rows: list[dict[str, Any]]) -> str:
    return _sets(rows, mean=False)


def _rows(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| data | people | publishers | AdsBPC, best bound in hindsight | personal budgets "
        "| by rows | personal budgets of AdsBPC in hindsight | by rows of AdsBPC in hindsight |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    ratios = []
    for (name,), of in _by(rows, "dataset").items():
        error = {mechanism: row["wrmse_closed_form"] for mechanism, row in of.items()}
        best = error["adsbpc-oracle"]
        if name in SETS:
            ratios.append(error[BY_ROWS] / best)
        lines.append(
            f"| {name} | {of[OURS]['users']:,} | {of[OURS]['publishers']:,} | {best:.1f} "
            f"| {error[OURS]:.2f} | **{error[BY_ROWS]:.2f}** | {error[OURS] / best:.3f} "
            f"| **{error[BY_ROWS] / best:.3f}** |"
        )
    overall = exp(fsum(map(log, ratios)) / len(ratios))
    lines.append(f"| geometric mean of the first five | | | | | | | **{overall:.3f}** |")
    return "\n".join(lines)


def _year(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| data | queries | AdsBPC | AdsBPC, best bound in hindsight | personal budgets "
        "| of AdsBPC | of AdsBPC in hindsight |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for (name, queries), of in _by(rows, "dataset", "queries").items():
        error = {mechanism: row["wrmse_closed_form"] for mechanism, row in of.items()}
        lines.append(
            f"| {name} | {queries} | {error['adsbpc']:.2f} | {error['adsbpc-oracle']:.2f} "
            f"| **{error[OURS]:.2f}** | {error[OURS] / error['adsbpc']:.2f} "
            f"| {error[OURS] / error['adsbpc-oracle']:.2f} |"
        )
    return "\n".join(lines)


def _one_shot(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| data | people | publishers | personal budgets, every day "
        "| PipelineDP once, limits from a histogram | limits from a guess | limits in hindsight "
        "| of the better without hindsight | of hindsight |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for (name,), of in _by(rows, "dataset").items():
        ours, private, guess, best = (of[each]["last_rmse_closed_form"] for each in ONE_SHOT)
        lines.append(
            f"| {name} | {of[OURS]['users']:,} | {of[OURS]['publishers']:,} | **{ours:.1f}** "
            f"| {private:.1f} | {guess:,.1f} | {best:.1f} "
            f"| **{ours / min(private, guess):.2f}** | {ours / best:.2f} |"
        )
    return "\n".join(lines)


def _picture(rows: list[dict[str, Any]]) -> None:
    points = [
        {
            "setting": row["dataset"],
            "mechanism": row["mechanism"],
            "value": row["wrmse_closed_form"],
            "published": None,
        }
        for row in rows
    ]
    figure = points_figure(
        "Error of weighted running totals at rho = 1, 31 slots", points,
        "weighted root mean square error, in conversions", MECHANISMS,
    )  # fmt: skip
    write_figure(figure, FOLDER / "errors")


if __name__ == "__main__":
    main(sys.argv[1:])
