"""PipelineDP in the lab: its noise and its limits are what the lab says they are."""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from importlib.util import find_spec
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from adsbpc.errors import SpecError
from adsbpc.lab.baselines.pipelinedp import DELTA, PipelineDP, gaussian_rho, release_once
from adsbpc.lab.baselines.pipelinedp_limits import (
    Limits,
    chosen_privately,
    guessed,
    in_hindsight,
    kept_of,
)
from adsbpc.lab.catalogue import MECHANISMS, ONLY_IF_NAMED
from adsbpc.lab.evaluation import Prepared, Setting, UserTotals, last_scores_of
from adsbpc.lab.runs import Run, compute
from adsbpc.model import Adjacency
from adsbpc.privacy import epsilon_of, epsilon_of_gaussian
from tests.cli.program import adsbpc
from tests.lab.worlds import MISSING_PIPELINEDP, prepared

EPSILON = epsilon_of(Fraction(1), DELTA)

needs_pipelinedp = pytest.mark.skipif(find_spec("pipeline_dp") is None, reason=MISSING_PIPELINEDP)


def rows(of: list[tuple[int, int, float]]) -> UserTotals:
    user, cell, conversions = zip(*of, strict=True)
    return UserTotals(np.array(user), np.array(cell), np.array(conversions, dtype=np.float64))


def everybody(users: int, cells: int, each: float) -> UserTotals:
    return rows([(user, cell, each) for user in range(users) for cell in range(cells)])


def setting(adjacency: Adjacency = Adjacency.ADD_REMOVE, queries: str = "prefix") -> Setting:
    return Setting(Fraction(1), adjacency, 4, queries)


def small_world() -> Prepared:
    found = [(user, 1 + (user + k) % 4, (user * k) % 5) for user in range(60) for k in range(6)]
    return prepared(found, 4, 5, 6)


# ---- the library itself ------------------------------------------------------------------------


@needs_pipelinedp
def test_its_noise_is_the_analytic_gaussian_of_our_epsilon() -> None:
    """2,000 publishers: 8% are five standard errors, because its noise cannot be seeded."""
    limits = Limits(publishers=9, each=2)
    answers, told = release_once(everybody(1, 1, 1.0), 2_000, limits, EPSILON)
    expected = sqrt(9) * 2 / sqrt(2 * gaussian_rho(EPSILON, DELTA))
    assert told == pytest.approx(expected, rel=2e-3)
    assert answers[1:].std() == pytest.approx(expected, rel=0.08)
    spent = Fraction((limits.sensitivity / told) ** 2 / 2)
    assert epsilon_of_gaussian(spent, DELTA) <= 1.001 * EPSILON


@needs_pipelinedp
def test_it_keeps_what_the_lab_expects_it_to_keep() -> None:
    """People of two kinds, so many that noise is small: caps cut the one, drawing the other."""
    found = rows(
        [(user, 0, 7.0) for user in range(3_000)]
        + [(user, cell, 1.0) for user in range(3_000, 9_000) for cell in range(4)]
    )
    limits = Limits(publishers=2, each=3)
    kept = kept_of(found, limits, 4)
    assert kept.mean.tolist() == [3_000 * 3 + 3_000, 3_000, 3_000, 3_000]
    assert kept.variance.tolist() == [1_500.0] * 4
    answers, scale = release_once(found, 4, limits, EPSILON)
    deviation = np.sqrt(kept.variance + scale**2)
    assert (np.abs(answers - kept.mean) < 5 * deviation).all()
    assert (kept.mean[0] - 3_000 * 7 - 6_000) < -100 * deviation[0], "nothing was cut"


@needs_pipelinedp
@pytest.mark.parametrize("queries", ["prefix", "sliding", "slot"])
def test_only_the_last_query_is_scored(queries: str) -> None:
    data, asked = small_world(), setting(queries=queries)
    outcome = PipelineDP(limits="hindsight")(data, asked, 400, 1)
    assert outcome.noise.shape == (400, 1, 5)
    assert not outcome.answers_all(asked)
    scores = last_scores_of(outcome, data, asked)
    assert scores.last_rmse == pytest.approx(scores.last_rmse_closed_form, rel=0.1)
    assert scores.relative_error_large > 0


@needs_pipelinedp
def test_substitution_needs_more_noise() -> None:
    data, scales = small_world(), []
    for adjacency in Adjacency:
        outcome = PipelineDP(limits="guess")(data, setting(adjacency), 1, 1)
        scales.append(float(outcome.variances[0, 0]))
    assert scales[1] / scales[0] == pytest.approx(2, rel=0.01)


