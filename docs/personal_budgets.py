"""Computes the tables and pictures of docs/personal-budgets.md: `make personal-budgets`.

With names of tables, only those: `python docs/personal_budgets.py pipelinedp`. `--help` lists what
else can be chosen; whoever has less time takes fewer trials, fewer people or shorter campaigns, and
prints the tables.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from math import exp, fsum, log
from pathlib import Path
from typing import Any

from pages import between

from adsbpc.lab.baselines.ablation import WITHOUT
from adsbpc.lab.figures import points_figure, write_figure
from adsbpc.lab.runs import Run, compute_all

ROOT = Path(__file__).parent
FOLDER = ROOT / "personal-budgets"
PAGE = ROOT / "personal-budgets.md"
OURS = "personal-budget"
MECHANISMS = ("adsbpc", "adsbpc-oracle", OURS)
# People and trials; None is the paper's number of people.
SETS: dict[str, tuple[int | None, int]] = {
    "criteo": (None, 10),
    "zipf": (100_000, 10),
    "normal": (100_000, 10),
    "uniform": (100_000, 10),
    "facebook": (None, 20),
}
STREAMS = ("daily", "daily-loyal", "late", "heavy", "surge")
# Shapes that nothing was tuned for, but for `small`.
SHAPES: dict[str, tuple[int | None, int]] = {
    "unlike": (100_000, 5),
    "middling": (200_000, 5),
    "season": (100_000, 5),
    "bursts": (100_000, 5),
    "small": (5_000, 10),
    "baskets": (2_500, 10),
}
YEAR: dict[str, tuple[int | None, int]] = {
    "criteo": (100_000, 2),
    "facebook": (None, 4),
}
# The same campaign, longer or shorter: slots and trials.
LENGTHS: dict[str, tuple[int | None, dict[int, int]]] = {
    "facebook": (None, {7: 20, 31: 20, 90: 10, 365: 4}),
    "small": (5_000, {7: 20, 31: 20, 90: 5, 365: 2}),
    "zipf": (10_000, {7: 10, 31: 10, 90: 4, 365: 2}),
    "criteo": (50_000, {7: 10, 31: 10, 90: 4, 365: 2}),
}
# The same campaign with fewer people or more: people and trials.
SIZES = {10_000: 10, 100_000: 4, 400_000: 2, 1_600_000: 1}
SETS_BY_SIZE = ("criteo", "zipf", "unlike", "season")
# PipelineDP in plain Python takes some ten seconds for a million pairs of a user and a publisher.
ONE_SHOT = (OURS, "pipelinedp", "pipelinedp-guess", "pipelinedp-oracle")
ONE_SHOT_SETS: dict[str, tuple[int | None, int]] = {
    "criteo": (100_000, 5),
    "criteo-first": (100_000, 5),
    "criteo-uniform": (100_000, 5),
    "zipf": (20_000, 5),
    "normal": (20_000, 4),
    "uniform": (20_000, 4),
    "facebook": (None, 20),
    **dict.fromkeys(STREAMS, (10_000, 10)),
}

# Without one idea each.
ABLATED = (OURS, *WITHOUT)
ABLATION: dict[str, tuple[int | None, int]] = {
    "zipf": (10_000, 5),
    "criteo": (50_000, 5),
    "unlike": (10_000, 5),
    "daily-loyal": (3_000, 5),
    "heavy": (10_000, 10),
    "small": (5_000, 10),
    "baskets": (2_500, 10),
}


def runs() -> dict[str, list[Run]]:
    return {
        "sets": [
            Run(name, mechanism, users=users, trials=trials)
            for name, (users, trials) in SETS.items()
            for mechanism in MECHANISMS
        ],
        "streams": [
            Run(name, mechanism, users=10_000, trials=10)
            for name in STREAMS
            for mechanism in MECHANISMS
        ],
        "year": [
            Run(name, mechanism, users=users, trials=trials, slots=365, queries=queries)
            for name, (users, trials) in YEAR.items()
            for queries in ("prefix", "sliding", "slot")
            for mechanism in ("adsbpc", "adsbpc-oracle", OURS)
        ],
        "lengths": [
            Run(name, mechanism, users=users, trials=trials, slots=slots)
            for name, (users, lengths) in LENGTHS.items()
            for slots, trials in lengths.items()
            for mechanism in MECHANISMS[1:]
        ],
        "sizes": [
            Run(name, mechanism, users=users, trials=trials)
            for name in SETS_BY_SIZE
            for users, trials in SIZES.items()
            for mechanism in MECHANISMS[1:]
        ],
        "shapes": [
            Run(name, mechanism, users=users, trials=trials)
            for name, (users, trials) in SHAPES.items()
            for mechanism in MECHANISMS[1:]
        ],
        "ablation": [
            Run(name, mechanism, users=users, trials=trials)
            for name, (users, trials) in ABLATION.items()
            for mechanism in ABLATED
        ],
        "pipelinedp": [
            Run(name, mechanism, users=users, trials=trials, queries="end")
            for name, (users, trials) in ONE_SHOT_SETS.items()
            for mechanism in ONE_SHOT
        ],
    }


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="table", help=", ".join(TABLES))
    parser.add_argument("--ours", action="store_true", help="compute personal budgets alone")
    parser.add_argument("--tables", action="store_true", help="compute nothing")
    parser.add_argument("--print", action="store_true", help="print tables, change no file")
    parser.add_argument("--trials", type=int, help="of every run, in place of its own number")
    parser.add_argument("--users", type=int, help="runs with at most so many people only")
    parser.add_argument("--slots", type=int, help="runs with at most so many slots only")
    chosen = parser.parse_args()
    if unknown := {*chosen.parts} - {*TABLES}:
        parser.error(f"no table {sorted(unknown)}: expected some of {', '.join(TABLES)}")
    if not chosen.print and (chosen.trials or chosen.users or chosen.slots):
        parser.error("--trials, --users and --slots are for tables that are printed: add --print")
    return chosen


def main(chosen: argparse.Namespace) -> None:
    results = FOLDER / "results.json"
    tables: dict[str, list[dict[str, Any]]] = json.loads(results.read_text(encoding="utf-8"))
    for part, runs_of_part in runs().items():
        if chosen.parts and part not in chosen.parts:
            continue
        asked = [run for each in runs_of_part if (run := _within(each, chosen))]
        key = _key_with_people if part == "sizes" else _key
        known = {} if chosen.print else {key(row): row for row in tables.get(part, ())}
        if chosen.tables:
            computed = []
        elif chosen.ours:
            computed = [run for run in asked if run.mechanism in ABLATED]
        else:
            computed = asked
        for run, row in compute_all(computed, FOLDER / "cache", jobs=2):
            known[key(asdict(run))] = row
            sys.stderr.write(f"{part}: {len(known)} of {len(asked)}\r")
        # What was never computed is left out.
        keys = [key(asdict(run)) for run in asked]
        tables[part] = [known[each] for each in keys if each in known]
        table = TABLES[part](tables[part])
        if chosen.print:
            sys.stdout.write(f"{table}\n\n")
            continue
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(between(text, part, table), encoding="utf-8")
        results.write_text(json.dumps(tables, indent=1), encoding="utf-8")
    if not chosen.print:
        _picture(tables["sets"] + tables["streams"])


def _within(run: Run, chosen: argparse.Namespace) -> Run | None:
    """The run as it was chosen, if it was."""
    too_many = chosen.users is not None and run.users is not None and run.users > chosen.users
    if too_many or (chosen.slots is not None and run.slots > chosen.slots):
        return None
    return run if chosen.trials is None else replace(run, trials=chosen.trials)


def _key(run: dict[str, Any]) -> tuple[Any, ...]:
    return run["dataset"], run["mechanism"], run["queries"], run["slots"]


def _key_with_people(run: dict[str, Any]) -> tuple[Any, ...]:
    """Not for runs with all people, whose number is known only once they were computed."""
    return (*_key(run), run["users"])


def _by(rows: list[dict[str, Any]], *keys: str) -> dict[tuple[Any, ...], dict[str, dict[str, Any]]]:
    grouped: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(tuple(row[key] for key in keys), {})[row["mechanism"]] = row
    return grouped


def _sets(rows: list[dict[str, Any]], mean: bool = True) -> str:
    lines = [
        "| data | people | publishers | AdsBPC | AdsBPC, best bound in hindsight "
        "| personal budgets | of AdsBPC | of AdsBPC in hindsight |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    ratios = []
    for (name,), of in _by(rows, "dataset").items():
        error = {mechanism: row["wrmse_closed_form"] for mechanism, row in of.items()}
        ratios.append(error[OURS] / error["adsbpc-oracle"])
        lines.append(
            f"| {name} | {of[OURS]['users']:,} | {of[OURS]['publishers']:,} "
            f"| {error['adsbpc']:.1f} | {error['adsbpc-oracle']:.1f} | **{error[OURS]:.2f}** "
            f"| {error[OURS] / error['adsbpc']:.2f} | **{ratios[-1]:.3f}** |"
        )
    if mean:
        overall = exp(fsum(map(log, ratios)) / len(ratios))
        lines.append(f"| geometric mean | | | | | | | **{overall:.3f}** |")
    return "\n".join(lines)


def _streams(rows: list[dict[str, Any]]) -> str:
    return _sets(rows, mean=False)


def _shapes(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| data | people | publishers | AdsBPC, best bound in hindsight | personal budgets "
        "| of AdsBPC in hindsight |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for (name,), of in _by(rows, "dataset").items():
        best, ours = (of[each]["wrmse_closed_form"] for each in ("adsbpc-oracle", OURS))
        lines.append(
            f"| {name} | {of[OURS]['users']:,} | {of[OURS]['publishers']:,} | {best:.1f} "
            f"| **{ours:.2f}** | **{ours / best:.3f}** |"
        )
    return "\n".join(lines)


def _ablation(rows: list[dict[str, Any]]) -> str:
    """Errors beside those with everything."""
    ideas = [name.removeprefix(f"{OURS}-without-") for name in WITHOUT]
    lines = [
        "| data | people | error | " + " | ".join(f"without {idea}" for idea in ideas) + " |",
        "|---|---:|---:" + "|---:" * len(ideas) + "|",
    ]
    for (name,), of in _by(rows, "dataset").items():
        whole = of[OURS]["wrmse_closed_form"]
        times = [f"{of[each]['wrmse_closed_form'] / whole:.2f}" for each in WITHOUT]
        lines.append(
            f"| {name} | {of[OURS]['users']:,} | {whole:.2f} | " + " | ".join(times) + " |"
        )
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


def _lengths(rows: list[dict[str, Any]]) -> str:
    """Ratios, by the number of slots."""
    lengths = list(dict.fromkeys(row["slots"] for row in rows))
    lines = [
        "| data | people | " + " | ".join(f"{slots} slots" for slots in lengths) + " |",
        "|---|---:" + "|---:" * len(lengths) + "|",
    ]
    found = _by(rows, "dataset", "slots")
    for name in dict.fromkeys(row["dataset"] for row in rows):
        ratios = [_of_hindsight(found.get((name, slots), {})) for slots in lengths]
        people = next(row["users"] for row in rows if row["dataset"] == name)
        lines.append(f"| {name} | {people:,} | " + " | ".join(ratios) + " |")
    return "\n".join(lines)


def _sizes(rows: list[dict[str, Any]]) -> str:
    """Ratios, by the number of people."""
    sizes = sorted({row["users"] for row in rows})
    lines = [
        "| data | " + " | ".join(f"{people:,} people" for people in sizes) + " |",
        "|---" + "|---:" * len(sizes) + "|",
    ]
    found = _by(rows, "dataset", "users")
    for name in dict.fromkeys(row["dataset"] for row in rows):
        ratios = [_of_hindsight(found.get((name, people), {})) for people in sizes]
        lines.append(f"| {name} | " + " | ".join(ratios) + " |")
    return "\n".join(lines) if rows else ""


def _of_hindsight(of: dict[str, dict[str, Any]]) -> str:
    """A dash for what was not computed."""
    if OURS not in of or "adsbpc-oracle" not in of:
        return "-"
    return f"{of[OURS]['wrmse_closed_form'] / of['adsbpc-oracle']['wrmse_closed_form']:.3f}"


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
            f"| **{ours / min(private, guess):.3f}** | {ours / best:.3f} |"
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


TABLES: dict[str, Callable[[list[dict[str, Any]]], str]] = {
    "sets": _sets,
    "streams": _streams,
    "year": _year,
    "lengths": _lengths,
    "sizes": _sizes,
    "shapes": _shapes,
    "ablation": _ablation,
    "pipelinedp": _one_shot,
}


if __name__ == "__main__":
    main(options())
