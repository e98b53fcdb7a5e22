"""What an experiment is run on: contributions, and the facts about them that count as public."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adsbpc.contributions.arrays import ArrayContributions
from adsbpc.model import UNITS_PER_CONVERSION, Layout
from adsbpc.model.layout import Dimension

Whole = NDArray[np.integer]


@dataclass(frozen=True)
class Dataset:
    """Contributions with what a mechanism may know of them without asking."""

    name: str
    label: str  # for people
    users: int  # people in it, with or without conversions
    slots: int
    publishers: tuple[str, ...]
    largest_user: int  # GS of the paper: the conversions of one user that baselines assume at most
    quantile_limit: int  # Lambda of the paper: where the search for a bound ends
    contributions: ArrayContributions


def dataset_of(
    name: str,
    label: str,
    users: int,
    slots: int,
    publishers: tuple[str, ...],
    largest_user: int,
    *,
    user: Whole,
    day: Whole,
    publisher: Whole,
    weight: Whole | None = None,
    quantile_limit: int = 10,
    countries: tuple[str, ...] = (),
) -> Dataset:
    """From rows with days counted from 0; without weights every row is one whole conversion. With
    countries, `publisher` numbers cells of publishers and countries.

    Rows are put in the order of days here, where days are small numbers: what would be a sort of
    wide integers later is a pass over digits now.
    """
    order = np.argsort(day.astype(np.min_scalar_type(slots)), kind="stable")
    # Each name is given its sorted copy at once, so that a caller's temporary can be freed.
    user = user[order]
    publisher = publisher[order]
    day = day[order] + 1
    if weight is None:
        # One number seen as many: tens of millions of equal weights need not be stored twice.
        weight = np.broadcast_to(np.int64(UNITS_PER_CONVERSION), user.shape)
    else:
        weight = weight[order]
    del order
    layout = Layout.of_publishers(publishers)
    if countries:
        layout = Layout((*layout.dimensions, Dimension("country", countries)), (0, 0, 1))
    contributions = ArrayContributions(user, day, publisher, weight, slots, layout)
    return Dataset(
        name, label, users, slots, publishers, largest_user, quantile_limit, contributions
    )


def numbered(prefix: str, count: int, digits: int = 4) -> tuple[str, ...]:
    return tuple(f"{prefix}-{i:0{digits}d}" for i in range(1, count + 1))
