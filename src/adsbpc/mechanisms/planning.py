"""From a campaign file to a planned mechanism, before any data is seen."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from adsbpc.errors import PrivacyError, WorkloadError
from adsbpc.mechanisms.adsbpc import AdsBPC
from adsbpc.mechanisms.bounds import HistogramTracker, QuantileAndSparseVector
from adsbpc.mechanisms.interface import FIT_PART
from adsbpc.mechanisms.personal_budget import PersonalBudget
from adsbpc.mechanisms.personal_planning import (
    expected_personal_errors,
    planned_personal,
    split_personal,
    starting_from,
)
from adsbpc.model.grid import UNITS_PER_CONVERSION
from adsbpc.model.guarantee import PICO_RHO, Guarantee, affordable
from adsbpc.model.release import Release
from adsbpc.model.release_spec import AdsBPCSection, PrivacySection, WorkloadSection
from adsbpc.model.spec import CampaignSpec
from adsbpc.model.toml import place
from adsbpc.privacy import Strategy, composed, exact_rho, rho_of, totals_squared
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

Mechanism = AdsBPC | PersonalBudget


def guarantee_of(spec: CampaignSpec) -> Guarantee:
    """What the campaign promises."""
    privacy = privacy_of(spec)
    if privacy.rho is not None:
        rho = exact_rho(privacy.rho)
    else:
        assert privacy.epsilon is not None
        rho = rho_of(privacy.epsilon, privacy.delta)
    return Guarantee(rho, privacy.adjacency, spec.campaign.scope)


def fit_rho(spec: CampaignSpec) -> Fraction:
    """What a fit of the attribution model costs; 0 if the campaign makes none."""
    fit = spec.attribution.fit
    return Fraction(0) if fit is None or fit.rho is None else exact_rho(fit.rho)


def _measured(spec: CampaignSpec) -> Guarantee:
    """What is left for the mechanism after the fit."""
    whole, fit = guarantee_of(spec), fit_rho(spec)
    if fit >= whole.rho:
        raise PrivacyError(
            f"leaves nothing of the campaign's rho = {float(whole.rho):.6g} to measure with",
            place("attribution", "fit", "rho"),
            f"{float(fit):g}",
            "Lower it; a twentieth is usual",
        )
    return replace(whole, rho=whole.rho - fit)


def privacy_of(spec: CampaignSpec) -> PrivacySection:
    if spec.privacy is None:
        raise PrivacyError(
            "the campaign file has no [privacy] section. Add one, for example with rho = 1.0"
        )
    return spec.privacy


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
    """The parts of the budget by what they buy; they add up to rho exactly."""
    rho, privacy = _measured(spec).rho, privacy_of(spec)
    if privacy.mechanism == "personal-budget":
        split = split_personal(rho, privacy.personal_budget)
    else:
        split = split_budget(rho, privacy.adsbpc, spec.campaign.slots)
    return split | ({FIT_PART: fit_rho(spec)} if fit_rho(spec) else {})


def split_budget(rho: Fraction, section: AdsBPCSection, slots: int) -> dict[str, Fraction]:
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


def plan_mechanism(
    spec: CampaignSpec,
    slot_rho: tuple[Fraction, ...] | None = None,
    strategy: Strategy | None = None,
    previous: tuple[Release, ...] = (),
) -> Mechanism:
    """The mechanism of a campaign file. A running campaign goes on with the `slot_rho` and the
    `strategy` that it started with, whose last digits another version of the solver might not find
    again. `previous` are the releases that the file says to start from."""
    workloads = tuple(workload_of(part, spec) for part in spec.workload)
    names = [name for workload in workloads for name in workload.names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise WorkloadError(f"two workloads answer {twice!r}: remove one of them")
    privacy, objective = privacy_of(spec), objective_of(spec.workload[0])
    if privacy.mechanism == "adsbpc":
        return planned(
            _measured(spec), privacy.adsbpc, workloads, objective, spec.reported_publishers,
            spec.unit_value, slot_rho,
        )  # fmt: skip
    mechanism = planned_personal(
        _measured(spec), privacy.personal_budget, workloads, objective,
        spec.reported_publishers, spec.unit_value, slot_rho, strategy,
    )  # fmt: skip
    return starting_from(mechanism, previous) if previous else mechanism


def planned(
    guarantee: Guarantee,
    section: AdsBPCSection,
    workloads: tuple[Workload, ...],
    objective: Objective,
    publishers: tuple[str, ...],
    unit_value: float,
    slot_rho: tuple[Fraction, ...] | None = None,
) -> AdsBPC:
    """The mechanism for a budget and questions; the first workload shapes the noise."""
    slots = workloads[0].slot_count
    split = split_budget(guarantee.rho, section, slots)
    for part in split.values():
        if affordable(part / (2 * slots)) == 0:
            raise _too_small(part, slots)
    if slot_rho is None:
        scales = objective.scales(workloads[0], float(split["measurement"]))
        slot_rho = slot_budgets(split["measurement"], scales.variances)
    variances = np.array([1 / (2 * float(rho)) for rho in slot_rho])
    tracker: QuantileAndSparseVector | HistogramTracker | None = None
    if section.bounds == "svt":
        tracker = QuantileAndSparseVector(
            section,
            guarantee.adjacency,
            split["quantile"],
            split.get("sparse vector", Fraction(0)),
            slots,
        )
    elif section.bounds == "histogram":
        factor = totals_squared(guarantee.adjacency, len(publishers), 1)
        lengths = workloads[0].lengths()
        tracker = HistogramTracker(
            guarantee.adjacency,
            split["histogram"],
            slots,
            len(publishers),
            factor * float(workloads[0].variances(variances).mean()),
            float(np.sqrt((lengths**2).mean())),
        )
    return AdsBPC(
        guarantee,
        publishers,
        slot_rho,
        tracker,
        section.bound,
        workloads,
        unit_value,
    )


def expected_errors(mechanism: Mechanism, bound: float) -> list[tuple[int, str, float]]:
    """(slot, query, standard error per publisher) under a constant bound, or allowance of personal
    budgets, in the metric."""
    if isinstance(mechanism, PersonalBudget):
        return expected_personal_errors(mechanism, bound)
    unit = mechanism.unit_value * UNITS_PER_CONVERSION
    factor = totals_squared(mechanism.guarantee.adjacency, len(mechanism.publishers), int(bound))
    variances = np.array([factor / (2 * float(rho)) for rho in mechanism.slot_rho]) * unit**2
    return [
        (int(slot), name, float(error))
        for workload in mechanism.workloads
        for slot, name, error in zip(
            workload.slots, workload.names, np.sqrt(workload.variances(variances)), strict=True
        )
    ]


def rho_for_targets(mechanism: Mechanism, spec: CampaignSpec, bound: float) -> float | None:
    """The rho that measurement needs to meet the campaign's variance targets, under a bound."""
    targets = spec.workload[0].targets
    if targets is None:
        return None
    if isinstance(mechanism, PersonalBudget):
        # Variances are in proportion to 1 / rho.
        errors = expected_personal_errors(mechanism, bound)
        worst = max(
            error**2 / target for (_, _, error), target in zip(errors, targets, strict=False)
        )
        return worst * float(sum(mechanism.slot_rho))
    workload = workload_of(spec.workload[0], spec)
    unit = spec.unit_value * UNITS_PER_CONVERSION
    factor = totals_squared(privacy_of(spec).adjacency, len(spec.reported_publishers), int(bound))
    objective = objective_of(spec.workload[0])
    return objective.budget_for(workload, 1.0).rho * factor * unit**2
