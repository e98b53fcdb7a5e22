"""From a campaign file to a planned mechanism, before any data is seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from adsbpc.errors import PrivacyError, WorkloadError
from adsbpc.mechanisms.adsbpc import AdsBPC
from adsbpc.mechanisms.bounds import (
    FixedBound,
    HistogramTracker,
    QuantileAndSparseVector,
    Tracker,
)
from adsbpc.mechanisms.bounds_cut import CutCounter
from adsbpc.mechanisms.by_rows.mechanism import BudgetByRows
from adsbpc.mechanisms.by_rows.planning import plan_personal, split_personal
from adsbpc.mechanisms.guarantees import fit_rho, guarantee_of, privacy_of
from adsbpc.mechanisms.interface import Mechanism, Question
from adsbpc.mechanisms.measures import Measures
from adsbpc.mechanisms.people_once import allowance_for_once, plan_once
from adsbpc.model.guarantee import FIT_PART, PICO_RHO, Guarantee, affordable
from adsbpc.model.measure import Measure
from adsbpc.model.plan import StoredPlan
from adsbpc.model.release import Measured, Release
from adsbpc.model.release_spec import (
    AdsBPCSection,
    MechanismName,
    PrivacySection,
    WorkloadSection,
)
from adsbpc.model.spec import CampaignSpec
from adsbpc.model.toml import place
from adsbpc.privacy import Strategy, composed, totals_squared
from adsbpc.workloads import (
    MaxVariance,
    Objective,
    VarianceTargets,
    WeightedSquaredError,
    Workload,
    matrix_queries,
    per_slot,
    prefix_sums,
    sliding_windows,
    slot_ranges,
)
from adsbpc.workloads.queries import Reals


def _measured(spec: CampaignSpec) -> Guarantee:
    """What is left for all measures after the fit."""
    whole, fit = guarantee_of(spec), fit_rho(spec)
    if fit >= whole.rho:
        raise PrivacyError(
            f"leaves nothing of the campaign's rho = {float(whole.rho):.6g} to measure with",
            place("attribution", "fit", "rho"),
            f"{float(fit):g}",
            "Lower it; a twentieth is usual",
        )
    return replace(whole, rho=whole.rho - fit)


def workload_of(section: WorkloadSection, spec: CampaignSpec) -> Workload:
    n = spec.campaign.slots
    if section.queries == "sliding":
        assert section.window is not None
        return sliding_windows(n, section.window)
    if section.queries == "ranges":
        assert section.ranges is not None
        return slot_ranges(n, section.ranges)
    if section.queries == "matrix":
        assert section.matrix is not None
        return matrix_queries(spec.directory / section.matrix, n)
    return prefix_sums(n) if section.queries == "prefix" else per_slot(n)


def objective_of(section: WorkloadSection) -> Objective:
    if section.objective == "max-variance":
        return MaxVariance()
    if section.objective == "variance-targets":
        assert section.targets is not None
        return VarianceTargets(section.targets)
    return WeightedSquaredError(section.weights)


def split_of(spec: CampaignSpec) -> dict[str, Fraction]:
    """The parts of the budget by what they buy, in the words of charges; they add up to rho."""
    privacy, parts = privacy_of(spec), dict[str, Fraction]()
    planner, several = PLANNERS[privacy.mechanism], len(spec.measures) > 1
    for measure in spec.measures:
        rho = _measured(spec).rho * measure.share
        section = planner.section(privacy)
        if _knows_most(measure, privacy):
            section = section.model_copy(update={"allowance": 1.0})
        split = planner.split(rho, section, spec.campaign.slots, len(measure.layout))
        parts |= {f"{measure.name}: {part}" if several else part: r for part, r in split.items()}
    return parts | ({FIT_PART: fit_rho(spec)} if fit_rho(spec) else {})


def split_budget(
    rho: Fraction, section: AdsBPCSection, slots: int, _cells: int
) -> dict[str, Fraction]:
    if section.bounds == "fixed":
        return {"measurement": rho}
    first, track = (rho * Fraction(str(share)) for share in section.shares[1:])
    rest = rho - first - track
    if section.bounds == "histogram":
        return {"measurement": rest, "histogram": first + track}
    if slots <= section.quantile_slots:
        return {"measurement": rest, "quantile": first + track}
    return {"measurement": rest, "quantile": first, "sparse vector": track}


def slot_budgets(rho: Fraction, slot_variances: Reals) -> tuple[Fraction, ...]:
    """Each slot's part of rho in whole pico-rho, in proportion to 1 / variance, rounded down."""
    shares = (1 / slot_variances) / (1 / slot_variances).sum()
    whole = int(affordable(rho) * PICO_RHO)
    parts = [max(1, int(share * whole)) for share in shares]
    excess = sum(parts) - whole
    if excess > 0:
        parts[int(np.argmax(parts))] -= excess
    budgets = tuple(Fraction(part, PICO_RHO) for part in parts)
    if min(parts) < 1:
        raise _too_small(rho, len(parts))
    assert composed(list(budgets)) <= rho
    return budgets


def _too_small(rho: Fraction, slots: int) -> PrivacyError:
    return PrivacyError(
        f"a budget of {float(rho):.3g} cannot be shared among {slots} slots: give the campaign a "
        "larger rho or epsilon"
    )


