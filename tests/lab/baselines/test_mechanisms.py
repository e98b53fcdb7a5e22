"""The lab's mechanisms against closed forms and known worlds."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from adsbpc.lab.baselines import bounded
from adsbpc.lab.baselines.published import PublishedAdsBPC, _Bounds, _Watch
from adsbpc.lab.baselines.strategies import dyadic_ranges
from adsbpc.lab.baselines.stream import _trees, stream, tree_scale
from adsbpc.lab.catalogue import MECHANISMS, ONLY_IF_NAMED
from adsbpc.lab.datasets import DATASETS, load_dataset
from adsbpc.lab.evaluation import Outcome, Prepared, Setting, scores_of
from adsbpc.model import Adjacency
from adsbpc.model.release_spec import AdsBPCSection
from adsbpc.privacy import pure_epsilon
from tests.effort import first
from tests.lab.worlds import prepared

ADD = Adjacency.ADD_REMOVE
# All that answer every query; test_pipelinedp.py has the others.
ALWAYS = {name: each for name, each in MECHANISMS.items() if name not in ONLY_IF_NAMED}


def setting(
    slots: int = 31, rho: str = "1", queries: str = "prefix", adjacency: Adjacency = ADD
) -> Setting:
    return Setting(Fraction(rho), adjacency, slots, queries)


def small(name: str) -> Prepared:
    users = {"facebook": None}.get(name, 300 if name in ("zipf", "normal", "uniform") else 2_000)
    return Prepared(load_dataset(name, 31, 1, users))


GAMMAS = np.r_[np.ones(30), 7.0] ** 2


def ipa_error(gs: int, n: int = 31) -> float:
    return gs / sqrt(2) * sqrt(float(GAMMAS @ np.arange(1, n + 1))) / n


def tree_error(gs: int, n: int = 31) -> float:
    counts = np.array([k.bit_count() for k in range(1, n + 1)])
    return gs * sqrt(5 / 2) * sqrt(float(GAMMAS @ counts)) / n


def root_error(gs: int, n: int = 31) -> float:
    column = np.cumprod(np.r_[1.0, [(2 * k - 1) / (2 * k) for k in range(1, n)]])
    squares = np.cumsum(column**2)
    return gs * sqrt(squares[-1] / 2) * sqrt(float(GAMMAS @ squares)) / n


@pytest.mark.parametrize("name", DATASETS)
@pytest.mark.parametrize(
    ("mechanism", "closed_form"), [("ipa", ipa_error), ("bin", tree_error), ("umm", root_error)]
)
def test_global_mechanisms_agree_with_their_closed_forms(
    name: str, mechanism: str, closed_form: object
) -> None:
    """Within three standard errors on every dataset; the formulas are written out again here."""
    data = small(name)
    trials = 400 if len(data.layout) == 1 else 30
    outcome = MECHANISMS[mechanism](data, setting(), trials, 1)
    found = scores_of(outcome, data, setting())
    expected = closed_form(data.dataset.largest_user)  # type: ignore[operator]
    assert found.wrmse_stderr is not None
    assert found.noise == pytest.approx(expected, abs=3 * found.wrmse_stderr)
    assert abs(found.wrmse - found.wrmse_closed_form) <= 3 * found.wrmse_stderr


def test_the_figures_of_ipa() -> None:
    """44.7 on Criteo, as the paper's metric has it."""
    assert round(ipa_error(44), 1) == 44.7


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "facebook" else [pytest.mark.slow])
        for name in DATASETS
    ],
)
def test_mmbpc_agrees_with_its_closed_form(name: str) -> None:
    """The noise of each trial over what its bounds r say: r times the sensitivity of a user who is
    active every day, ||B 1||, times the rows of Q diag(r) B^-1."""
    data, trials = small(name), 200 if name == "facebook" else 20
    outcome = MECHANISMS["mmbpc"](data, setting(), trials, 1)
    squares = (outcome.noise[:, -1] ** 2).mean(axis=1) / outcome.variances[:, -1]
    spread = squares.std(ddof=1) / sqrt(trials)
    assert abs(squares.mean() - 1) <= 3 * spread
    column = np.cumprod(np.r_[1.0, [(2 * k - 1) / (2 * k) for k in range(1, 31)]])
    everyday = float((np.cumsum(column) ** 2).sum())
    # Seven tenths of rho measure; with a bound of 1 on every slot, rows of Q B^-1 are the square
    # root's own, and larger bounds make more noise.
    least = everyday / (2 * 0.7) * float((column**2).sum())
    assert (outcome.variances[:, -1] >= least * (1 - 1e-6)).all()


