"""`adsbpc lab lift`: trials repeated, and the price of privacy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.progress import TimeRemainingColumn
from rich.table import Table

from adsbpc.cli.console import progress, results, stoppable
from adsbpc.errors import no_such_choice
from adsbpc.lab.figures import write_figure
from adsbpc.lab.lift import (
    SCENARIOS,
    Outcome,
    RepeatedTrial,
    Scenario,
    outcomes_of,
    price_figure,
    price_of,
    row_of,
)
from adsbpc.privacy import exact_rho


def run(
    trials: int,
    people: int,
    slots: int,
    rho: str,
    scenarios: str,
    seed: int,
    jobs: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    budgets = [float(exact_rho(part.strip())) for part in rho.split(",")]
    chosen = _chosen(scenarios)
    rows: list[dict[str, Any]] = []
    whole = trials * len(chosen) * len(budgets)
    with stoppable(), progress("Repeating", whole, TimeRemainingColumn()) as step:
        done = 0
        for budget in budgets:
            trial = RepeatedTrial(people, slots, budget)
            for scenario in chosen:
                found: list[Outcome] = []
                for outcome in outcomes_of(trial, scenario, trials, seed, jobs):
                    found.append(outcome)
                    done += 1
                    step(completed=done, total=whole)
                rows.append(row_of(trial, scenario, found))
    prices = [price_of(RepeatedTrial(people, slots, budget)) for budget in budgets]
    if plot is not None:
        write_figure(price_figure(people, slots), plot)
    if as_json:
        print(json.dumps(rows + prices))
        return
    results().print(_table_of_coverage(rows, trials, people, slots))
    results().print(_table_of_prices(prices))


def _chosen(names: str) -> list[Scenario]:
    wanted = [part.strip() for part in names.split(",") if part.strip()]
    known = {each.name: each for each in SCENARIOS}
    for name in wanted:
        if name not in known:
            raise no_such_choice(f"--scenarios {name}", name, list(known))
    return [known[name] for name in wanted] or list(SCENARIOS)


def _table_of_coverage(rows: list[dict[str, Any]], trials: int, people: int, slots: int) -> Table:
    table = Table(
        title=f"{trials} trials each, two arms of {people:,} people, {slots} looks",
        caption="plain: the 95% interval of the last look holds what is true; band: all looks of "
        "the band do; told: the band excludes 0 at some look (of no effect: a false alarm), and "
        "the same by plain intervals",
    )
    for heading in ("trial", "rho"):
        table.add_column(heading)
    for heading in ("plain", "band", "told", "told by plain", "critical"):
        table.add_column(heading, justify="right")
    for row in rows:
        told = row.get("told", row.get("false_alarms", 0.0))
        plain = row.get("told_by_plain", row.get("plain_false_alarms", 0.0))
        table.add_row(
            row["scenario"], f"{row['rho']:g}", f"{row['plain_at_the_end']:.1%}",
            f"{row['band_on_all_days']:.1%}", f"{told:.1%}", f"{plain:.1%}",
            f"{row['critical_value']:.2f}",
        )  # fmt: skip
    return table


def _table_of_prices(prices: list[dict[str, Any]]) -> Table:
    table = Table(title="How much wider the last interval is than without privacy")
    table.add_column("rho")
    for heading in ("daily releases", "one release at the end"):
        table.add_column(heading, justify="right")
    for row in prices:
        table.add_row(
            f"{row['rho']:g}",
            f"{row['wider_by_daily_releases']:.2%}",
            f"{row['wider_by_one_release']:.2%}",
        )
    return table
