"""The experiments of the paper: which runs each one needs, and the figures that it printed (its
tables 5 to 14), as facts."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any

from adsbpc.errors import no_such_choice
from adsbpc.lab.runs import Run

BASELINES = ("ipa", "bin", "stream", "umm", "mmbpc")
OURS = ("adsbpc-published", "adsbpc", "adsbpc-svt", "adsbpc-oracle")
EVERYTHING = (*BASELINES, "umm-optimal", *OURS)
SYNTHETIC = ("zipf", "normal", "uniform")
ALL_DATASETS = (*SYNTHETIC, "criteo", "criteo-first", "criteo-uniform", "facebook")
TUNED = ("criteo", "facebook")


_PRINTED_DATASETS = {
    "criteo_lta": "criteo",
    "criteo_fta": "criteo-first",
    "criteo_uni": "criteo-uniform",
}
_PRINTED_COLUMNS = {
    "ipa": "IPA",
    "bin": "BIN",
    "stream": "Stream",
    "umm": "UMM",
    "mmbpc": "MMBPC",
    "adsbpc-published": "AdsBPC",
    "adsbpc-constant": "AdsBPC",
}


@cache
def _printed_rows() -> dict[tuple[str, str, str], dict[str, str]]:
    text = files("adsbpc.lab.reproduction").joinpath("published.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {
        (row["table"], _PRINTED_DATASETS.get(row["dataset"], row["dataset"]), row["setting"]): row
        for row in rows
    }


def published(table: str, dataset: str, setting: str, mechanism: str) -> float | None:
    row = _printed_rows().get((table, dataset, setting), {})
    text = row.get(_PRINTED_COLUMNS.get(mechanism, ""), "")
    return float(text) if text else None


@dataclass(frozen=True)
class Point:
    """A run, where it stands in its table, and what was published there."""

    run: Run
    setting: str
    published: float | None


@dataclass(frozen=True)
class Experiment:
    """`metric` is the column of results that the published figure is compared with, in units of
    `unit`."""

    name: str
    title: str
    metric: str
    points: tuple[Point, ...]
    unit: float = 1.0


@dataclass(frozen=True)
class Size:
    """How much work a reproduction is."""

    trials: int = 10
    seed: int = 1
    synthetic_users: int | None = 100_000
    criteo_users: int | None = None

    @property
    def crowds(self) -> tuple[int, ...]:
        """Around the number of people in the synthetic sets, a tenth and ten times of it."""
        usual = self.synthetic_users or 1_000_000
        return tuple(max(10, users) for users in (usual // 10, usual, 10 * usual) if users <= 10**6)

    def users(self, dataset: str) -> int | None:
        if dataset in SYNTHETIC:
            return self.synthetic_users
        return self.criteo_users if dataset.startswith("criteo") else None

    def run(self, dataset: str, mechanism: str) -> Run:
        return Run(
            dataset, mechanism, users=self.users(dataset), trials=self.trials, seed=self.seed
        )


def _printed(
    name: str,
    title: str,
    metric: str,
    table: str,
    setting: str,
    datasets: tuple[str, ...],
    unit: float = 1.0,
    **changes: Any,
) -> Callable[[Size], Experiment]:
    """A table of the paper with a row a dataset and a column a mechanism."""

    def made(size: Size) -> Experiment:
        points = [
            Point(
                replace(size.run(dataset, mechanism), **changes),
                dataset,
                published(table, dataset, setting, mechanism),
            )
            for dataset in datasets
            for mechanism in EVERYTHING
        ]
        return Experiment(name, title, metric, tuple(points), unit)

    return made


def _varied(
    name: str,
    title: str,
    dataset: str,
    changes: Callable[[Size], dict[str, dict[str, Any]]],
) -> Callable[[Size], Experiment]:
    """Every mechanism on one dataset, with changes by setting. The paper prints no numbers."""

    def made(size: Size) -> Experiment:
        points = [
            Point(replace(size.run(dataset, mechanism), **changed), setting, None)
            for setting, changed in changes(size).items()
            for mechanism in EVERYTHING
        ]
        return Experiment(name, title, "wrmse", tuple(points))

    return made


def _tuned(
    name: str,
    title: str,
    table: str,
    label: str,
    values: Sequence[float],
    **changes: Callable[[float], dict[str, Any]],
) -> Callable[[Size], Experiment]:
    """Some mechanisms, each with changes of its own for every value of a parameter."""

    def made(size: Size) -> Experiment:
        points = []
        for dataset, value in product(TUNED, values):
            setting = f"{label}={value:g}"
            for key, changed in changes.items():
                mechanism = key.replace("_", "-")
                run = replace(size.run(dataset, mechanism), **changed(value))
                figure = published(table, dataset, setting, mechanism)
                points.append(Point(run, f"{dataset}, {setting}", figure))
        return Experiment(name, title, "wrmse", tuple(points))

    return made


def _tracker(**options: Any) -> dict[str, Any]:
    return {"options": {"bounds": "svt", **options}}


def _shares(part: float) -> dict[str, Any]:
    """lambda goes to bounds, half of it each to quantiles and to the sparse vector."""
    half = round(part / 2, 6)
    return _tracker(shares=(round(1 - 2 * half, 6), half, half))


def _doubled(size: Size) -> Experiment:
    """The matrix mechanism charged twice the sensitivity that it needs, as the paper may have."""
    points = []
    for dataset in ALL_DATASETS:
        figure = published("prefix_wrmse", dataset, "n=31 rho=1", "umm")
        for times in (1.0, 2.0):
            run = replace(size.run(dataset, "umm"), options={"times": times})
            points.append(Point(run, f"{dataset}, {times:g} x GS", figure if times == 2 else None))
    title = "The matrix mechanism at once and twice the sensitivity"
    return Experiment("doubled", title, "wrmse", tuple(points))


EXPERIMENTS: dict[str, Callable[[Size], Experiment]] = {
    "prefix": _printed(
        "prefix", "Prefix sums, n = 31, rho = 1: weighted root mean squared error", "wrmse",
        "prefix_wrmse", "n=31 rho=1", ALL_DATASETS,
    ),
    "sliding": _printed(
        "sliding",
        "Sliding windows of 7 days, n = 31, rho = 1: largest variance, in units of 10,000",
        "max_variance", "sliding_maxvar_1e4", "n=31 rho=1", ALL_DATASETS, 1e4, queries="sliding",
    ),
    # Noise does not depend on how many people there are, and what a bound cuts does.
    "people": _varied(
        "people", "Zipf, n = 31, rho = 1, by number of people", "zipf",
        lambda size: {str(users): {"users": users} for users in size.crowds},
    ),
    "doubled": _doubled,
    # With trials enough to rank them.
    "facebook": _varied(
        "facebook", "Facebook, n = 31, rho = 1, everybody under the same adjacency", "facebook",
        lambda size: {
            adjacency: {"trials": 20 * size.trials, "adjacency": adjacency}
            for adjacency in ("add-remove", "substitute")
        },
    ),
    "budgets": _varied(
        "budgets", "Criteo, n = 31, by budget rho", "criteo",
        lambda _: {f"{rho:g}": {"rho": rho} for rho in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)},
    ),
    "days": _varied(
        "days", "Criteo, rho = 1, by number of days", "criteo",
        lambda _: {str(slots): {"slots": slots} for slots in (7, 15, 31, 63, 127)},
    ),
    "n365": _printed(
        "n365", "A year of days with the data five times over, rho = 1", "wrmse", "n365_wrmse",
        "n=365 rho=1 data x5", TUNED, slots=365, copies=5,
    ),
    "time": _printed(
        "time", "Seconds for one trial", "seconds", "seconds", "n=31 rho=1", TUNED
    ),
    "shares": _tuned(
        "shares", "Share lambda of the budget for bounds", "lambda", "lambda",
        (0.5, 0.4, 0.3, 0.2, 0.1),
        adsbpc_published=lambda x: {"options": {"share_measurement": 1 - x}},
        adsbpc_svt=_shares,
    ),
    "scales": _tuned(
        "scales", "How far a bound moves", "scale_up", "s_up", (1.1, 1.2, 1.3, 1.4, 1.5),
        adsbpc_published=lambda x: {"options": {"scale_up": x, "scale_down": 1 / x}},
        adsbpc_svt=lambda x: _tracker(scale_up=x, scale_down=round(1 / x, 6)),
    ),
    "thresholds": _tuned(
        "thresholds", "Threshold of the sparse vector", "threshold", "T", (10, 25, 50, 75, 100),
        adsbpc_published=lambda x: {"options": {"threshold": x}},
        adsbpc_svt=lambda x: _tracker(threshold=int(x)),
    ),
    "constant-bound": _tuned(
        "constant-bound", "A constant bound r instead of a private one", "constant_bound", "r",
        range(1, 7), adsbpc_constant=lambda x: {"options": {"bound": x}},
    ),
    "daily-quantile": _tuned(
        "daily-quantile", "A private quantile every day", "daily_quantile", "rho",
        (1.0, 2.0, 4.0, 6.0, 8.0, 10.0),
        adsbpc_published=lambda x: {"rho": x, "options": {"quantile_only": True}},
        adsbpc_svt=lambda x: {"rho": x, **_tracker(quantile_slots=31)},
    ),
}  # fmt: skip


def experiment_named(name: str, size: Size) -> Experiment:
    if name not in EXPERIMENTS:
        raise no_such_choice(f"experiment {name!r}", name, (*EXPERIMENTS, "optimality"))
    return EXPERIMENTS[name](size)
