"""Computes the tables and pictures of docs/attribution.md: `make attribution`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from pages import between

from adsbpc.attribution import CountSet, count_set, fitted_model
from adsbpc.attribution.estimation import Counted, estimate
from adsbpc.attribution.fit_reference import cells_of
from adsbpc.attribution.fitted_reference import member_units
from adsbpc.lab.figures import lines_figure, write_figure
from adsbpc.lab.fits import Fits
from adsbpc.model import UNITS_PER_CONVERSION, Fit

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


# People by journey: how many, and how many of them converted.
WORKED = {
    "A": (1000, 20),
    "B": (1000, 30),
    "C": (500, 5),
    "AB": (400, 24),
    "BA": (300, 15),
    "AC": (200, 6),
    "BC": (200, 9),
    "ABC": (100, 9),
}
JOURNEY = "ABBC"


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    text = PAGE.read_text(encoding="utf-8")
    for name, table in (("people", _people()), ("worked", _worked())):
        text = between(text, name, table)
    PAGE.write_text(text, encoding="utf-8")
    rows = [row for users in USERS for row in _of(users)]
    (FOLDER / "results.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(between(text, "errors", _table(rows)), encoding="utf-8")
    for users in USERS:
        _picture(users, [row for row in rows if row["users"] == users])


def _people() -> str:
    lines = ["| journey | people | converted | rate |", "|---|---|---|---|"]
    for journey, (people, converted) in WORKED.items():
        lines.append(
            f"| {' > '.join(journey)} | {people:,} | {converted} | {converted / people:.1%} |"
        )
    return "\n".join(lines)


def _worked() -> str:
    """Credits of one journey under every model, fitted to these people without noise."""
    lines = ["| model | A | B | C |", "|---|---|---|---|"]
    members = ["ABC".index(one) for one in dict.fromkeys(JOURNEY)]
    for model, order in MODELS:
        fit = Fit.model_validate(
            {
                "model": model,
                "order": order,
                "publishers": ("A", "B", "C"),
                "parameters": estimate(model, order, _counted(count_set(model, order, 3))),
            }
        )
        units = member_units(fitted_model(fit), members)
        shares = " | ".join(f"{unit / UNITS_PER_CONVERSION:.1%}" for unit in units)
        lines.append(f"| {_name(model, order)} | {shares} |")
    return "\n".join(lines)


def _counted(counts: CountSet) -> Counted:
    values = np.zeros(len(counts.cells))
    for journey, (people, converted) in WORKED.items():
        stages = ["ABC".index(one) for one in journey]
        for outcome, count in ((True, converted), (False, people - converted)):
            for cell, amount in cells_of(counts, stages, outcome).items():
                values[counts.positions[cell]] += amount * count
    return Counted(counts, values, 0.0)


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
