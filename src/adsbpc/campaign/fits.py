"""Fits of attribution models: made once from noisy counts, charged, stored with a release, reused.

Must never: fit again what was fitted, or let counts without noise reach a parameter.
"""

from __future__ import annotations

from adsbpc.attribution import (
    AttributionModel,
    CountSet,
    count_set,
    fit_of,
    fitted_model,
    journeys_of,
    plain_model,
)
from adsbpc.campaign.declared_fits import declared_fit
from adsbpc.contributions import engine_counts
from adsbpc.engines import Engine
from adsbpc.errors import LedgerError
from adsbpc.events import EventTables, holdout_source, read_events, read_holdout
from adsbpc.ledger import Ledger
from adsbpc.mechanisms import fit_rho, privacy_of
from adsbpc.model import CampaignSpec, Charge, Fit, Release
from adsbpc.model.guarantee import FIT_PART
from adsbpc.privacy import Randomness, SeededRandomness, full_weight, noisy_counts


def counts_of(spec: CampaignSpec) -> CountSet:
    """The counts that the campaign's model is fitted from: declared before any data is seen."""
    section = spec.attribution
    assert section.fit is not None
    return count_set(
        section.model,
        section.order_of_fit,
        len(spec.reported_publishers),
        section.fit.full_journey,
        section.fit.holdout is not None,
    )


def make_fit(spec: CampaignSpec, engine: Engine, randomness: Randomness) -> tuple[Fit, Charge]:
    """Read the events up to the fit's slot, and fit the campaign's model to noisy counts of the
    journeys that ended in them."""
    fit = spec.attribution.fit
    assert fit is not None
    events = read_events(spec, engine, through=fit.slots)
    return fit_to_events(spec, events, randomness)


def fit_to_events(
    spec: CampaignSpec, events: EventTables, randomness: Randomness
) -> tuple[Fit, Charge]:
    """The same for events that were read."""
    section = spec.attribution
    assert section.fit is not None
    counts = counts_of(spec)
    exact = engine_counts(
        events,
        counts,
        journeys_of(section),
        spec.grid.starts_at,
        read_holdout(spec, events, section.fit.holdout) if section.fit.holdout else None,
    )
    noisy = noisy_counts(exact, fit_rho(spec), privacy_of(spec).adjacency, randomness)
    made = fit_of(
        section.model,
        section.order_of_fit,
        spec.reported_publishers,
        section.fit.slots or 0,
        counts,
        noisy.values,
        full_weight(counts.full_squared),
        noisy.scale,
        SeededRandomness(0).gaussian,
    )
    return made, Charge.for_cost(FIT_PART, noisy.cost)


def fit_is_due(spec: CampaignSpec, slot: int) -> bool:
    """Whether the fit is made with the release of this slot."""
    fit = spec.attribution.fit
    return fit is not None and fit.slots == slot


def check_fit(spec: CampaignSpec) -> None:
    """Refuse what could never be fitted before anything is spent on the campaign."""
    fit = spec.attribution.fit
    if fit is not None and fit.slots is not None:
        # Refuses by itself what is too large.
        _ = counts_of(spec).cells
        if fit.holdout is not None:
            holdout_source(spec, fit.holdout)


def check_holdout(spec: CampaignSpec, events: EventTables) -> None:
    """Refuse a list of a holdout group that could not be read later."""
    fit = spec.attribution.fit
    if fit is not None and fit.holdout is not None:
        read_holdout(spec, events, fit.holdout)


def known_fit(spec: CampaignSpec, ledger: Ledger) -> Fit | None:
    """The fit that this campaign attributes with: what the ledger has of it, or, before the
    campaign has started, what its file declares public; None before it is made, or for a model
    without one."""
    fit = spec.attribution.fit
    if fit is None:
        return None
    key = spec.campaign.scope, spec.campaign.name
    if fit.slots is None:
        record = ledger.campaign(*key)
        if record is None:
            return declared_fit(spec)
        found = None if record.plan.fit is None else Fit.from_text(record.plan.fit)
    else:
        text = ledger.release(*key, fit.slots)
        if text is None:
            return None
        found = Release.from_text(text).fit
    if found is None:
        raise LedgerError(
            f"ledger {ledger.where}: has no parameters of the attribution model, which this "
            "campaign needs. Run adsbpc status --verify"
        )
    return found


def model_at(spec: CampaignSpec, slot: int, fit: Fit | None) -> tuple[str, AttributionModel]:
    """The model that a slot is attributed with, and its name."""
    section = spec.attribution
    if section.fit is None:
        return section.model, plain_model(section.model, section)
    if fit is not None and slot > (section.fit.slots or 0):
        return section.model, fitted_model(fit)
    return section.fit.fallback, plain_model(section.fit.fallback, section)
