"""A logistic model of conversion on the publishers that a user saw, from counts of coalitions."""

from __future__ import annotations

import numpy as np

from adsbpc.attribution.games import Reals

_STEPS = 60
_LARGEST = 8.0


def logistic_fit(seen: Reals, converting: Reals, users: Reals, noise: float) -> Reals:
    """Intercept and one effect for each publisher: the log odds of converting of users who saw what
    a row of `seen` says.

    Newton's method on the likelihood, which is linear in the counts: noise in them leaves no lean.
    A ridge keeps effects that the data says nothing about at 0, and all of them between -8 and 8.
    """
    design = np.column_stack([np.ones(len(seen)), seen])
    ridge = np.full(design.shape[1], 1e-6 + noise)
    ridge[0] = 1e-6
    overall = converting.sum() / users.sum() if users.sum() > 0 else 0.0
    overall = float(np.clip(overall, 1e-4, 1 - 1e-4))
    effects = np.zeros(design.shape[1])
    effects[0] = np.log(overall / (1 - overall))
    for _ in range(_STEPS):
        predicted = sigmoid(design @ effects)
        slope = design.T @ (converting - users * predicted) - ridge * effects
        slope[0] += ridge[0] * effects[0]
        bend = (design * (users * predicted * (1 - predicted))[:, None]).T @ design
        step = _newton_step(bend + np.diag(ridge), slope)
        effects = np.clip(effects + np.clip(step, -1.0, 1.0), -_LARGEST, _LARGEST)
        if np.abs(step).max() < 1e-10:
            break
    return effects


def _newton_step(bend: Reals, slope: Reals) -> Reals:
    """Noise can make the likelihood bend the wrong way, or not at all, where there is little
    data."""
    values, vectors = np.linalg.eigh(bend)
    return np.asarray(vectors @ (vectors.T @ slope / np.maximum(values, 1e-3)))


def sigmoid(x: Reals) -> Reals:
    return np.asarray(1 / (1 + np.exp(-x)))
