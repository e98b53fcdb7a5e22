"""`adsbpc fit`: the public parameters of a fitted attribution model, and models side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

from rich.box import SIMPLE_HEAD
from rich.table import Table

from adsbpc.attribution import fit_again
from adsbpc.campaign import Campaign, check_targets
from adsbpc.cli.console import results
from adsbpc.errors import ReleaseError, SpecError, no_such_choice
from adsbpc.model import Fit
from adsbpc.model.attribution_spec import ORDERS, FittedModelName
from adsbpc.report.model_words import noise_of_fit


def run(file: Path, model: str | None, order: int | None, out: Path | None, as_json: bool) -> None:
    campaign = Campaign.load(file)
    if out is not None:
        check_targets([out], campaign.spec, file)
    fit = _fit_of(campaign)
    if model is not None or order is not None:
        fit = _another(fit, model or fit.model, order)
    if out is not None:
        try:
            out.write_text(fit.to_text() + "\n", encoding="utf-8")
        except OSError as error:
            raise SpecError(f"{out}: cannot be written ({error.strerror}). Give another") from None
    if as_json:
        print(json.dumps(json.loads(fit.to_text()), indent=2))
        return
    _print(campaign, fit)
    if out is not None:
        print(f"Parameters written to {out}; [attribution.fit] parameters can name it.")


def _fit_of(campaign: Campaign) -> Fit:
    section = campaign.spec.attribution
    if section.fit is None:
        raise SpecError(
            f"[attribution] model = {section.model!r}: has no parameters, so there is nothing to "
            f"show. Fitted models are {', '.join(get_args(FittedModelName))}"
        )
    fit = campaign.fit()
    if fit is None:
        raise ReleaseError(
            f"the fit is made when slot {section.fit.slots} is released, and "
            f"{campaign.status().released} of {campaign.spec.campaign.slots} are. Release it first"
        )
    return fit


def _another(fit: Fit, model: str, order: int | None) -> Fit:
    models = get_args(FittedModelName)
    if model not in models:
        raise no_such_choice(f"--model {model!r}", model, models)
    orders = ORDERS.get(model, (1,))
    wanted = order or (fit.order if model == fit.model else orders[0])
    if wanted not in orders:
        allowed = " or ".join(map(str, sorted(orders)))
        raise SpecError(f"--order {wanted}: model {model!r} has order {allowed}. Give that")
    return fit_again(fit, model, wanted)


def _print(campaign: Campaign, fit: Fit) -> None:
    out = results()
    origin = f"released with slot {fit.slots}"
    if campaign.spec.attribution.fit is None or campaign.spec.attribution.fit.slots is None:
        origin = "which the campaign file declares public"
    order = f" of order {fit.order}" if fit.model in ORDERS else ""
    out.print(f"Model {fit.model!r}{order}, {origin}.")
    if fit.counts is not None:
        noise = fit.scale / fit.full_weight
        out.print(f"{len(fit.values):,} counts of {fit.counts}, noise of {noise:,.1f} users each.")
    if fit.relative_noise is not None:
        out.print(noise_of_fit(fit.relative_noise))
    if not fit.comparison:
        if fit.counts == "pairs":
            out.print("Pairs say nothing about whole journeys: no models can be compared.")
        return
    models = list(dict.fromkeys(share.model for share in fit.comparison))
    table = Table(
        "publisher",
        *(model.replace("_", " ") for model in models),
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        title=f"Shares of conversions up to slot {fit.slots} (with standard errors), in per cent",
    )
    shares = {(share.publisher, share.model): share for share in fit.comparison}
    for publisher in fit.publishers:
        found = [shares[publisher, model] for model in models]
        table.add_row(
            publisher,
            *(f"{100 * each.share:.1f} \u00b1 {100 * each.standard_error:.1f}" for each in found),
        )
    out.print(table)
    out.print("All of them follow from the same released counts: comparing costs nothing more.")
    if fit.counts == "transitions":
        out.print("Journeys of many stages count for less in them.")
