"""The page of the reproduction: every table of the paper, what we get, and how to read it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adsbpc.lab.catalogue import REMARKS
from adsbpc.lab.reproduction.experiments import Experiment, Size
from adsbpc.lab.reproduction.readings import OPENING, READINGS


def page_of(
    experiments: Sequence[Experiment],
    found: dict[str, list[dict[str, Any]]],
    solved: list[dict[str, Any]],
    size: Size,
    out: Path,
    page: Path,
) -> str:
    """Markdown; figures are linked from where the results stand."""
    parts = [OPENING.format(trials=size.trials, seed=size.seed, users=size.synthetic_users)]
    for experiment in experiments:
        rows = found[experiment.name]
        link = os.path.relpath(out / f"{experiment.name}.svg", page.parent)
        parts += [
            f"## {experiment.title}",
            _table(rows, with_errors=experiment.metric == "wrmse"),
            READINGS.get(experiment.name, ""),
            f"![{experiment.title}]({link})",
        ]
    if solved:
        parts += [
            "## Is a diagonal strategy the best?",
            _optimality(solved),
            READINGS["optimality"],
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(rows: list[dict[str, Any]], with_errors: bool) -> str:
    """A line a setting, a column a mechanism: ours, its standard error, in square brackets the
    mean of roots, and the printed figure."""
    mechanisms = list(dict.fromkeys(row["mechanism"] for row in rows))
    cells = {(row["setting"], row["mechanism"]): row for row in rows}
    lines = [
        "| | " + " | ".join(f"{name}{' *' * (name in REMARKS)}" for name in mechanisms) + " |",
        "|---|" + "---|" * len(mechanisms),
    ]
    for setting in dict.fromkeys(row["setting"] for row in rows):
        shown = [_cell(cells.get((setting, name)), with_errors) for name in mechanisms]
        lines.append(f"| {setting} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def _cell(row: dict[str, Any] | None, with_errors: bool) -> str:
    if row is None:
        return ""
    text = _number(row["value"])
    if with_errors and row["wrmse_stderr"]:
        text += f" ± {row['wrmse_stderr']:.2g}"
    if with_errors and row["published"] is not None:
        text += f" [{_number(row['wrmse_mean_of_roots'])}]"
    if row["published"] is not None:
        text += f" ({_number(row['published'])})"
    return text


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _optimality(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| days | adjacency | solver | closed form | difference | largest / mean off-diagonal "
        "| printed |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['slots']} | {row['adjacency']} | {row['solver']:,.3f} | "
        f"{row['closed_form']:,.3f} | {row['difference']:.0e} | "
        f"{row['largest_off_diagonal']:.0e} / {row['mean_off_diagonal']:.0e} | "
        f"{'' if row['published'] is None else _number(row['published'])} |"
        for row in rows
    ]
    return "\n".join(lines)
