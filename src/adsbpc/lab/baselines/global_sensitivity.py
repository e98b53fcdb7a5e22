"""Mechanisms that assume a public bound GS on all conversions of one user, over the whole campaign.

Formal guarantee of each: rho-zCDP for one user whose conversions beyond the first GS are cut, by
the Gaussian mechanism with the L2 sensitivity of `strategies.global_sensitivity`. Only the strategy
differs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adsbpc.lab.baselines import strategies
from adsbpc.lab.baselines.strategies import BaselineStrategy
from adsbpc.lab.evaluation import NOISE_STREAM, Outcome, Prepared, Setting
from adsbpc.model import UNITS_PER_CONVERSION


@dataclass(frozen=True)
class GlobalSensitivity:
    """`times` multiplies the noise: what a mechanism costs that is charged more than it needs."""

    strategy_of: Callable[[Setting], BaselineStrategy]
    times: float = 1.0

    def __call__(self, data: Prepared, setting: Setting, trials: int, seed: int) -> Outcome:
        strategy = self.strategy_of(setting)
        largest, publishers = data.dataset.largest_user, len(data.layout)
        sensitivity = strategies.global_sensitivity(
            strategy.matrix, largest, publishers, setting.adjacency
        )
        scale = self.times * sensitivity / np.sqrt(2 * float(setting.rho))
        kept = data.totals_lifetime(largest * UNITS_PER_CONVERSION) / UNITS_PER_CONVERSION
        bias = setting.workload.answers(kept - data.truth)
        rng = np.random.default_rng([seed, NOISE_STREAM])
        noise = scale * rng.standard_normal((trials, len(strategy.matrix), publishers))
        variances = scale**2 * (strategy.answers**2).sum(axis=1)
        return Outcome(bias[None], strategy.answers @ noise, variances[None])


# Independent noise on every slot (Case et al. 2023), made user-level by group privacy.
IPA = GlobalSensitivity(lambda setting: strategies.identity(setting.workload))
# Independent noise on the nodes of a binary tree.
BINARY_TREE = GlobalSensitivity(lambda setting: strategies.binary_tree(setting.workload))
# The matrix mechanism with the square root of the prefix sums.
SQUARE_ROOT = GlobalSensitivity(lambda setting: strategies.square_root(setting.workload))
# The matrix mechanism with the strategy that makes the weighted sum of squared errors least.
OPTIMAL = GlobalSensitivity(lambda setting: strategies.optimal(setting.workload, setting.weights))
