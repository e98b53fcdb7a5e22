"""Why a fit has to be private: fitted the usual way, one person moves everybody's credits."""

from __future__ import annotations

from collections import Counter
from math import hypot

import numpy as np

from adsbpc.attribution import fit_of, fitted_model
from adsbpc.attribution.counts import Coalitions
from adsbpc.attribution.fit_reference import cells_of
from adsbpc.attribution.fitted_reference import member_units
from adsbpc.model import UNITS_PER_CONVERSION
from adsbpc.privacy.randomness import Integers

CONVERSIONS = 1000
Journey = tuple[tuple[int, ...], bool]


def totals(people: Counter[Journey]) -> tuple[float, ...]:
    """Conversions of both publishers, with Shapley values that are fitted to the same people."""
    counts = Coalitions(2)
    values = np.zeros(len(counts.cells), dtype=np.int64)
    for (journey, converted), number in people.items():
        for cell in cells_of(counts, journey, converted):
            values[counts.positions[cell]] += number

    def no_noise(_scale: float, size: int) -> Integers:
        return np.zeros(size, dtype=np.int64)

    fit = fit_of("shapley", 1, ("A", "B"), 1, counts, values, 1, 0.0, no_noise)
    model = fitted_model(fit)
    found = [0.0, 0.0]
    for (journey, converted), number in people.items():
        for member, units in zip(journey, member_units(model, journey), strict=True):
            found[member] += converted * number * units / UNITS_PER_CONVERSION
    return tuple(found)


def test_one_person_more_moves_the_totals_by_seven_tenths_of_all_conversions() -> None:
    """Everybody saw both and converted, one saw B alone and did not. Nobody saw A alone: until one
    person does, and converts, whose own conversion is one of a thousand."""
    people: Counter[Journey] = Counter({((0, 1), True): CONVERSIONS, ((1,), False): 1})
    people[((0,), False)] = 1
    before = totals(people)
    del people[((0,), False)]
    people[((0,), True)] = 1
    after = totals(people)
    moved = hypot(after[0] - before[0], after[1] - before[1])
    assert 0.70 * CONVERSIONS < moved < 0.72 * CONVERSIONS
