"""Personal budgets from a budget and questions, before any data is seen."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from math import isqrt, sqrt

import numpy as np

from adsbpc.errors import PrivacyError, WorkloadError
from adsbpc.mechanisms.by_rows.allowance import HEAVY_USER, Chooser, Look, Standing, Sums, in_bins
from adsbpc.mechanisms.by_rows.cut import has_total
from adsbpc.mechanisms.by_rows.mechanism import BudgetByRows
from adsbpc.mechanisms.by_rows.needs import meets_again
from adsbpc.mechanisms.by_rows.sizes import coarseness
from adsbpc.mechanisms.by_slots.mechanism import BudgetBySlots
from adsbpc.mechanisms.by_slots.planning import continue_by_slots, plan_long
from adsbpc.mechanisms.interface import Question, usual_sums
from adsbpc.mechanisms.strategy_choice import (
    last_row_variances,
    query_matrix,
    query_variances,
    query_weights,
    strategy_of,
)
from adsbpc.model.grid import UNITS_PER_CONVERSION
from adsbpc.model.guarantee import PICO_RHO, affordable
from adsbpc.model.plan import StoredPlan
from adsbpc.model.release import Measured
from adsbpc.model.release_spec import PersonalBudgetSection
from adsbpc.privacy import LIMIT, Strategy, histogram_squared
from adsbpc.privacy.filter import MOST_CELLS
from adsbpc.privacy.strategies import MOST_SLOTS
from adsbpc.workloads.queries import Reals

# Of histograms, the part for the last one where its row decides about everything that is asked for.
_MOST_DECIDED = 0.9
# Of rho, the part for histograms: less where there are many cells. Conversions of somebody who is
# cut are then spread over them, and each misses little if an allowance is not quite right.
_MOST_LOOKED, _LEAST_LOOKED = Fraction(5, 100), Fraction(3, 100)
_LOOKED_BY_CELLS = Fraction(3, 2)


def plan_personal(
    question: Question,
    section: PersonalBudgetSection,
    stored: StoredPlan | None = None,
    previous: tuple[Measured, ...] = (),
) -> BudgetByRows | BudgetBySlots:
    """A campaign that runs goes on with what is stored of its plan, and as it began; a new one may
    start from the releases of an earlier campaign. Those with more slots than dense strategies have
    are planned by slots."""
    if stored.decays if stored is not None else question.slots > MOST_SLOTS:
        return _long(question, section, stored, previous)
    if stored is not None and not stored.by_rows:
        return continue_by_slots(question, section, stored)
    return plan_by_rows(question, section, stored, previous)


def _long(
    question: Question,
    section: PersonalBudgetSection,
    stored: StoredPlan | None,
    previous: tuple[Measured, ...],
) -> BudgetBySlots:
    slots = question.slots
    if previous:
        raise WorkloadError(
            f"{slots} slots: only campaigns of at most {MOST_SLOTS} start from an earlier one. "
            "Remove previous from [privacy.personal_budget]; heavy_user may say what it showed"
        )
    _check_cells(question)
    split = split_personal(question.guarantee.rho, section, slots, len(question.layout))
    slot_rho = stored.slot_rho if stored is not None else _paced(split["measurement"], slots)
    return plan_long(question, section, split, slot_rho, stored)


def _check_cells(question: Question) -> None:
    if len(question.layout) > MOST_CELLS:
        raise PrivacyError(
            f"{len(question.layout)} cells: personal budgets take at most {MOST_CELLS}. Leave "
            'small ones to "other", or take mechanism = "adsbpc"'
        )


def plan_by_rows(
    question: Question,
    section: PersonalBudgetSection,
    stored: StoredPlan | None = None,
    previous: tuple[Measured, ...] = (),
) -> BudgetByRows:
    slots, workload = question.slots, question.workloads[0]
    if slots > MOST_SLOTS:
        raise WorkloadError(
            f"{slots} slots: a dense strategy has at most {MOST_SLOTS}. Take longer slots, or "
            "release it as a campaign, which plans a long one in another way"
        )
    _check_cells(question)
    split = split_personal(question.guarantee.rho, section, slots, len(question.layout))
    if stored is None:
        strategy = strategy_of(
            section, workload, question.objective, question.come_back, len(question.layout)
        )
        slot_rho = _paced(split["measurement"], slots)
    else:
        strategy, slot_rho = Strategy(stored.strategy), stored.slot_rho
    for_looks = split.get("histogram", Fraction(0))
    if stored is None:
        weights = query_weights(workload, question.objective, strategy)
        looks = _looks(for_looks, strategy, query_matrix(workload), weights)
    elif stored.looks:
        looks = {slot: Fraction(part, PICO_RHO) for slot, part in stored.looks}
    else:
        looks = _looks_by_rule(for_looks, slots)
    # A fixed allowance is known to suit people: little is cut, and room to count that is wasted.
    has_fine_cut = section.allowance is None and has_total(question.layout)
    mechanism = BudgetByRows(
        question.guarantee,
        question.layout,
        strategy,
        slot_rho,
        looks,
        None,
        section.allowance,
        question.workloads,
        question.unit_value,
        has_fine_cut=has_fine_cut if stored is None else stored.has_fine_cut,
        decides_cut=stored is None or stored.decides_cut,
    )
    if section.allowance is not None:
        return mechanism
    mechanism = replace(
        mechanism,
        chooser=_chooser(mechanism, question, section.heavy_user),
        names_looks=stored is None or bool(stored.looks),
    )
    if stored is not None:
        return replace(mechanism, allowance=stored.start)
    return starting_from(mechanism, previous) if previous else mechanism


def split_personal(
    rho: Fraction, section: PersonalBudgetSection, slots: int, cells: int
) -> dict[str, Fraction]:
    if section.allowance is not None:
        return {"measurement": rho}
    if section.histogram_share is not None:
        share = Fraction(str(section.histogram_share))
    elif slots > MOST_SLOTS:
        share = _MOST_LOOKED
    else:
        share = max(min(_MOST_LOOKED, _LOOKED_BY_CELLS / cells), _LEAST_LOOKED)
    looks = rho * share
    return {"measurement": rho - looks, "histogram": looks}


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
    """1, 2, 4, 8, 16, then two in every octave: 24, 32, 48, .., and the last slot.

    >>> look_slots(31), look_slots(2), look_slots(1)
    ([1, 2, 4, 8, 16, 24, 31], [1, 2], [1])
    """
    found, slot = [1, 2, 4, 8, 16], 16
    while slot < slots:
        found += [slot + slot // 2, 2 * slot]
        slot *= 2
    return [*(each for each in found if each < slots), slots]


def _looks(rho: Fraction, strategy: Strategy, asked: Reals, weights: Reals) -> dict[int, Fraction]:
    """Budgets of the histograms of needs by slot: of the last as much as its row decides about, of
    all that is asked for, and the same for each of the others. At the end nothing has to be
    forecast, and the past can be measured once more."""
    if rho == 0:
        return {}
    every = look_slots(strategy.slots)
    decided = float(weights @ last_row_variances(asked, strategy))
    decided /= float(weights @ query_variances(asked, strategy))
    last = max(rho / len(every), rho * Fraction(round(_MOST_DECIDED * decided**2, 3)))
    others = (rho - last) / max(len(every) - 1, 1)
    looks = {slot: affordable(others) for slot in every} | {every[-1]: affordable(last)}
    if min(looks.values()) == 0:
        raise PrivacyError(
            f"a budget of {float(rho):.3g} for histograms cannot be shared among {len(every)} "
            "looks: give the campaign a larger rho or epsilon, or a fixed allowance"
        )
    return looks


def _looks_by_rule(rho: Fraction, slots: int) -> dict[int, Fraction]:
    """Those of campaigns that stored none: 1, 2, 4, 8, then one more in every octave, 12, 16, 24,
    32, .., and none at the end."""
    if rho == 0:
        return {}
    found, slot = [1, 2, 4, 8], 8
    while slot < slots:
        found += [slot + slot // 2, 2 * slot]
        slot *= 2
    every = [each for each in found if each < slots or each == 1]
    return dict.fromkeys(every, affordable(rho / len(every)))


def _chooser(mechanism: BudgetByRows, question: Question, heavy_user: int | None) -> Chooser:
    workload, slots = question.workloads[0], mechanism.slots
    weights = query_weights(workload, question.objective, mechanism.strategy)
    queries = workload.answers(np.eye(slots))
    layout, cells, cuts = mechanism.layout, len(mechanism.layout), mechanism.measurement.cuts
    kept_share = 1 - sum(column.share for column in cuts)
    # Of a row, for entries of ONE and an allowance of one conversion.
    noise = mechanism.measurement.scale / sqrt(LIMIT * kept_share)
    return Chooser(
        cells,
        tuple(
            Sums(
                view.columns,
                view.stride,
                view.weight**2 / layout.unit,
                layout.unit * mechanism.margins.view_variance(view.depth),
                has_all=view.depth == 0 and mechanism.has_fine_cut,
            )
            for view in layout.views
        ),
        float(weights @ query_variances(queries, mechanism.strategy)) * noise**2,
        float(weights @ (workload.lengths() / slots) ** 2),
        # Who is counted once meets no cell again.
        0.0 if layout.once else meets_again(mechanism.strategy),
        cuts,
        kept_share,
        usual_sums(layout) if layout.once else HEAVY_USER if heavy_user is None else heavy_user,
        # Campaigns that began before go on choosing as they did.
        mechanism.measurement.times_cut if mechanism.has_fine_cut else 1,
    )


def starting_from(mechanism: BudgetByRows, previous: tuple[Measured, ...]) -> BudgetByRows:
    """The same mechanism, started with the allowance that an earlier campaign's last histograms ask
    for. Norms of a longer or shorter campaign are scaled with the root of its length."""
    assert mechanism.chooser is not None
    squared, slots = histogram_squared(mechanism.guarantee.adjacency), len(previous)
    looked = [
        release for release in previous if release.mechanism == mechanism.name and release.histogram
    ]
    if not looked:
        raise PrivacyError(
            "[privacy.personal_budget] previous: those releases have no histograms of personal "
            "budgets. Name the folder of a campaign that has, or remove the key"
        )
    last = looked[-1]
    charged = sum(line.rho for line in last.charges if line.part == "histogram")
    look = Look(slots, in_bins(last.histogram), sqrt(squared / (2 * charged)))
    worth = mechanism.unit_value * UNITS_PER_CONVERSION
    totals = np.array(previous[-1].running_totals[-1].values) / worth
    cells, counted = len(mechanism.layout), mechanism.counted
    if len(totals) != cells:
        totals = np.full(cells, totals.sum() / cells)
    sizes = last.sizes if len(last.sizes) == len(counted) else ()
    standing = Standing(totals, coarseness(sizes, counted))
    chosen = mechanism.chooser.choose([look], standing) * standing.mean_coarseness
    return replace(mechanism, allowance=chosen * sqrt(mechanism.slots / slots))