@needs_pipelinedp
def test_compare_shows_it_beside_others(tmp_path: Path) -> None:
    arguments = ("lab", "compare", "--mechanisms", "pipelinedp,ipa", "--slots", 5, "--trials", 2)
    shown = adsbpc(*arguments, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.index("│ ipa") < shown.stdout.index("│ pipelinedp *")
    once, total, ipa, _ = json.loads(adsbpc(*arguments, "--json", cwd=tmp_path).stdout)
    assert (once["view"], total["view"]) == ("publisher", "total")
    assert (once["mechanism"], once["wrmse"], once["bias"]) == ("pipelinedp", None, None)
    assert once["last_rmse"] > 0 < ipa["last_rmse"]
    assert ipa["wrmse"] > 0


# ---- without it --------------------------------------------------------------------------------


def test_a_missing_library_is_an_error_with_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pipeline_dp", None)
    with pytest.raises(SpecError, match=r"PipelineDP cannot be imported .*make setup"):
        compute(Run("facebook", "pipelinedp", slots=5, trials=1))


def test_a_broken_library_is_an_error_with_its_cause(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "pipeline_dp.py").write_text("import pydp_that_was_never_built\n")
    monkeypatch.delitem(sys.modules, "pipeline_dp", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SpecError, match=r"pydp_that_was_never_built.*make setup"):
        release_once(everybody(1, 1, 1.0), 1, Limits(1, 1), EPSILON)
    sys.modules.pop("pipeline_dp", None)


def test_a_comparison_of_everything_does_not_need_it(tmp_path: Path) -> None:
    done = adsbpc(
        "lab", "compare", "--slots", 3, "--trials", 1, "--rho", "0.5", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    named = {row["mechanism"] for row in json.loads(done.stdout)}
    assert named == set(MECHANISMS) - set(ONLY_IF_NAMED)


def test_a_plot_of_it_alone_is_refused(tmp_path: Path) -> None:
    done = adsbpc("lab", "compare", "--mechanisms", "pipelinedp", "--plot", "figure", cwd=tmp_path)
    assert done.returncode == 2
    assert "--plot draws errors over all queries" in done.stderr


# ---- limits ------------------------------------------------------------------------------------


def test_gaussian_rho_is_the_inverse_of_the_exact_analysis() -> None:
    for epsilon in (0.5, EPSILON, 20.0):
        rho = gaussian_rho(epsilon, DELTA)
        assert epsilon_of_gaussian(Fraction(rho), DELTA) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("publishers", [1, 7, 30, 200])
def test_a_guess_holds_everybody_who_is_as_heavy_as_that(publishers: int) -> None:
    limits = guessed(30, publishers)
    assert limits.publishers <= publishers
    assert limits.publishers * limits.each >= 30


@pytest.mark.parametrize(
    ("found", "publishers", "limits"),
    [
        (everybody(5_000, 1, 31.0), 1, Limits(1, 32)),
        (everybody(5_000, 4, 1.0), 4, Limits(4, 1)),
        (everybody(5_000, 4, 1.0), 50, Limits(4, 1)),
    ],
    ids=["one publisher", "all publishers", "few of many"],
)
def test_limits_are_found_where_everybody_is_alike(
    found: UserTotals, publishers: int, limits: Limits
) -> None:
    assert in_hindsight(found, publishers, 1.0) == limits
    rng = np.random.default_rng(1)
    assert chosen_privately(found, publishers, 1.0, 3.0, rng) == limits


def test_few_people_do_not_move_the_private_limits() -> None:
    """What one could learn of three people from the limits is what the histogram's noise hides."""
    usual = everybody(5_000, 1, 2.0)
    some = rows([(user, 0, 2.0) for user in range(5_000)] + [(k, 0, 900.0) for k in range(-3, 0)])
    some = UserTotals(some.user + 3, some.cell, some.conversions)
    found = [
        chosen_privately(each, 1, 1.0, 3.0, np.random.default_rng(seed))
        for each in (usual, some)
        for seed in range(20)
    ]
    assert set(found) == {Limits(1, 2)}


def test_nobody_at_all_has_limits() -> None:
    nobody = UserTotals(np.zeros(0, dtype=int), np.zeros(0, dtype=int), np.zeros(0))
    assert chosen_privately(nobody, 3, 1.0, 3.0, np.random.default_rng(1)) == Limits(1, 1)
