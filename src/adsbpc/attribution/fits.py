"""From counts to a fit that can be published, and from a fit to its model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from adsbpc.attribution.comparison import model_shares
from adsbpc.attribution.counts import CountSet, count_set, set_name
from adsbpc.attribution.estimation import EFFECT_PARTS, RATE_PARTS, Counted, estimate
from adsbpc.attribution.fitted import (
    CoalitionRatesInOrder,
    CoalitionUnits,
    FittedModel,
    LogisticEffects,
    PairWeights,
    PublisherWeights,
)
from adsbpc.errors import SpecError
from adsbpc.model.fit import Fit, ModelShare
from adsbpc.model.grid import UNITS_PER_CONVERSION

Integers = NDArray[np.int64]

# So many times noise is added once more, to see how far it moves the shares of a comparison, or
# parameters; sets with more counts than this are not compared, which would take minutes.
_REDRAWN, _REDRAWN_PARAMETERS = 16, 4
_MOST_COMPARED = 2**15


def fit_of(
    model: str,
    order: int,
    publishers: tuple[str, ...],
    slots: int,
    counts: CountSet,
    values: Integers,
    full_weight: int,
    scale: float,
    redraw: Callable[[float, int], Integers],
) -> Fit:
    """A fit from counts with noise of `scale`, in units of which a short journey has `full_weight`.

    `redraw` gives noise of a scale that hides nobody: it only shows how sure a comparison is.
    """
    counted = Counted(counts, values / full_weight, scale / full_weight)
    parameters = estimate(model, order, counted)

    def moved() -> Counted:
        again = counted.values + redraw(scale, len(values)) / full_weight
        return Counted(counts, again, counted.noise)

    shares = model_shares(counted) if len(values) <= _MOST_COMPARED else {}
    spread: dict[tuple[str, int], list[float]] = {key: [] for key in shares}
    for _ in range(_REDRAWN if shares and scale > 0 else 0):
        for key, share in model_shares(moved()).items():
            spread[key].append(share - shares[key])
    own = [key for key in shares if key[0] == model]
    if own:
        weights = np.array([shares[key] for key in own])
        changes = np.array([spread[key] or [0.0] for key in own]).T
    else:
        # What publishers get is in proportion to these, or nearly so.
        weights = np.array(next(iter(parameters.values())), dtype=np.float64)
        again = [counted, *(moved() for _ in range(_REDRAWN_PARAMETERS if scale > 0 else 0))]
        found = [next(iter(estimate(model, order, each).values())) for each in again]
        changes = np.array(found[1:] or found) - weights
    moved_by = float(np.abs(changes).sum(axis=1).mean())
    # Noise that moves nothing has been cut off at a floor, and says as little as one that is all.
    told = scale == 0 or (moved_by > 0 and model != "shapley_ordered")
    relative = min(1.0, moved_by / max(float(np.abs(weights).sum()), moved_by, 1e-12))
    return Fit.model_validate(
        {
            "model": model,
            "order": order,
            "publishers": publishers,
            "counts": counts.name,
            "slots": slots,
            "full_weight": full_weight,
            "scale": scale,
            "values": tuple(int(value) for value in values),
            "parameters": parameters,
            "relative_noise": relative if told else None,
            "comparison": tuple(
                ModelShare(
                    name,
                    publishers[player],
                    share,
                    float(np.sqrt(np.mean(np.square(spread[name, player] or [0.0])))),
                )
                for (name, player), share in shares.items()
            ),
        }
    )


def fit_again(fit: Fit, model: str, order: int) -> Fit:
    """The fit of another model from the counts that were released: nobody is looked at again."""
    if fit.counts is None or fit.counts != set_name(model):
        have = f"counts of {fit.counts}" if fit.counts else "no counts"
        raise SpecError(
            f"model {model!r}: needs counts of {set_name(model)}, and the fit of {fit.model!r} has "
            f"{have}. It needs a fit of its own"
        )
    players = len(fit.publishers)
    sets = [count_set(model, order, players, holdout=holdout) for holdout in (False, True)]
    counts = next((each for each in sets if len(each.cells) == len(fit.values)), None)
    if counts is None:
        raise SpecError(
            f"model {model!r}, order {order}: the fit has {len(fit.values)} counts of another "
            "order. Give the order of the fit"
        )
    counted = Counted(counts, np.array(fit.values) / fit.full_weight, fit.scale / fit.full_weight)
    return fit.model_copy(
        update={
            "model": model,
            "order": order,
            "parameters": estimate(model, order, counted),
            "relative_noise": None,
        }
    )


def fitted_model(fit: Fit) -> FittedModel:
    """The model of a fit, which may come from a file: its parameters are checked."""
    players = len(fit.publishers)

    def numbers(name: str, count: int, least: int, most: int) -> tuple[int, ...]:
        found = fit.parameters.get(name)
        if found is None or len(found) != count:
            raise SpecError(
                f"parameters of {fit.model}: {name} has {len(found or ())} numbers, and "
                f"{players} publishers need {count}. Write the file with adsbpc fit"
            )
        wrong = [number for number in found if not least <= number <= most]
        if wrong:
            raise SpecError(
                f"parameters of {fit.model}: {name} has {wrong[0]}, outside {least} to {most}. "
                "Write the file with adsbpc fit"
            )
        return found

    match fit.model:
        case "incremental_value" | "markov":
            return PublisherWeights(fit.publishers, numbers("weights", players, 0, RATE_PARTS))
        case "probabilistic":
            return PairWeights(
                fit.publishers,
                numbers("rates", players, 0, RATE_PARTS),
                numbers("added", players**2, -2 * RATE_PARTS, RATE_PARTS),
            )
        case "logistic":
            most = 8 * EFFECT_PARTS
            return LogisticEffects(fit.publishers, numbers("effects", players + 1, -most, most))
        case "shapley":
            empty = CoalitionUnits(fit.publishers, ())
            count = sum(len(members) for members in empty.coalitions)
            model = CoalitionUnits(fit.publishers, numbers("units", count, 0, UNITS_PER_CONVERSION))
            _check_sums(model)
            return model
        case _:
            count = 1 + len(CoalitionRatesInOrder(fit.publishers, ()).coalitions)
            return CoalitionRatesInOrder(fit.publishers, numbers("rates", count, 0, RATE_PARTS))


def _check_sums(model: CoalitionUnits) -> None:
    for members in model.coalitions:
        if sum(model.of(members)) > UNITS_PER_CONVERSION:
            raise SpecError(
                f"parameters of shapley: the units of publishers {members} add up to more than a "
                f"conversion's {UNITS_PER_CONVERSION}. Write the file with adsbpc fit"
            )
