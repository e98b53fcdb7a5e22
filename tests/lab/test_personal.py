"""Personal budgets against AdsBPC in the lab, at sizes that run in seconds. The full sizes are in
docs/personal-budgets.md; `make personal-budgets` computes them."""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from math import exp, fsum, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adsbpc.lab.baselines import personal
from adsbpc.lab.catalogue import MECHANISMS, personal_budgets
from adsbpc.lab.datasets import load_dataset
from adsbpc.lab.evaluation import Prepared, Scores, Setting, ViewScores, scores_of
from adsbpc.lab.runs import Run, compute
from adsbpc.model import Adjacency
from adsbpc.model.release_spec import PersonalBudgetSection
from adsbpc.workloads import Margins

SEED = 21
STATED: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[2] / "docs" / "personal-budgets" / "results.json").read_text()
)


@cache
def prepared(name: str, users: int | None, slots: int = 31) -> Prepared:
    return Prepared(load_dataset(name, slots, SEED, users))


def error(
    name: str, mechanism: str, users: int | None, trials: int = 8, queries: str = "prefix",
    slots: int = 31, adjacency: Adjacency = Adjacency.ADD_REMOVE,
) -> float:  # fmt: skip
    data = prepared(name, users, slots)
    setting = Setting(Fraction(1), adjacency, slots, queries)
    outcome = MECHANISMS[mechanism](data, setting, trials, SEED)
    # With endless trials of the noise, so that few trials of the choices suffice.
    return scores_of(outcome, data, setting).wrmse_closed_form


# Of AdsBPC with the best constant bound in hindsight, at rho = 1: a little above what this seed
# gives, so that losing a few percent fails. With fewer people than docs/personal-budgets.md has,
# that bound is another, and so are these.
BARS = [
    ("daily", 3_000, 1.15, 2),
    ("heavy", 3_000, 0.42, 2),
    *(
        pytest.param(*each, marks=pytest.mark.slow)
        for each in (
            ("facebook", None, 0.90, 20),
            ("criteo", 60_000, 0.10, 2),
            ("zipf", 20_000, 0.15, 2),
            ("normal", 5_000, 0.195, 2),
            ("uniform", 5_000, 0.15, 2),
            ("daily", 10_000, 1.14, 2),
            ("daily-loyal", 10_000, 1.14, 2),
            ("late", 3_000, 0.075, 2),
            ("surge", 3_000, 0.13, 2),
            ("small", 5_000, 0.80, 3),
            ("baskets", 2_500, 0.43, 3),
            ("unlike", 10_000, 0.57, 2),
            ("middling", 20_000, 0.27, 2),
            ("season", 10_000, 0.145, 2),
            ("bursts", 10_000, 0.25, 2),
        )
    ),
]


@pytest.mark.parametrize(("name", "users", "most", "trials"), BARS, ids=lambda v: str(v))
def test_accuracy_that_is_lost(name: str, users: int | None, most: float, trials: int) -> None:
    mine = error(name, "personal-budget", users, trials)
    assert mine <= most * error(name, "adsbpc-oracle", users, trials)
    # Nobody can know that bound beforehand. AdsBPC as it is has none of it.
    assert mine < error(name, "adsbpc", users, trials)


def test_figures_of_the_page_above_what_it_promises() -> None:
    """Whoever computes the tables again and finds worse figures must say so here."""
    ratios = {
        part: [
            of["personal-budget"] / of["adsbpc-oracle"] for of in _by_dataset(STATED[part]).values()
        ]
        for part in ("sets", "streams", "shapes")
    }
    assert exp(fsum(map(log, ratios["sets"])) / len(ratios["sets"])) < 0.17
    assert max(ratios["streams"]) < 1.15
    assert max(ratios["shapes"]) < 1


def test_figures_at_the_end_beside_what_is_released_once() -> None:
    """Nowhere more than a tenth behind, as the page says."""
    found = dict[str, dict[str, float]]()
    for row in STATED["pipelinedp"]:
        found.setdefault(row["dataset"], {})[row["mechanism"]] = row["last_rmse_closed_form"]
    behind = [
        of["personal-budget"] / min(of["pipelinedp"], of["pipelinedp-guess"])
        for of in found.values()
    ]
    assert max(behind) < 1.1


