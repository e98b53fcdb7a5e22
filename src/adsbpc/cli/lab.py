"""`adsbpc lab`: comparisons and reproductions for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from rich.progress import TimeRemainingColumn
from rich.table import Table

from adsbpc.cli.console import notes, progress, results, stoppable
from adsbpc.errors import SpecError, no_such_choice
from adsbpc.lab.catalogue import MECHANISMS, ONLY_IF_NAMED, PERSONAL, REMARKS, mechanism_named
from adsbpc.lab.coverage import Trial, rows_of, trials_of
from adsbpc.lab.datasets import DATASETS
from adsbpc.lab.evaluation import QUERIES
from adsbpc.lab.figures import points_figure, write_figure
from adsbpc.lab.repeated import RepeatedCampaign
from adsbpc.lab.reproduction.experiments import (
    EXPERIMENTS,
    SYNTHETIC,
    Experiment,
    Size,
    experiment_named,
)
from adsbpc.lab.reproduction.outputs import (
    compute_experiments,
    optimality_rows,
    write_outputs,
    write_table,
)
from adsbpc.lab.reproduction.page import page_of
from adsbpc.lab.runs import Run, compute_all, version_of
from adsbpc.mechanisms.planning import PLANNERS
from adsbpc.model import Adjacency
from adsbpc.privacy import exact_rho

_OPTIMALITY = "optimality"


@dataclass(frozen=True)
class Comparison:
    """What was asked for, as it was typed."""

    datasets: str | None
    data: Path | None
    largest_user: int | None
    mechanisms: str
    rho: str
    slots: int | None
    queries: str
    adjacency: str
    users: int | None
    trials: int
    seed: int
    allowance: float | None

    def runs(self) -> list[Run]:
        usual = [name for name in MECHANISMS if name not in ONLY_IF_NAMED]
        names = _listed(self.mechanisms) or usual
        for name in names:
            mechanism_named(name)
        if self.queries not in QUERIES:
            raise SpecError(f"--queries {self.queries}: expected one of {', '.join(QUERIES)}")
        if self.adjacency not in list(Adjacency):
            raise SpecError(f"--adjacency {self.adjacency}: expected add-remove or substitute")
        budgets = [float(exact_rho(text)) for text in _listed(self.rho)]
        named = _listed("facebook" if self.datasets is None else self.datasets)
        if not budgets or not named:
            raise SpecError("--rho and --datasets: expected at least one of each")
        if self.data is not None and (self.datasets is not None or self.users is not None):
            raise SpecError("--data stands for itself: remove --datasets and --users")
        if self.data is None and self.largest_user is not None:
            raise SpecError("--largest-user belongs to --data: remove it")
        if self.allowance is not None and not set(names) <= PERSONAL.keys():
            raise SpecError(
                f"--allowance {self.allowance:g} is of personal budgets: name mechanisms among "
                f"{', '.join(PERSONAL)} only, or remove it"
            )
        options = {} if self.allowance is None else {"allowance": self.allowance}
        own = self.data is not None
        sets = [self.data.stem] if self.data is not None else named
        slots = self.slots if self.slots is not None else 0 if own else 31
        version = None if self.data is None else version_of(self.data)
        return [
            Run(
                dataset,
                name,
                rho,
                self.adjacency,
                slots,
                self.queries,
                self.users if dataset != "facebook" else None,
                self.trials,
                self.seed,
                data=str(self.data.resolve()) if self.data is not None else None,
                data_version=version,
                largest_user=self.largest_user,
                options=options,
            )
            for dataset in sets
            for rho in budgets
            for name in names
        ]


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def run_datasets(as_json: bool) -> None:
    if as_json:
        print(json.dumps({"datasets": list(DATASETS), "mechanisms": list(MECHANISMS)}))
        return
    print("datasets:   " + ", ".join(DATASETS))
    print("mechanisms: " + ", ".join(MECHANISMS))
    for name, remark in REMARKS.items():
        print(f"  {name}: {remark}")


def run_compare(asked: Comparison, jobs: int, plot: Path | None, as_json: bool) -> None:
    runs = asked.runs()
    if plot is not None and all(run.mechanism in ONLY_IF_NAMED for run in runs):
        raise SpecError("--plot draws errors over all queries: name a mechanism that answers them")
    found: dict[str, dict[str, Any]] = {}
    with stoppable(), _progress("Comparing", len(runs)) as advance:
        for run, row in compute_all(runs, None, jobs):
            found[run.key] = row
            advance(len(found), len(runs))
    rows = [found[run.key] for run in runs]
    if plot is not None:
        shown = [
            {**row, "setting": _setting(row), "value": row["wrmse"], "published": None}
            for row in rows
            if row["wrmse"] is not None
        ]
        names = list(dict.fromkeys(row["mechanism"] for row in shown))
        title = "Weighted root mean squared error"
        write_figure(points_figure(title, shown, title.lower(), names), plot)
    if as_json:
        print(json.dumps([each for row in rows for each in _by_view(row)]))
        return
    for setting, group in groupby(rows, key=_setting):
        results().print(_ranking(setting, list(group)))


def _by_view(row: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for figures of the finest view, and one for the sums of each coarser one."""
    views = _coarser(row)
    common = {name: row[name] for name in row if not name.startswith(_prefixes(views))}
    unknown = dict.fromkeys(
        name for name in (*_ONLY_OF_THE_FINEST, *_RELATIVE_ERRORS) if name in common
    )
    of_views = [
        {name.removeprefix(prefix): row[name] for name in row if name.startswith(prefix)}
        for prefix in _prefixes(views)
    ]
    return [common] + [
        {**common, **unknown, **own, "view": view}
        for view, own in zip(views, of_views, strict=True)
    ]


