"""`adsbpc demo`: a made-up month, from events to noisy answers."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from adsbpc.campaign import attribute, contribute
from adsbpc.cli.numbers import rounded_up
from adsbpc.contributions import Contributions
from adsbpc.engines import open_engine
from adsbpc.errors import SpecError, did_you_mean
from adsbpc.lab.journeys import make_campaign
from adsbpc.mechanisms import SlotRelease, State, plan_adsbpc, privacy_of
from adsbpc.model import CampaignSpec, load_spec
from adsbpc.model.spec import ModelName
from adsbpc.privacy import SecureRandomness, epsilon_of

# A standard normal lies within this many standard deviations 95 times in a hundred.
_LEVEL_95 = 1.96


def run(directory: Path, users: int, slots: int, model: str, seed: int, as_json: bool) -> None:
    models = get_args(ModelName)
    if model not in models:
        raise SpecError(
            f"--model {model!r}: expected one of {', '.join(models)}.{did_you_mean(model, models)}"
        )
    notes = Console(stderr=True)
    with notes.status(f"Making up {users:,} people and their journeys"):
        made = make_campaign(directory, users, slots, seed, model)
    spec = load_spec(made.spec)
    engine = open_engine(spec.events.engine, spec.engine_options)
    try:
        with notes.status("Attributing"):
            attribute(spec, engine)
            contributions = contribute(spec, engine)
        releases = _release_all(spec, contributions, notes)
        truth = _truth(spec, contributions)
    finally:
        engine.close()
    if as_json:
        found = {
            "campaign": str(made.spec),
            "impressions": made.impressions,
            "conversions": made.conversions,
            "publishers": list(spec.reported_publishers),
            "truth": truth,
            "releases": [_as_object(release) for release in releases],
        }
        print(json.dumps(found))
        return
    out = Console()
    out.print(_table(spec, releases, truth))
    _explain(out, spec, releases)
    out.print(
        f"{made.impressions:,} impressions and {made.conversions:,} conversions of made-up people, "
        f"so the truth may be shown. Campaign file and events: {directory}/",
        highlight=False,
    )


def _release_all(
    spec: CampaignSpec, contributions: Contributions, notes: Console
) -> list[SlotRelease]:
    mechanism, randomness = plan_adsbpc(spec), SecureRandomness()
    state, releases = State(), []
    for _ in track(range(mechanism.slots), "Releasing", console=notes, transient=True):
        release, state = mechanism.release(state, contributions, randomness)
        releases.append(release)
    return releases


def _truth(spec: CampaignSpec, contributions: Contributions) -> list[float]:
    totals = [contributions.totals(slot) for slot in range(1, spec.campaign.slots + 1)]
    return [float(total) * spec.unit_value for total in np.sum(totals, axis=0)]


def _table(spec: CampaignSpec, releases: list[SlotRelease], truth: list[float]) -> Table:
    table = Table(title=f"Attributed conversions after {len(releases)} days ({spec.campaign.name})")
    table.add_column("publisher")
    for heading in ("estimate", "95% interval", "truth"):
        table.add_column(heading, justify="right")
    for answer, true in zip(releases[-1].answers, truth, strict=True):
        reach = _LEVEL_95 * answer.standard_error
        table.add_row(
            answer.publisher,
            f"{answer.value:,.0f}",
            f"{answer.value - reach:,.0f} .. {answer.value + reach:,.0f}",
            f"{true:,.0f}",
        )
    return table


def _explain(out: Console, spec: CampaignSpec, releases: list[SlotRelease]) -> None:
    guarantee = plan_adsbpc(spec).guarantee
    spent = sum(charge.rho for release in releases for charge in release.charges)
    delta = privacy_of(spec).delta
    low, high = (choose(release.bound for release in releases) for choose in (min, max))
    out.print(
        f"Spent {float(spent):.4f} of rho = {float(guarantee.rho):g}: the presence of any one "
        f"person is hidden with (epsilon = {rounded_up(epsilon_of(guarantee.rho, delta))}, "
        f"delta = {delta:g}). One person counted for at most "
        f"{low if low == high else f'{low} to {high}'} conversions a day; intervals cover the "
        "noise, not what that cuts off.",
        highlight=False,
    )


def _as_object(release: SlotRelease) -> dict[str, object]:
    charges = [{"part": charge.part, "rho": float(charge.rho)} for charge in release.charges]
    return {**asdict(release), "charges": charges}