def _by_dataset(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        found.setdefault(row["dataset"], {})[row["mechanism"]] = row["wrmse_closed_form"]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("sets", "facebook"),
        *(("streams", name) for name in ("daily", "daily-loyal", "late", "heavy", "surge")),
        *(("shapes", name) for name in ("small", "baskets")),
    ],
)
def test_figures_of_the_page_that_are_lost(part: str, name: str) -> None:
    """The same runs again, with the seed of the page: those that take no hours. If choices are
    meant to be others, `python docs/personal_budgets.py --ours` computes the page again."""
    (row,) = (
        row
        for row in STATED[part]
        if row["dataset"] == name and row["mechanism"] == "personal-budget"
    )
    users = None if name == "facebook" else row["users"]
    run = Run(name, "personal-budget", users=users, trials=row["trials"], seed=row["seed"])
    assert compute(run)["wrmse_closed_form"] <= 1.01 * row["wrmse_closed_form"]


@pytest.mark.slow
@pytest.mark.parametrize(("queries", "most_of_few"), [("sliding", 1.1), ("slot", 1.45)])
def test_other_queries_beside_adsbpc(queries: str, most_of_few: float) -> None:
    """Of single slots nothing cancels: few people of one publisher lose, as the page says."""
    for name, users, most in (("facebook", None, most_of_few), ("zipf", 5_000, 0.8)):
        mine = error(name, "personal-budget", users, 5, queries)
        assert mine < most * error(name, "adsbpc", users, 5, queries)


@pytest.mark.slow
def test_no_trial_is_an_outlier() -> None:
    """The worst of 50 trials is within twice the mean, by bias and expected noise."""
    data = prepared("criteo", 10_000)
    setting = Setting(Fraction(1), Adjacency.ADD_REMOVE, 31)
    outcome = personal.personal_budget(PersonalBudgetSection())(data, setting, 50, SEED)
    weights = setting.weights**2
    squared = np.einsum("q,tqp->tp", weights, outcome.bias**2).mean(axis=1)
    errors = np.sqrt(squared + outcome.variances @ weights)
    assert errors.max() <= 2 * errors.mean()


@pytest.mark.slow
def test_substitution_costs_about_the_root_of_two() -> None:
    both = [
        error("zipf", "personal-budget", 5_000, 3, adjacency=adjacency)
        for adjacency in (Adjacency.ADD_REMOVE, Adjacency.SUBSTITUTE)
    ]
    assert 1.2 < both[1] / both[0] < 1.8


def test_bias_and_noise_add_up() -> None:
    """What the lab splits off as bias is what is cut, less what is added back for it, whatever the
    noise of the rows was; the rest has about the variance that is stated."""
    data = prepared("facebook", None)
    setting = Setting(Fraction(1), Adjacency.ADD_REMOVE, 31)
    fixed = personal.personal_budget(PersonalBudgetSection(allowance=6.0))
    outcome = fixed(data, setting, 20, SEED)
    errors = (outcome.noise**2).mean(axis=(0, 2)) / outcome.variances.mean(axis=0)
    assert 0.1 < np.median(errors) < 10


@pytest.mark.slow
def test_a_total_of_its_own_on_criteo() -> None:
    """At most a quarter of the error of a sum of publishers, for at most 6% on publishers: as in
    docs/measures.md."""
    alone, views = (
        compute(Run("criteo", mechanism, trials=24, seed=11))
        for mechanism in ("personal-budget", "personal-budget-views")
    )
    assert views["total_wrmse"] <= 0.25 * alone["total_wrmse"]
    assert views["wrmse_closed_form"] <= 1.06 * alone["wrmse_closed_form"]


@pytest.mark.slow
def test_sums_of_all_views_are_as_close_as_the_closed_form_says() -> None:
    """50 publishers in 20 countries, everybody with one cell, squared weights near 0.05, 0.475 and
    0.475: publishers and cells are 1.42 times as far off as cells of a campaign that asks for these
    alone. Of the total 100 trials of 8 slots show less: three standard errors are 8% there."""
    asked = Setting(Fraction(1), Adjacency.ADD_REMOVE, 8, "slot")
    data, section = prepared("countries", 50_000, 8), PersonalBudgetSection(allowance=1.5)
    alone, views = (
        scores_of(personal_budgets(name, section)(data, asked, trials, SEED), data, asked)
        for name, trials in (("personal-budget", 5), ("personal-budget-views", 100))
    )
    weights = (1, 3, 3)
    unit, margins = sum(weight**2 for weight in weights), Margins((50, 20), weights)
    cell = alone.wrmse_closed_form
    found: dict[str, ViewScores | Scores] = {**views.coarser, "cells": views}
    for depth, name in enumerate(("total", "publisher", "cells")):
        expected, own = cell * sqrt(unit * margins.view_variance(depth)), found[name]
        assert own.wrmse is not None
        assert own.wrmse_stderr is not None
        room = max(0.05 * expected, 3 * own.wrmse_stderr)
        assert own.wrmse == pytest.approx(expected, abs=room), name
        if name != "total":
            assert own.wrmse <= 1.42 * cell + 3 * own.wrmse_stderr
