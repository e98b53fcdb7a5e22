"""`adsbpc demo`: a made-up month, from events to a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import numpy as np

from adsbpc.campaign import Campaign, Released, attribute, contributed
from adsbpc.cli.console import counted, notes, results, stoppable
from adsbpc.cli.release import as_line, progress_of_slots
from adsbpc.cli.status import budget_line
from adsbpc.engines import open_engine
from adsbpc.errors import no_such_choice
from adsbpc.lab.journeys import MadeUp, make_campaign
from adsbpc.model.attribution_spec import ModelName
from adsbpc.report import Report
from adsbpc.report.numbers import rounded_up

_PAGE = "report.html"


def made_up(
    directory: Path, users: int, slots: int, model: str, seed: int, with_control: bool = False
) -> MadeUp:
    """A month of events in a folder, and the campaign that measures them."""
    models = get_args(ModelName)
    if model not in models:
        raise no_such_choice(f"--model {model!r}", model, models)
    with notes().status(f"Making up {users:,} people and their journeys"):
        return make_campaign(directory, users, slots, seed, model, with_control=with_control)


def run(
    directory: Path,
    users: int,
    slots: int,
    model: str,
    seed: int,
    with_control: bool,
    as_json: bool,
) -> None:
    made = made_up(directory, users, slots, model, seed, with_control)
    campaign = Campaign.load(made.spec)
    released = []
    with stoppable(), progress_of_slots(slots) as advance:
        for one in campaign.releasing():
            released.append(one)
            advance(one)
    with notes().status("Writing the report"):
        report = campaign.report()
        report.write(directory / _PAGE, "html")
        truth = _truth(campaign)
    if as_json:
        found = {
            "campaign": str(made.spec),
            "report": str(directory / _PAGE),
            "impressions": made.impressions,
            "conversions": made.conversions,
            "publishers": list(campaign.spec.reported_publishers),
            "truth": truth,
            "caused": made.caused,
            "releases": [json.loads(as_line(one)) for one in released],
        }
        print(json.dumps(found))
        return
    out = results()
    out.print(report.table(truth))
    lift = report.lift_table()
    if lift is not None:
        out.print(lift)
        caused = ", ".join(f"{count:,.0f} {name}" for name, count in made.caused.items())
        out.print(
            f"The truth about people who saw everything: ads caused {caused}, which would not "
            "have happened without them."
        )
    out.print(_promise(report, released))
    out.print(budget_line(report.campaign_budget))
    out.print(
        f"{made.impressions:,} impressions and {made.conversions:,} conversions of made-up people, "
        "so the truth may be shown."
    )
    print(f"The report, for a browser: {directory / _PAGE}")


def _truth(campaign: Campaign) -> dict[str, float]:
    """What no campaign about real people may show."""
    spec = campaign.spec
    engine = open_engine(spec.events.engine, spec.engine_options)
    try:
        credits, measure = attribute(spec, engine, fit=campaign.fit()), spec.measures[0]
        with contributed(credits, measure) as contributions:
            totals = [contributions.totals(slot) for slot in range(1, spec.campaign.slots + 1)]
    finally:
        engine.close()
    sums = [int(total) for total in np.sum(totals, axis=0)]
    by_publisher = [total * measure.unit_value for total in measure.layout.summed(sums, 1)]
    return dict(zip(spec.reported_publishers, by_publisher, strict=True))


def _promise(report: Report, released: list[Released]) -> str:
    promise = (
        "The presence of any one person is hidden with (epsilon = "
        f"{rounded_up(report.promise.epsilon)}, delta = {report.promise.delta:g})."
    )
    first = [one.release.measures[0] for one in released]
    bounds = [each.bound for each in first if each.bound is not None]
    if not bounds:
        return promise
    low, high = min(bounds), max(bounds)
    most = counted(low, "conversion") if low == high else f"{low} to {high} conversions"
    return (
        f"{promise} One person counted for at most {most} a day; "
        "intervals cover the noise, not what that cuts off."
    )