def question_of(spec: CampaignSpec, measure: Measure) -> Question:
    """What a measure asks, with its share of the budget that is left after a fit."""
    workloads = tuple(workload_of(part, spec) for part in spec.workload)
    names = [name for workload in workloads for name in workload.names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise WorkloadError(f"two workloads answer {twice!r}: remove one of them")
    guarantee = _measured(spec)
    return Question(
        replace(guarantee, rho=guarantee.rho * measure.share),
        measure.layout,
        workloads,
        objective_of(spec.workload[0]),
        measure.unit_value,
        are_whole=measure.value_cap is None,
        # Who is counted once never does, and of a trial the end is read above all.
        come_back=not (measure.layout.once or measure.by_arm),
    )


def plan_measures(
    spec: CampaignSpec, stored: StoredPlan | None = None, previous: tuple[Release, ...] = ()
) -> Measures:
    """The measures of a campaign file, each with its mechanism. A running campaign goes on with
    what is stored of its plan, whose last digits another version of a solver might not find again.
    `previous` are the releases that the file says to start from."""
    privacy, runs = privacy_of(spec), []
    planner = PLANNERS[privacy.mechanism]
    for measure in spec.measures:
        plan = stored.measures.get(measure.name, stored) if stored is not None else None
        earlier = tuple(each for release in previous for each in _alike(release, measure))
        question, section = question_of(spec, measure), planner.section(privacy)
        if _knows_most(measure, privacy):
            plan = plan_once(question) if plan is None else plan
            allowance = allowance_for_once(Strategy(plan.strategy))
            section = section.model_copy(update={"allowance": allowance})
        mechanism = planner.plan(question, section, plan, earlier)
        if isinstance(mechanism, BudgetByRows) and _knows_most(measure, privacy):
            mechanism = replace(mechanism, cuts_nobody=True)
        runs.append((measure, mechanism))
    return Measures(tuple(runs))


def _knows_most(measure: Measure, privacy: PrivacySection) -> bool:
    """Whether it is known before anything is seen how much one person can ask for."""
    return measure.one_figure_each and privacy.mechanism == "personal-budget"


def _alike(release: Release, measure: Measure) -> list[Measured]:
    """What an earlier campaign has of a measure: that of its name, or else its first."""
    named = [each for each in release.measures if each.measure == measure.name]
    return named or list(release.measures[:1])


def rho_for_targets(mechanism: Mechanism, spec: CampaignSpec, limit: float) -> float | None:
    """The rho that measurement needs to meet the campaign's variance targets, if it has any."""
    targets = spec.workload[0].targets
    return None if targets is None else mechanism.rho_for(VarianceTargets(targets), limit)


def plan_adsbpc(
    question: Question,
    section: AdsBPCSection,
    stored: StoredPlan | None = None,
    _previous: tuple[Measured, ...] = (),
) -> AdsBPC:
    guarantee, layout, workload = question.guarantee, question.layout, question.workloads[0]
    slots = question.slots
    split = split_budget(guarantee.rho, section, slots, len(layout))
    for part in split.values():
        if affordable(part / (2 * slots)) == 0:
            raise _too_small(part, slots)
    if stored is None:
        scales = question.objective.scales(workload, float(split["measurement"]))
        slot_rho = slot_budgets(split["measurement"], scales.variances)
    else:
        slot_rho = stored.slot_rho
    variances = np.array([1 / (2 * float(rho)) for rho in slot_rho])
    tracker: Tracker
    cut = None
    if section.bounds == "svt":
        tracker = QuantileAndSparseVector(
            section,
            guarantee.adjacency,
            split["quantile"],
            split.get("sparse vector", Fraction(0)),
            slots,
        )
    elif section.bounds == "histogram":
        factor = totals_squared(guarantee.adjacency, layout, 1)
        lengths = workload.lengths()
        tracker = HistogramTracker(
            guarantee.adjacency,
            split["histogram"],
            slots,
            len(layout),
            factor * float(workload.variances(variances).mean()),
            float(np.sqrt((lengths**2).mean())),
        )
        if stored is None or stored.adds_cut:
            cut = CutCounter(tracker.deviation, tracker.slots_each, question.are_whole)
    else:
        assert section.bound is not None
        tracker = FixedBound(section.bound)
    workloads, unit_value = question.workloads, question.unit_value
    return AdsBPC(guarantee, layout, slot_rho, tracker, workloads, unit_value, cut)


@dataclass(frozen=True)
class Planner:
    """How mechanisms of one name are planned: the part of `[privacy]` that is theirs, how it splits
    the budget, and the mechanism itself."""

    section: Callable[[PrivacySection], Any]
    split: Callable[[Fraction, Any, int, int], dict[str, Fraction]]
    plan: Callable[[Question, Any, StoredPlan | None, tuple[Measured, ...]], Mechanism]


PLANNERS: Final[dict[MechanismName, Planner]] = {
    "adsbpc": Planner(lambda privacy: privacy.adsbpc, split_budget, plan_adsbpc),
    "personal-budget": Planner(
        lambda privacy: privacy.personal_budget, split_personal, plan_personal
    ),
}
