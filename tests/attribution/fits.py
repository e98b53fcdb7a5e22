"""Fits for tests: from journeys of users, from any counts, with any parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from adsbpc.attribution import CountSet, FittedModel, count_set, fit_of, fitted_model
from adsbpc.attribution.counts import HOLDOUT, Coalitions
from adsbpc.attribution.estimation import EFFECT_PARTS, RATE_PARTS, Counted
from adsbpc.attribution.fit_reference import cells_of
from adsbpc.attribution.fits import Integers
from adsbpc.attribution.fitted_reference import member_units
from adsbpc.model import UNITS_PER_CONVERSION, Fit

# Every model with every order that it may have.
MODELS = [
    ("shapley", 1),
    ("shapley_ordered", 1),
    ("incremental_value", 1),
    ("probabilistic", 1),
    ("probabilistic", 2),
    ("logistic", 1),
    ("markov", 1),
    ("markov", 2),
    ("markov", 3),
]

# A journey of a user, touch by touch, and whether it converted.
User = tuple[tuple[int, ...], bool]


def exact_counts(counts: CountSet, users: Iterable[User], held_out: Iterable[bool] = ()) -> Counted:
    """Counts without noise. `held_out` says of each user of the holdout group if it converted."""
    values = np.zeros(len(counts.cells))
    for journey, converted in users:
        for cell, amount in cells_of(counts, journey, converted).items():
            values[counts.positions[cell]] += amount
    for converted in held_out:
        values[counts.positions[2 * HOLDOUT + converted]] += 1
    return Counted(counts, values, 0.0)


def redraw(scale: float, count: int) -> Integers:
    return np.rint(np.random.default_rng(1).normal(0.0, scale, count)).astype(np.int64)


def names(players: int) -> tuple[str, ...]:
    return (*(f"P-{player}" for player in range(1, players)), "other")


def fit_from(
    model: str,
    order: int,
    values: Sequence[int] | Integers,
    publishers: tuple[str, ...],
    *,
    holdout: bool = False,
    full_weight: int = 1,
    scale: float = 0.0,
) -> Fit:
    """A fit to counts, as a campaign makes it, written and read again."""
    counts = count_set(model, order, len(publishers), holdout=holdout)
    made = fit_of(
        model, order, publishers, 3, counts, np.array(values, dtype=np.int64), full_weight, scale,
        redraw,
    )  # fmt: skip
    assert Fit.from_text(made.to_text()) == made
    return made


def any_fit(model: str, order: int, publishers: tuple[str, ...], seed: int) -> Fit:
    """A fit to counts of nobody in particular."""
    cells = len(count_set(model, order, len(publishers)).cells)
    values = np.random.default_rng(seed).integers(0, 2_000, cells)
    return fit_from(model, order, values, publishers)


def lengths(model: str, players: int) -> dict[str, tuple[int, int, int]]:
    """Names of a model's parameters, how many numbers they have, the least and the largest."""
    match model:
        case "incremental_value" | "markov":
            return {"weights": (players, 0, RATE_PARTS)}
        case "probabilistic":
            return {
                "rates": (players, 0, RATE_PARTS),
                "added": (players**2, -2 * RATE_PARTS, RATE_PARTS),
            }
        case "logistic":
            return {"effects": (players + 1, -8 * EFFECT_PARTS, 8 * EFFECT_PARTS)}
    largest = Coalitions(players).largest
    sizes = [size for size in range(1, largest + 1) for _ in combinations(range(players), size)]
    if model == "shapley":
        return {"units": (sum(sizes), 0, UNITS_PER_CONVERSION // players)}
    return {"rates": (1 + len(sizes), 0, RATE_PARTS)}


@st.composite
def parameters(draw: st.DrawFn, publishers: tuple[str, ...]) -> Fit:
    """Any parameters that a file may hold, with zeros and extremes among them."""
    model, order = draw(st.sampled_from(MODELS))
    found = {}
    for name, (count, least, most) in lengths(model, len(publishers)).items():
        number = st.integers(least, most) | st.sampled_from([0, least, most])
        found[name] = tuple(draw(st.lists(number, min_size=count, max_size=count)))
    return Fit.model_validate(
        {"model": model, "order": order, "publishers": publishers, "parameters": found}
    )


def check_units(model: FittedModel, members: Sequence[int]) -> list[int]:
    """Credits of a journey are whole units >= 0, of at most one conversion."""
    units = member_units(model, members)
    assert all(isinstance(unit, int) and unit >= 0 for unit in units)
    assert sum(units) <= UNITS_PER_CONVERSION
    return units


def check_fit(fit: Fit, journeys: Iterable[Sequence[int]]) -> None:
    """What was fitted is accepted when it is read again, and gives credits and shares."""
    model = fitted_model(Fit.from_text(fit.to_text()))
    for members in journeys:
        check_units(model, members)
    shares: dict[str, float] = {}
    for each in fit.comparison:
        assert 0 <= each.share <= 1
        assert 0 <= each.standard_error < np.inf
        shares[each.model] = shares.get(each.model, 0.0) + each.share
    assert all(total <= 1 + 1e-9 for total in shares.values())