def test_mmbpc_spends_seven_tenths_on_measurement() -> None:
    """Nobody contributes more than 1, so bounds are 1 where noise does not fool the tracker."""
    data = prepared([(u, s, 0) for u in range(30_000) for s in range(1, 32)], 31, 1, 31)
    outcome = MECHANISMS["mmbpc"](data, setting(rho="400"), 1, 1)
    column = np.cumprod(np.r_[1.0, [(2 * k - 1) / (2 * k) for k in range(1, 31)]])
    everyday = float((np.cumsum(column) ** 2).sum())
    expected = everyday / (2 * 0.7 * 400) * np.cumsum(column**2)
    assert outcome.variances[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", first(1, ["facebook", "criteo", "zipf"]))
@pytest.mark.parametrize("mechanism", first(1, ["adsbpc-svt", "adsbpc", "adsbpc-published"]))
def test_bounded_mechanisms_agree_with_their_variances(name: str, mechanism: str) -> None:
    data = small(name)
    outcome = MECHANISMS[mechanism](data, setting(), 60 if name == "facebook" else 8, 1)
    # Noise over its stated standard deviation: the root mean square is 1 for any bounds.
    ratio = outcome.noise / np.sqrt(outcome.variances)[:, :, None]
    by_trial = (ratio[:, -1] ** 2).mean(axis=1)
    spread = max(by_trial.std(ddof=1) / sqrt(len(by_trial)), 0.02)
    assert by_trial.mean() == pytest.approx(1, abs=4 * spread)


@pytest.mark.parametrize("bound", [1, 3])
def test_a_constant_bound_costs_what_the_mathematics_says(bound: int) -> None:
    """5.643 r at rho = 1, n = 31 and a last weight of 7."""
    data = small("facebook")
    outcome = bounded.constant_bound(bound)(data, setting(), 3, 1)
    assert scores_of(outcome, data, setting()).wrmse_closed_form == pytest.approx(
        sqrt((5.643 * bound) ** 2 + scores_of(outcome, data, setting()).bias ** 2), rel=1e-3
    )


def test_the_oracle_takes_the_best_constant_bound() -> None:
    data = small("criteo")
    best = scores_of(bounded.oracle(data, setting(), 2, 1), data, setting()).wrmse_closed_form
    for bound in range(1, 8):
        outcome = bounded.constant_bound(bound)(data, setting(), 2, 1)
        assert best <= scores_of(outcome, data, setting()).wrmse_closed_form + 1e-9


@pytest.mark.parametrize("each", [40, 700])
def test_the_oracle_finds_large_bounds(each: int) -> None:
    data = prepared([(u, 1, 0) for u in range(20) for _ in range(each)], 1, 1, each)
    best = scores_of(bounded.oracle(data, setting(1), 2, 1), data, setting(1)).wrmse_closed_form
    exact = bounded.constant_bound(each)(data, setting(1), 2, 1)
    assert best <= scores_of(exact, data, setting(1)).wrmse_closed_form + 1e-9
    nobody = prepared([], 3, 1, 1)
    assert bounded.oracle(nobody, setting(3), 2, 1).bias.max() == 0


def test_noise_has_nothing_to_do_with_the_data_of_the_same_seed() -> None:
    data = Prepared(load_dataset("normal", 3, 1, 50))
    noise = MECHANISMS["ipa"](data, setting(3), 1, 1).noise[0, 0]
    drawn = np.random.default_rng(1).standard_normal(noise.size)
    assert abs(np.corrcoef(noise, drawn)[0, 1]) < 0.2


def test_adsbpc_in_the_lab_is_the_released_mechanism() -> None:
    """With a fixed bound both have the same noise and the same bias."""
    data = small("facebook")
    section = AdsBPCSection(bounds="fixed", bound=2)
    ours = bounded.adsbpc(section)(data, setting(), 3, 1)
    constant = bounded.constant_bound(2)(data, setting(), 3, 1)
    assert ours.bias[0] == pytest.approx(constant.bias[0])
    assert ours.variances[0] == pytest.approx(constant.variances[0], rel=1e-6)


def test_substitution_costs_more_for_everybody() -> None:
    data = prepared([(u, s, u % 2) for u in range(50) for s in (1, 2, 3)], 4, 2, 3)
    for name, mechanism in ALWAYS.items():
        one = mechanism(data, setting(4), 4, 1)
        two = mechanism(data, setting(4, adjacency=Adjacency.SUBSTITUTE), 4, 1)
        if name != "adsbpc-published":
            assert two.variances.mean() > 1.5 * one.variances.mean(), name
        else:
            # The listings do not know the difference.
            assert two.variances.mean() == one.variances.mean()


@pytest.mark.parametrize("queries", ["prefix", "sliding", "slot"])
def test_every_mechanism_answers_every_workload(queries: str) -> None:
    data = prepared([(u, 1 + u % 9, u % 2) for u in range(80)], 9, 2, 1)
    for mechanism in ALWAYS.values():
        outcome = mechanism(data, setting(9, queries=queries), 3, 1)
        assert outcome.noise.shape == (3, 9, 2)
        assert np.isfinite(outcome.noise).all()
        assert (outcome.variances > 0).all()
        # Everybody converts once: nothing is cut where a bound is at least 1.
        assert np.abs(outcome.bias).max() <= 80


@pytest.mark.slow
def test_the_same_seed_gives_the_same_results() -> None:
    data = small("facebook")
    for mechanism in ALWAYS.values():
        one, two = (mechanism(data, setting(), 2, 5) for _ in range(2))
        assert (one.noise == two.noise).all()
        other = mechanism(data, setting(), 2, 6)
        assert (one.noise != other.noise).any()


def test_stream_doubles_its_bound_when_users_pass_it() -> None:
    heavy = [(u, s, 0) for u in range(4_000) for s in range(1, 9)]
    data = prepared(heavy, 8, 1, 8)
    trees = _trees(data, setting(8, rho="50"), 3, 1)
    assert [tree.bound for tree in trees] == [1, 2, 4, 8]
    assert [tree.first for tree in trees] == [1, 2, 3, 5]
    outcome = stream(data, setting(8, rho="50"), 2, 1)
    # At the last slot the newest tree holds everything, also what earlier trees had cut.
    assert outcome.bias[0, -1, 0] == 0
    quiet = prepared([(u, 1, 0) for u in range(50)], 8, 1, 8)
    assert len(_trees(quiet, setting(8), 3, 1)) == 1


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_trees_of_stream_stay_within_their_budget(adjacency: Adjacency) -> None:
    """All nodes of a tree that starts late, for every user with bound conversions in one leaf or,
    under substitution, in two."""
    slots, bound, rho = 11, 4, 0.01
    for start in (1, 4, 8, 11):
        leaves = slots - start + 1
        nodes = dyadic_ranges(leaves)
        matrix = np.array(
            [[a <= leaf <= b for leaf in range(1, leaves + 1)] for a, b in nodes], dtype=float
        )
        users = [np.zeros(leaves), *(bound * row for row in np.eye(leaves))]
        others = users if adjacency is Adjacency.SUBSTITUTE else users[:1]
        largest = max(float(((matrix @ (a - b)) ** 2).sum()) for a in users for b in others)
        scale = tree_scale(bound, leaves, rho, adjacency)
        assert largest / (2 * scale**2) <= rho * (1 + 1e-9)


def test_stream_spends_half_on_its_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """And half on one sparse vector, whatever the number of doublings."""
    budgets: list[float] = []
    asked: list[Fraction] = []

    def scale(bound: int, leaves: int, rho: float, adjacency: Adjacency) -> float:
        budgets.append(rho)
        return tree_scale(bound, leaves, rho, adjacency)

    def epsilon(rho: Fraction) -> Fraction:
        asked.append(rho)
        return pure_epsilon(rho)

    monkeypatch.setattr("adsbpc.lab.baselines.stream.tree_scale", scale)
    monkeypatch.setattr("adsbpc.lab.baselines.stream.pure_epsilon", epsilon)
    data = prepared([(u, s, 0) for u in range(4_000) for s in range(1, 9)], 8, 1, 8)
    stream(data, setting(8, rho="50"), 1, 1)
    assert sum(budgets) == pytest.approx(25)
    assert asked == [25]


class Scripted:
    """A generator that tells which scales it was asked for, and draws nothing."""

    def __init__(self) -> None:
        self.scales: list[float] = []

    def laplace(self, _middle: float, scale: float) -> float:
        self.scales.append(scale)
        return 0.0


def test_the_published_sparse_vector_is_the_listing() -> None:
    """Noise 4k/epsilon on queries, 2/epsilon on a threshold that is drawn after each report."""
    rng = Scripted()
    watch = _Watch(50, 0.5, 2, rng)  # type: ignore[arg-type]
    assert [watch.passes(query) for query in (10, 60, 60, 60)] == [False, True, True, False]
    threshold, query = 2 / 0.5, 4 * 2 / 0.5
    assert rng.scales == [threshold, query, query, threshold, query, threshold]


def test_the_published_quantile_leaves_out_the_first_interval() -> None:
    """{1, 2} can come out below 2, {2, 2} never: its support depends on the data."""
    lowest = {}
    for name, counts in (("apart", (1, 2)), ("together", (2, 2))):
        rows = [(user, 1, 0) for user, count in enumerate(counts) for _ in range(count)]
        data = prepared(rows, 1, 1, 5)
        found = [
            _Bounds(PublishedAdsBPC(), data, 1.0, np.random.default_rng(seed)).all()[0]
            for seed in range(200)
        ]
        lowest[name] = min(found)
    assert lowest["apart"] < 2 <= lowest["together"]


def test_published_bounds_keep_whole_conversions() -> None:
    """A bound between 1 and 2 keeps two conversions and is charged for less."""
    data = prepared([(u, 1, 0) for u in range(40) for _ in range(2)], 1, 1, 5)
    outcome = PublishedAdsBPC(quantile_only=True, percent=0.01)(data, setting(1), 30, 1)
    assert set(np.unique(outcome.bias)) <= {0.0, -40.0}


def test_scores_of_known_errors() -> None:
    data = prepared([(0, 1, 0), (1, 2, 1)], 2, 2, 1)
    bias = np.zeros((1, 2, 2))
    noise = np.array([[[3.0, 0.0], [4.0, 0.0]], [[0.0, 0.0], [0.0, 2.0]]])
    found = scores_of(Outcome(bias, noise, np.array([[1.0, 5.0]])), data, setting(2))
    squares = np.array([[9 + 49 * 16, 0], [0, 49 * 4]])
    assert found.wrmse == pytest.approx(sqrt(squares.mean()) / 2)
    assert found.wrmse_mean_of_roots == pytest.approx(np.sqrt(squares).mean() / 2)
    assert found.bias == 0
    assert found.noise == found.wrmse
    assert found.max_variance == 5
    assert found.wrmse_closed_form == pytest.approx(sqrt(1 + 49 * 5) / 2)
    means = squares.mean(axis=1)
    assert found.wrmse_stderr == pytest.approx(means.std(ddof=1) / sqrt(2) / (2 * found.wrmse * 4))


def test_errors_of_views_are_those_of_sums() -> None:
    """Of cells of 50 publishers in 20 countries: every country's error is in its publisher's."""
    data = Prepared(load_dataset("countries", 2, seed=1, users=100))
    noise = np.zeros((1, 2, 1_000))
    # Two countries of the third publisher, and one of the last.
    noise[0, 1, [40, 41, 999]] = 3.0, 1.0, -2.0
    outcome = Outcome(np.zeros_like(noise), noise, np.ones((1, 2)))
    found = scores_of(outcome, data, setting(2))
    assert list(found.coarser) == ["publisher", "total"]
    assert found.last_rmse == pytest.approx(sqrt((9 + 1 + 4) / 1_000))
    assert found.coarser["publisher"].last_rmse == pytest.approx(sqrt((16 + 4) / 50))
    assert found.coarser["total"].last_rmse == pytest.approx(2.0)
    assert found.coarser["publisher"].wrmse == pytest.approx(sqrt(49 * 20 / 50) / 2)
    assert found.coarser["publisher"].noise == found.coarser["publisher"].wrmse
    assert found.coarser["total"].bias == 0
