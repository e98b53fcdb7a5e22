"""The experiments of the paper: which runs each one needs, and which figure it compares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from adsbpc.errors import no_such_choice
from adsbpc.lab.reproduction.published import published
from adsbpc.lab.runs import Run

BASELINES = ("ipa", "bin", "stream", "umm", "mmbpc")
OURS = ("adsbpc-published", "adsbpc", "adsbpc-svt", "adsbpc-oracle")
EVERYTHING = (*BASELINES, "umm-optimal", *OURS)
SYNTHETIC = ("zipf", "normal", "uniform")
ALL_DATASETS = (*SYNTHETIC, "criteo", "criteo-first", "criteo-uniform", "facebook")
TUNED = ("criteo", "facebook")


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


def _budgets(size: Size) -> Experiment:
    points = [
        Point(replace(size.run("criteo", mechanism), rho=rho), f"{rho:g}", None)
        for rho in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
        for mechanism in EVERYTHING
    ]
    return Experiment("budgets", "Criteo, n = 31, by budget rho", "wrmse", tuple(points))


def _days(size: Size) -> Experiment:
    points = [
        Point(replace(size.run("criteo", mechanism), slots=slots), str(slots), None)
        for slots in (7, 15, 31, 63, 127)
        for mechanism in EVERYTHING
    ]
    return Experiment("days", "Criteo, rho = 1, by number of days", "wrmse", tuple(points))


def _tuning(
    name: str,
    table: str,
    title: str,
    values: tuple[float, ...],
    label: str,
    of_paper: Callable[[float], dict[str, object]],
    ours: Callable[[float], dict[str, object]],
) -> Callable[[Size], Experiment]:
    def made(size: Size) -> Experiment:
        points = []
        for dataset in TUNED:
            for value in values:
                setting = f"{label}={value:g}"
                for mechanism, options in (
                    ("adsbpc-published", of_paper(value)),
                    ("adsbpc-svt", {"bounds": "svt", **ours(value)}),
                ):
                    run = replace(size.run(dataset, mechanism), options=options)
                    figure = published(table, dataset, setting, mechanism)
                    points.append(Point(run, f"{dataset}, {setting}", figure))
        return Experiment(name, title, "wrmse", tuple(points))

    return made


def _shares(part: float) -> dict[str, object]:
    """lambda goes to bounds, half of it each to quantiles and to the sparse vector."""
    half = round(part / 2, 6)
    return {"shares": (round(1 - 2 * half, 6), half, half)}


def _constant(size: Size) -> Experiment:
    points = []
    for dataset in TUNED:
        for bound in range(1, 7):
            run = replace(size.run(dataset, "adsbpc-constant"), options={"bound": bound})
            figure = published("constant_bound", dataset, f"r={bound}", "adsbpc-published")
            points.append(Point(run, f"{dataset}, r={bound}", figure))
    title = "A constant bound r instead of a private one"
    return Experiment("constant-bound", title, "wrmse", tuple(points))


def _daily(size: Size) -> Experiment:
    points = []
    for dataset in TUNED:
        for rho in (1.0, 2.0, 4.0, 6.0, 8.0, 10.0):
            figure = published("daily_quantile", dataset, f"rho={rho:g}", "adsbpc-published")
            for mechanism, options in (
                ("adsbpc-published", {"quantile_only": True}),
                ("adsbpc-svt", {"bounds": "svt", "quantile_slots": 31}),
            ):
                run = replace(size.run(dataset, mechanism), rho=rho, options=options)
                shown = figure if mechanism == "adsbpc-published" else None
                points.append(Point(run, f"{dataset}, rho={rho:g}", shown))
    return Experiment("daily-quantile", "A private quantile every day", "wrmse", tuple(points))


def _facebook(size: Size) -> Experiment:
    """Every mechanism under the same adjacency, with trials enough to rank them."""
    points = [
        Point(
            replace(size.run("facebook", mechanism), trials=20 * size.trials, adjacency=adjacency),
            adjacency,
            None,
        )
        for adjacency in ("add-remove", "substitute")
        for mechanism in EVERYTHING
    ]
    title = "Facebook, n = 31, rho = 1, everybody under the same adjacency"
    return Experiment("facebook", title, "wrmse", tuple(points))


def _people(size: Size) -> Experiment:
    """Noise does not depend on how many people there are, and what a bound cuts does."""
    points = [
        Point(replace(size.run("zipf", mechanism), users=users), str(users), None)
        for users in size.crowds
        for mechanism in EVERYTHING
    ]
    title = "Zipf, n = 31, rho = 1, by number of people"
    return Experiment("people", title, "wrmse", tuple(points))


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
    "people": _people,
    "doubled": _doubled,
    "facebook": _facebook,
    "budgets": _budgets,
    "days": _days,
    "n365": _printed(
        "n365", "A year of days with the data five times over, rho = 1", "wrmse", "n365_wrmse",
        "n=365 rho=1 data x5", TUNED, slots=365, copies=5,
    ),
    "time": _printed(
        "time", "Seconds for one trial", "seconds", "seconds", "n=31 rho=1", TUNED
    ),
    "shares": _tuning(
        "shares", "lambda", "Share lambda of the budget for bounds", (0.5, 0.4, 0.3, 0.2, 0.1),
        "lambda", lambda x: {"share_measurement": 1 - x}, _shares,
    ),
    "scales": _tuning(
        "scales", "scale_up", "How far a bound moves", (1.1, 1.2, 1.3, 1.4, 1.5), "s_up",
        lambda x: {"scale_up": x, "scale_down": 1 / x},
        lambda x: {"scale_up": x, "scale_down": round(1 / x, 6)},
    ),
    "thresholds": _tuning(
        "thresholds", "threshold", "Threshold of the sparse vector", (10, 25, 50, 75, 100), "T",
        lambda x: {"threshold": x}, lambda x: {"threshold": int(x)},
    ),
    "constant-bound": _constant,
    "daily-quantile": _daily,
}  # fmt: skip


def experiment_named(name: str, size: Size) -> Experiment:
    if name not in EXPERIMENTS:
        raise no_such_choice(f"experiment {name!r}", name, (*EXPERIMENTS, "optimality"))
    return EXPERIMENTS[name](size)
