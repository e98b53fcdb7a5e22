"""Computes the table and the picture of docs/attribution.md: `make attribution`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pages import between

from adsbpc.lab.figures import lines_figure, write_figure
from adsbpc.lab.fits import Fits

ROOT = Path(__file__).parent
FOLDER = ROOT / "attribution"
PAGE = ROOT / "attribution.md"
MODELS = (
    ("shapley", 1), ("shapley_ordered", 1), ("incremental_value", 1), ("probabilistic", 1),
    ("probabilistic", 2), ("logistic", 1), ("markov", 1), ("markov", 2), ("markov", 3),
)  # fmt: skip
RHOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
USERS = (10_000, 100_000, 1_000_000)
TRIALS = 20


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    rows = [row for users in USERS for row in _of(users)]
    (FOLDER / "results.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(between(text, "errors", _table(rows)), encoding="utf-8")
    for users in USERS:
        _picture(users, [row for row in rows if row["users"] == users])


def _of(users: int) -> list[dict[str, Any]]:
    fits = Fits(users)
    rows = []
    try:
        for model, order in MODELS:
            sys.stderr.write(f"{users:,} users, {model} of order {order}\n")
            for rho in RHOS:
                found = [t.distance for t in fits.trials(model, order, rho, range(TRIALS))]
                rows.append(
                    {
                        "model": _name(model, order),
                        "users": users,
                        "rho": rho,
                        "mean": sum(found) / TRIALS,
                        "worst": max(found),
                    }
                )
    finally:
        fits.close()
    return rows


def _name(model: str, order: int) -> str:
    return f"{model} {order}" if model in ("markov", "probabilistic") else model


def _table(rows: list[dict[str, Any]]) -> str:
    """At the usual budget of a fit, and at the smallest and the largest of the picture."""
    shown = (0.01, 0.05, 1.0)
    found = {(row["model"], row["users"], row["rho"]): row for row in rows}
    heads = [f"{users:,} at {rho:g}" for users in USERS for rho in shown]
    lines = [f"| model | {' | '.join(heads)} |", "|---|" + "---|" * len(heads)]
    for model, order in MODELS:
        name = _name(model, order)
        cells = [found[name, users, rho] for users in USERS for rho in shown]
        texts = [f"{cell['mean']:.2f} ({cell['worst']:.2f})" for cell in cells]
        lines.append(f"| {name} | {' | '.join(texts)} |")
    return "\n".join(lines)


def _picture(users: int, rows: list[dict[str, Any]]) -> None:
    points = [
        # A logarithmic axis has no zero.
        {"setting": row["rho"], "mechanism": row["model"], "value": max(row["mean"], 0.001)}
        for row in rows
    ]
    figure = lines_figure(
        f"Private fit against the plain one, {users:,} people", points, "rho of the fit",
        "largest difference of a publisher's share, percentage points",
        [_name(*model) for model in MODELS],
    )  # fmt: skip
    write_figure(figure, FOLDER / f"errors-{users}")


if __name__ == "__main__":
    main()