def _coarser(row: dict[str, Any]) -> list[str]:
    """Views that sum up what is told apart, finer ones first."""
    end = "_last_rmse"
    return [name.removesuffix(end) for name in row if name.endswith(end)]


def _prefixes(views: list[str]) -> tuple[str, ...]:
    return tuple(f"{view}_" for view in views)


_ONLY_OF_THE_FINEST = (
    "wrmse_closed_form", "wrmse_mean_of_roots", "last_rmse_closed_form", "rmse", "max_variance",
)  # fmt: skip
_RELATIVE_ERRORS = ("relative_error_large", "relative_error_medium", "relative_error_small")


def _setting(row: dict[str, Any]) -> str:
    return f"{row['label']}, rho = {row['rho']:g}"


def _ranking(setting: str, rows: list[dict[str, Any]]) -> Table:
    first = rows[0]
    table = Table(
        title=f"{setting}: {first['queries']}, {first['slots']} slots, {first['users']:,} users, "
        f"{first['adjacency']}, {first['trials']} trials",
        collapse_padding=True,
    )
    table.add_column("mechanism", no_wrap=True)
    views = _coarser(first)
    for heading in ("error", "bias", "noise", "max var.", "x best", "at end", *views, "sec."):
        table.add_column(heading, justify="right")
    further = "".join(f"; {view}: the error of its sums at the end" for view in views[:-1])
    read = (
        f"error, bias and noise of one {first['view']}'s figure, in conversions (variance: "
        f"squared){further}; total: the error of everything together at the end"
    )
    # Who answers the last query alone has no error over all of them, and comes last.
    scored = sorted((row for row in rows if row["wrmse"] is not None), key=itemgetter("wrmse"))
    others = sorted((row for row in rows if row["wrmse"] is None), key=itemgetter("last_rmse"))
    for row in [*scored, *others]:
        remark = " *" if row["mechanism"] in REMARKS else ""
        over_all = [""] * 5
        if row["wrmse"] is not None:
            over_all = [
                f"{row['wrmse']:,.1f}" + _plus_minus(row["wrmse_stderr"]),
                f"{row['bias']:,.1f}",
                f"{row['noise']:,.1f}",
                f"{row['max_variance']:,.0f}",
                f"{row['wrmse'] / scored[0]['wrmse']:.2f}",
            ]
        table.add_row(
            row["mechanism"] + remark, *over_all, f"{row['last_rmse']:,.1f}",
            *(f"{row[f'{view}_last_rmse']:,.1f}" for view in views), f"{row['seconds']:.3f}",
        )  # fmt: skip
    shown = {row["mechanism"] for row in rows}
    told = [f"* {name}: {REMARKS[name]}" for name in REMARKS if name in shown]
    if first["data"] is not None and first["largest_user"] is None:
        told.append(
            f"ipa, bin, stream and umm were given GS = {first['gs']}, read off this very data; "
            "--largest-user says what is public"
        )
    table.caption = "\n".join([read, *told])
    return table


