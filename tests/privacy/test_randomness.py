"""Noise as a distribution: chi-square tests with a stated false-alarm rate.

Each test raises a false alarm with probability FALSE_ALARM; the secure source has no seed, so its
tests draw anew every time.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from math import exp
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import adsbpc.privacy
from adsbpc.errors import PrivacyError
from adsbpc.privacy import Randomness, SecureRandomness, SeededRandomness, source_of
from adsbpc.privacy.randomness import check_scale
from tests.effort import examples

FALSE_ALARM = 1e-8
DRAWS = 20_000
# Draws that come one at a time, each from a sampler that is made anew.
ONE_BY_ONE = examples(5_000, DRAWS)
SOURCES: list[Randomness] = [SecureRandomness(), SeededRandomness(7)]


def check(samples: list[int], weight: Callable[[int], float], reach: int) -> None:
    """Compare samples with probabilities proportional to weight(x) for |x| <= reach; the cells
    with few expected samples are merged."""
    support = np.arange(-reach, reach + 1)
    probabilities = np.array([weight(int(x)) for x in support])
    probabilities /= probabilities.sum()
    expected = probabilities * len(samples)
    observed = np.bincount(np.clip(samples, -reach, reach) + reach, minlength=support.size)
    rich = expected >= 10
    if 0 < expected[~rich].sum() < 10:
        # Too few even together: the smallest of the others join them.
        rich = expected > expected[rich].min()
    cells = np.append(expected[rich], expected[~rich].sum())
    found = np.append(observed[rich], observed[~rich].sum())
    keep = cells > 0
    statistic = float(((found[keep] - cells[keep]) ** 2 / cells[keep]).sum())
    assert statistic < stats.chi2.isf(FALSE_ALARM, keep.sum() - 1)


@pytest.mark.parametrize("randomness", SOURCES, ids=["secure", "seeded"])
@pytest.mark.parametrize("scale", [0.7, 3.5, 12.0])
def test_discrete_gaussian(randomness: Randomness, scale: float) -> None:
    samples = randomness.gaussian(scale, DRAWS).tolist()
    check(samples, lambda x: exp(-(x**2) / (2 * scale**2)), int(10 * scale) + 3)


@pytest.mark.parametrize("randomness", SOURCES, ids=["secure", "seeded"])
@pytest.mark.parametrize("scale", [0.5, 4.0])
def test_discrete_laplace(randomness: Randomness, scale: float) -> None:
    samples = [randomness.laplace(scale) for _ in range(ONE_BY_ONE)]
    check(samples, lambda x: exp(-abs(x) / scale), int(30 * scale) + 5)


@pytest.mark.parametrize("randomness", SOURCES, ids=["secure", "seeded"])
def test_exponential_choice(randomness: Randomness) -> None:
    scores = [0, 3, -2, 5, 5, 1]
    samples = [randomness.choose(scores, 2.5) for _ in range(ONE_BY_ONE)]
    check(samples, lambda x: exp(scores[x] / 2.5) if 0 <= x < len(scores) else 0.0, 6)


@pytest.mark.parametrize("randomness", SOURCES, ids=["secure", "seeded"])
@pytest.mark.parametrize("scale", [1e3, 1e9])
def test_wide_gaussians(randomness: Randomness, scale: float) -> None:
    samples = randomness.gaussian(scale, DRAWS).astype(np.float64) / scale
    assert stats.kstest(samples, "norm").pvalue > FALSE_ALARM


def test_a_skewed_sampler_is_found_out() -> None:
    """The test can fail: rounding towards zero is caught."""
    rng = np.random.default_rng(1)
    samples = np.trunc(rng.normal(0, 3.5, DRAWS)).astype(int).tolist()
    with pytest.raises(AssertionError):
        check(samples, lambda x: exp(-(x**2) / (2 * 3.5**2)), 40)


def test_seeds_repeat_and_secure_noise_does_not() -> None:
    first, again = (SeededRandomness(3).gaussian(100.0, 50) for _ in range(2))
    assert (first == again).all()
    secure = SecureRandomness()
    assert (secure.gaussian(1e6, 50) != secure.gaussian(1e6, 50)).any()


class Subclass(SecureRandomness):
    """Secure but for one sampler."""

    def laplace(self, scale: float) -> int:
        return 0


class Pretender(SeededRandomness):
    """Says of itself what a ledger wants to hear."""

    source = "opendp"


def test_sources_are_named_by_their_type() -> None:
    assert source_of(SecureRandomness()) == "opendp"
    assert source_of(SeededRandomness(5)) == "adsbpc.privacy.randomness.SeededRandomness"
    for other in (Subclass(), Pretender(5)):
        assert source_of(other) == f"{__name__}.{type(other).__name__}"
    # Nor can the samplers of one that is secure be swapped.
    with pytest.raises(AttributeError):
        SecureRandomness().laplace = lambda scale: 0  # type: ignore[method-assign]


@pytest.mark.parametrize("scale", [0.0, -1.0, 2.0**51, float("inf"), float("nan")])
def test_scales_that_samplers_would_cut_off_are_refused(scale: float) -> None:
    with pytest.raises(PrivacyError, match="noise scale"):
        check_scale(scale)


def test_there_is_one_door() -> None:
    """No other file of the package draws noise, and the audited room stays small."""
    root = Path(inspect.getfile(adsbpc.privacy)).parent
    for path in root.parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        rooms = set(path.relative_to(root.parent).parts)
        # Bands for all looks are found by simulation with a fixed seed, which is no noise.
        if path.name in ("randomness.py", "looks.py") or "lab" in rooms:
            continue
        for word in ("np.random", "numpy.random", "import random", "from random", "secrets",
                     "urandom", "opendp"):  # fmt: skip
            # Keys, nonces and names of files have to be random too; noise may not come from there.
            if word == "secrets" and rooms & {"service", "ledger", "cli"}:
                continue
            imported = [line for line in text.splitlines() if word in line and "import" in line]
            assert not imported, (path, imported)
            assert f"{word}." not in text or word == "opendp", (path, word)
    # With strategies of long campaigns; 1,500 without them.
    assert sum(len(p.read_text().splitlines()) for p in root.glob("*.py")) < 1_600
