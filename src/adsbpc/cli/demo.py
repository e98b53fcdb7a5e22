"""`adsbpc demo`: a made-up month, from events to bounded contributions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

from rich.console import Console
from rich.progress import track
from rich.table import Table

from adsbpc.campaign import attribute, contribute
from adsbpc.engines import open_engine
from adsbpc.errors import SpecError, did_you_mean
from adsbpc.lab.journeys import make_campaign
from adsbpc.model import UNITS_PER_CONVERSION, load_spec
from adsbpc.model.spec import ModelName

_BOUND = 2


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
        bound = _BOUND * UNITS_PER_CONVERSION
        edges = [k * UNITS_PER_CONVERSION for k in range(1, 6)]
        days = []
        for slot in track(range(1, slots + 1), "Bounding", console=notes, transient=True):
            days.append(
                {
                    "slot": slot,
                    "users": contributions.histogram(slot, edges).tolist(),
                    "users_above_bound": contributions.users_above(slot, bound),
                    "totals": contributions.totals(slot).tolist(),
                    "bounded_totals": contributions.totals(slot, bound).tolist(),
                }
            )
    finally:
        engine.close()
    if as_json:
        print(
            json.dumps(
                {
                    "campaign": str(made.spec),
                    "impressions": made.impressions,
                    "conversions": made.conversions,
                    "publishers": list(spec.reported_publishers),
                    "units_per_conversion": UNITS_PER_CONVERSION,
                    "bound": bound,
                    "days": days,
                }
            )
        )
        return
    out = Console()
    out.print(_table(days, spec.reported_publishers, spec.unit_value))
    cut = sum(sum(day["totals"]) - sum(day["bounded_totals"]) for day in days)
    everything = sum(sum(day["totals"]) for day in days)
    out.print(
        f"{made.impressions:,} impressions, {made.conversions:,} conversions; attributed by "
        f"{spec.attribution.model}; a bound of {_BOUND} conversions per person and day cuts "
        f"{cut / max(everything, 1):.2%} of the weight.",
        highlight=False,
    )
    out.print(f"Campaign file and events: {directory}/", highlight=False)
    out.print(
        "These totals are exact because everybody here is made up. They are not private: "
        "noise and the ledger come with the mechanism.",
        highlight=False,
    )


def _table(days: list[dict[str, Any]], publishers: tuple[str, ...], unit: float) -> Table:
    table = Table(title="Attributed conversions per day (made-up people, before privacy)")
    table.add_column("day", justify="right")
    for publisher in publishers:
        table.add_column(publisher, justify="right")
    table.add_column("people", justify="right")
    table.add_column("above bound", justify="right")
    for day in days:
        table.add_row(
            str(day["slot"]),
            *(f"{total * unit:,.1f}" for total in day["totals"]),
            f"{sum(day['users']):,}",
            f"{day['users_above_bound']:,}",
        )
    table.add_section()
    sums = [sum(column) for column in zip(*(day["totals"] for day in days), strict=True)]
    table.add_row("all", *(f"{total * unit:,.1f}" for total in sums), "", "")
    return table