def _plus_minus(stderr: float | None) -> str:
    return "" if stderr is None else f" ± {stderr:,.1f}"


def run_reproduce(
    names: Sequence[str], size: Size, jobs: int, out: Path, page: Path | None, as_json: bool
) -> None:
    chosen = list(names) or [*EXPERIMENTS, _OPTIMALITY]
    experiments = [experiment_named(name, size) for name in chosen if name != _OPTIMALITY]
    if size.synthetic_users is not None:
        notes().print(
            f"{', '.join(SYNTHETIC)} have {size.synthetic_users:,} people here instead of "
            "1,000,000; --users changes it."
        )
    total = len({point.run.key for each in experiments for point in each.points})
    with stoppable(), _progress("Reproducing", total) as advance:
        found = compute_experiments(experiments, out / "cache", jobs, advance)
    for experiment in experiments:
        write_outputs(experiment, found[experiment.name], out)
    solved: list[dict[str, Any]] = []
    if _OPTIMALITY in chosen:
        with notes().status("Solving for the best strategy of any shape"):
            solved = optimality_rows(size.seed)
        write_table(solved, out / _OPTIMALITY)
    if page is not None:
        page.write_text(page_of(experiments, found, solved, size, out, page), encoding="utf-8")
    if as_json:
        every = [row for each in experiments for row in found[each.name]]
        print(json.dumps([*every, *solved]))
        return
    for experiment in experiments:
        results().print(_beside_published(experiment, found[experiment.name]))
    if solved:
        results().print(_optimality_table(solved))
    print(f"Results and figures: {out}")


def _beside_published(experiment: Experiment, rows: list[dict[str, Any]]) -> Table:
    table = Table("setting", "mechanism", title=experiment.title)
    for heading in ("here", "published"):
        table.add_column(heading, justify="right")
    for row in rows:
        printed = "" if row["published"] is None else f"{row['published']:,.2f}"
        table.add_row(row["setting"], row["mechanism"], f"{row['value']:,.2f}", printed)
    return table


def _optimality_table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="The best strategy of any shape, and AdsBPC's closed form")
    for heading in ("days", "solver", "closed form", "difference", "largest off-diagonal"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            str(row["slots"]),
            f"{row['solver']:,.2f}",
            f"{row['closed_form']:,.2f}",
            f"{row['difference']:.1e}",
            f"{row['largest_off_diagonal']:.1e}",
        )
    return table


def run_coverage(
    campaigns: list[RepeatedCampaign], trials: int, seed: int, jobs: int, as_json: bool
) -> None:
    first, rows = campaigns[0], list[dict[str, Any]]()
    exact_rho(first.rho)
    if first.mechanism not in PLANNERS:
        raise no_such_choice(f"--mechanism {first.mechanism}", first.mechanism, tuple(PLANNERS))
    with stoppable(), _progress("Repeating", trials * len(campaigns)) as advance:
        for place, campaign in enumerate(campaigns):
            found: list[Trial] = []
            for trial in trials_of(campaign, trials, seed, jobs):
                found.append(trial)
                advance(place * trials + len(found), trials * len(campaigns))
            made = {"mechanism": campaign.mechanism, "people": campaign.people}
            rows += [made | row for row in rows_of(found)]
    if as_json:
        print(json.dumps(rows))
        return
    table = Table(
        title=f"95% intervals and bands of {trials} campaigns with {first.people:,} people and "
        f"{first.slots} slots, {first.mechanism}, rho = {first.rho}"
    )
    for heading in ("figure", "view", "when"):
        table.add_column(heading)
    for heading in ("intervals", "hold", "low", "high"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.caption = (
        "hold: the part of intervals that have what is true, with its standard error, and of bands "
        "that have it after all slots; low and high: those that are below or above it. Ratios that "
        "cannot be told have no interval"
    )
    for row in rows:
        held, error = row["coverage"], row["standard_error"]
        told = "" if held is None else f"{held:.1%}" + ("" if error is None else f" ± {error:.1%}")
        table.add_row(
            row["figure"], row["view"], row["when"], f"{row['intervals']:,}", told,
            f"{row['too_low']:,}", f"{row['too_high']:,}",
        )  # fmt: skip
    results().print(table)


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[int, int], None]]:
    with progress(what, total, TimeRemainingColumn()) as step:
        yield lambda done, of: step(completed=done, total=of)
