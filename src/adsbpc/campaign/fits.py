"""Fits of attribution models: made once from noisy counts, charged, stored with a release, reused.

Must never: fit again what was fitted, or let counts without noise reach a parameter.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from adsbpc.attribution import (
    AttributionModel,
    CountSet,
    count_set,
    fit_of,
    fitted_model,
    journeys_of,
    plain_model,
)
from adsbpc.contributions import engine_counts
from adsbpc.engines import Engine
from adsbpc.errors import SpecError
from adsbpc.events import read_events, read_holdout
from adsbpc.ledger import Ledger
from adsbpc.mechanisms import FIT_PART, fit_rho, privacy_of
from adsbpc.model import CampaignSpec, Charge, Fit, Release
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
    if fit.holdout is not None:
        read_holdout(spec, events, fit.holdout)
    return fit_to_events(spec, engine, randomness)


def fit_to_events(spec: CampaignSpec, engine: Engine, randomness: Randomness) -> tuple[Fit, Charge]:
    """The same for events that stand in the engine."""
    section = spec.attribution
    assert section.fit is not None
    counts = counts_of(spec)
    exact = engine_counts(engine, counts, journeys_of(section), spec.grid.starts_at)
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


def known_fit(spec: CampaignSpec, ledger: Ledger) -> Fit | None:
    """The fit that this campaign attributes with: the ledger's, or a public one; None before it is
    made, or for a model without one."""
    fit = spec.attribution.fit
    if fit is None:
        return None
    if fit.slots is None:
        return declared_fit(spec)
    if not ledger.exists():
        return None
    text = ledger.release(spec.campaign.scope, spec.campaign.name, fit.slots)
    return None if text is None else Release.from_text(text).fit


def declared_fit(spec: CampaignSpec) -> Fit | None:
    """The fit of a file, or of an earlier campaign, that the campaign file declares public."""
    section = spec.attribution.fit
    if section is None or section.slots is not None:
        return None
    if section.previous is not None:
        where = f"[attribution.fit] previous = {section.previous!r}"
        fit = _from_folder(spec.directory / section.previous, where)
    else:
        where = f"[attribution.fit] parameters = {section.parameters!r}"
        fit = _from_file(spec.directory / str(section.parameters), where)
    model, order = spec.attribution.model, spec.attribution.order_of_fit
    if (fit.model, fit.order) != (model, order):
        raise SpecError(
            f"{where}: is a fit of {fit.model}, order {fit.order}, and [attribution] asks for "
            f"{model}, order {order}. Give another one, or set model and order"
        )
    if fit.publishers != spec.reported_publishers:
        raise SpecError(
            f"{where}: was fitted for publishers {', '.join(fit.publishers)}, and the campaign "
            f"lists {', '.join(spec.reported_publishers)}. List the same, in the same order"
        )
    fitted_model(fit)
    return fit


def declared_fit_hash(spec: CampaignSpec) -> str | None:
    """What a declared fit says, for the promise: another one would make other credits."""
    fit = declared_fit(spec)
    if fit is None:
        return None
    parameters = Fit(
        model=fit.model, order=fit.order, publishers=fit.publishers, parameters=fit.parameters
    )
    return sha256(parameters.to_text().encode()).hexdigest()


def model_at(spec: CampaignSpec, slot: int, fit: Fit | None) -> tuple[str, AttributionModel]:
    """The model that a slot is attributed with, and its name."""
    section = spec.attribution
    if section.fit is None:
        return section.model, plain_model(section.model, section)
    if fit is not None and slot > (section.fit.slots or 0):
        return section.model, fitted_model(fit)
    return section.fit.fallback, plain_model(section.fit.fallback, section)


def _from_file(path: Path, where: str) -> Fit:
    try:
        return Fit.from_text(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError(
            f"{where}: cannot be read as parameters ({_first_line(error)}). Write the file with "
            "adsbpc fit"
        ) from None


def _from_folder(folder: Path, where: str) -> Fit:
    try:
        texts = [file.read_text(encoding="utf-8") for file in sorted(folder.glob("[0-9]*.json"))]
        fits = [release.fit for release in map(Release.from_text, texts) if release.fit]
    except (OSError, ValueError) as error:
        raise SpecError(
            f"{where}: holds a release that cannot be read ({_first_line(error)}). Give the folder "
            "of an earlier campaign's releases"
        ) from None
    if not fits:
        raise SpecError(
            f"{where}: holds no release with a fit. Give the folder of the releases of a campaign "
            "that made one"
        )
    return fits[-1]


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
