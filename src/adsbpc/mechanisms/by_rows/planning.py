"""Personal budgets from a budget and questions, before any data is seen."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import isqrt, sqrt

import numpy as np

from adsbpc.errors import PrivacyError, WorkloadError
from adsbpc.mechanisms.by_rows.allowance import HEAVY_USER, Chooser, Sums
from adsbpc.mechanisms.by_rows.cut import columns_for
from adsbpc.mechanisms.by_rows.mechanism import BudgetByRows
from adsbpc.mechanisms.by_rows.needs import meets_again
from adsbpc.mechanisms.interface import Question
from adsbpc.mechanisms.personal_planning import (
    query_variances,
    query_weights,
    split_personal,
    strategy_of,
)
from adsbpc.model.guarantee import PICO_RHO, affordable
from adsbpc.model.release_spec import PersonalBudgetSection
from adsbpc.privacy import LIMIT
from adsbpc.privacy.filter import MOST_CELLS
from adsbpc.privacy.strategies import MOST_SLOTS


def plan_by_rows(question: Question, section: PersonalBudgetSection) -> BudgetByRows:
    slots, workload = question.slots, question.workloads[0]
    if slots > MOST_SLOTS:
        raise WorkloadError(
            f"{slots} slots: personal budgets take at most {MOST_SLOTS}. Take longer slots, "
            'or mechanism = "adsbpc"'
        )
    if len(question.layout) > MOST_CELLS:
        raise PrivacyError(
            f"{len(question.layout)} cells: personal budgets take at most {MOST_CELLS}. Leave "
            'small ones to "other", or take mechanism = "adsbpc"'
        )
    split = split_personal(question.guarantee.rho, section, slots)
    mechanism = BudgetByRows(
        question.guarantee,
        question.layout,
        strategy_of(section, workload, question.objective),
        _paced(split["measurement"], slots),
        _looks(split.get("histogram", Fraction(0)), slots),
        None,
        section.allowance,
        question.workloads,
        question.unit_value,
    )
    if section.allowance is not None:
        return mechanism
    return replace(mechanism, chooser=_chooser(mechanism, question, section.heavy_user))


def _paced(rho: Fraction, slots: int) -> tuple[Fraction, ...]:
    """Users may have spent a part (t / n)^(1/4) of their budget after slot t, and what is released
    so far is charged no more than that: about what its rows can cost anybody."""
    whole = int(affordable(rho) * PICO_RHO)
    reached = [isqrt(isqrt(whole**4 * slot // slots)) for slot in range(slots + 1)]
    parts = tuple(Fraction(b - a, PICO_RHO) for a, b in pairwise(reached))
    if min(parts) == 0:
        raise PrivacyError(
            f"a budget of {float(rho):.3g} cannot be shared among {slots} slots: give the "
            "campaign a larger rho or epsilon"
        )
    return parts


def look_slots(slots: int) -> list[int]:
    """1, 2, 4, 8, then one more in every octave: 12, 16, 24, 32, .."""
    found, slot = [1, 2, 4, 8], 8
    while slot < slots:
        found += [slot + slot // 2, 2 * slot]
        slot *= 2
    return [each for each in found if each < slots or each == 1]


def _looks(rho: Fraction, slots: int) -> dict[int, Fraction]:
    """Budgets of the histograms of needs by slot."""
    if rho == 0:
        return {}
    every = look_slots(slots)
    each = affordable(rho / len(every))
    if each == 0:
        raise PrivacyError(
            f"a budget of {float(rho):.3g} for histograms cannot be shared among {len(every)} "
            "looks: give the campaign a larger rho or epsilon, or a fixed allowance"
        )
    return dict.fromkeys(every, each)


def _chooser(mechanism: BudgetByRows, question: Question, heavy_user: int | None) -> Chooser:
    workload, slots = question.workloads[0], mechanism.slots
    weights = query_weights(workload, question.objective, mechanism.strategy)
    queries = workload.answers(np.eye(slots))
    layout, cells = mechanism.layout, len(mechanism.layout)
    cuts = columns_for(cells)
    kept_share = 1 - sum(column.share for column in cuts)
    # Of a row, for entries of ONE and an allowance of one conversion.
    noise = mechanism.scale / sqrt(LIMIT * kept_share)
    return Chooser(
        cells,
        tuple(
            Sums(
                view.columns,
                view.stride,
                view.weight**2 / layout.unit,
                layout.unit * mechanism.margins.view_variance(view.depth),
            )
            for view in layout.views
        ),
        float(weights @ query_variances(queries, mechanism.strategy)) * noise**2,
        float(weights @ (workload.lengths() / slots) ** 2),
        meets_again(mechanism.strategy),
        cuts,
        kept_share,
        HEAVY_USER if heavy_user is None else heavy_user,
    )
