"""Fits that a campaign file declares public: of an earlier campaign, or of a file."""

from __future__ import annotations

from pathlib import Path

from adsbpc.attribution import fitted_model
from adsbpc.errors import LedgerError, SpecError
from adsbpc.model import CampaignSpec, Fit, Release
from adsbpc.model.rules import cause_of


def declared_fit(spec: CampaignSpec) -> Fit | None:
    """What stands there now; None if the campaign has no such fit."""
    section = spec.attribution.fit
    if section is None or section.slots is not None:
        return None
    where = _where(spec)
    if section.previous is not None:
        fit = _from_folder(spec.directory / section.previous, where)
    else:
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


def check_declared(spec: CampaignSpec, started: Fit) -> None:
    """Refuse other parameters than the campaign started with. It keeps those in the ledger, so that
    they may be gone where they came from."""
    if not any(path.exists() for path in declared_files(spec)):
        return
    now = declared_fit(spec)
    if now is None or now.essentials() != started.essentials():
        raise LedgerError(
            f"{_where(spec)}: has other parameters now than campaign {spec.campaign.name!r} "
            "started with. Put them back, or remove them: the campaign goes on with those it has"
        )


def declared_files(spec: CampaignSpec) -> list[Path]:
    """Files and folders that a fit is read from, which must not be written to."""
    section = spec.attribution.fit
    names = [section.parameters, section.previous] if section is not None else []
    return [spec.directory / name for name in names if name is not None]


def _where(spec: CampaignSpec) -> str:
    section = spec.attribution.fit
    assert section is not None
    if section.previous is not None:
        return f"[attribution.fit] previous = {section.previous!r}"
    return f"[attribution.fit] parameters = {section.parameters!r}"


def _from_file(path: Path, where: str) -> Fit:
    try:
        return Fit.from_text(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError(
            f"{where}: cannot be read as parameters ({cause_of(error)}). Write the file with "
            "adsbpc fit"
        ) from None


def _from_folder(folder: Path, where: str) -> Fit:
    try:
        texts = [file.read_text(encoding="utf-8") for file in sorted(folder.glob("[0-9]*.json"))]
        fits = [release.fit for release in map(Release.from_text, texts) if release.fit]
    except (OSError, ValueError) as error:
        raise SpecError(
            f"{where}: holds a release that cannot be read ({cause_of(error)}). Give the folder of "
            "an earlier campaign's releases"
        ) from None
    if not fits:
        raise SpecError(
            f"{where}: holds no release with a fit. Give the folder of the releases of a campaign "
            "that made one"
        )
    return fits[-1]
