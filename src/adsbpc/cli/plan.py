"""`adsbpc plan`: the promise and the expected errors, before any data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from adsbpc.campaign import Campaign, Plan, PlannedFit
from adsbpc.campaign.accuracy import Accuracy, Frontier, Proposal
from adsbpc.campaign.plan import ExpectedError
from adsbpc.campaign.power import USUAL_POWER, Power
from adsbpc.cli.console import progress, results
from adsbpc.errors import SpecError
from adsbpc.report.numbers import rounded_up
from adsbpc.report.wording import BUYS, MECHANISMS, promise_in_words

if TYPE_CHECKING:
    from adsbpc.lab.pilot import Pilot

_SHOWN = 40


def run(
    file: Path,
    bound: float | None,
    pilot: Path | None,
    expect: list[str],
    targets: list[str],
    lift: str | None,
    rate: str | None,
    as_json: bool,
) -> None:
    campaign = Campaign.load(file)
    planned = campaign.plan(bound, _expected(expect), targets)
    if (lift is None) != (rate is None):
        raise SpecError("--lift and --rate go together: how large an effect, and beside what")
    power = []
    if lift is not None and rate is not None:
        power = campaign.power(_part("--lift", lift), _part("--rate", rate))
    tried = None if pilot is None else _tried(campaign, pilot)
    if as_json:
        found: dict[str, Any] = {} if tried is None else {"pilot": tried.to_object()}
        if power:
            found["power"] = [each.to_object() for each in power]
        print(json.dumps(planned.to_object() | found, indent=2))
        return
    out = results()
    out.print(f"Promise: {promise_in_words(planned.promise)}")
    out.print(f"Noise: {planned.shape}.")
    split = Table("part of the budget", "rho", "buys", title="How the budget is split")
    for part, rho in planned.split.items():
        split.add_row(part, f"{float(rho):.4g}", BUYS[part.rpartition(": ")[2]])
    out.print(split)
    _print_errors(planned)
    print_accuracy(planned)
    _print_frontier(planned)
    if planned.proposal is not None:
        _print_proposal(planned, planned.proposal, targets)
    if planned.rho_for_targets is not None:
        out.print(
            f"The variance targets need rho = {rounded_up(planned.rho_for_targets)} for "
            f"measurement; this plan has {float(planned.split['measurement']):.4g}."
        )
    if planned.bounds != "fixed":
        out.print(MECHANISMS[planned.mechanism].expected)
    if planned.fit is not None:
        _print_fit(planned, planned.fit)
    if tried is not None:
        _print_pilot(tried)
    if power:
        _print_power(power)


def _part(option: str, text: str) -> float:
    """A percentage, or a part of 1."""
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise SpecError(f"{option} {text!r}: expected a percentage such as 10%") from None


def _print_power(power: list[Power]) -> None:
    """How likely the trial shows an effect, and what it would take."""
    first = power[0]
    table = Table(
        title=f"Chance to see a lift of {first.lift:.3g} over a rate of {first.rate:.3g}",
        caption="at the end: the 95% interval of the last look; by the band: looking at every slot",
    )
    for heading in ("arm", "at the end", "without privacy", "by the band", "without privacy"):
        table.add_column(heading, justify="left" if heading == "arm" else "right")
    for each in power:
        table.add_row(
            each.arm, f"{each.at_the_end:.1%}", f"{each.at_the_end_without_privacy:.1%}",
            f"{each.by_the_band:.1%}", f"{each.by_the_band_without_privacy:.1%}",
        )  # fmt: skip
    out = results()
    out.print(table)
    for each in power:
        rho = "no budget is enough" if each.rho_needed is None else f"rho = {each.rho_needed:.3g}"
        slots = "more than ten times as long a campaign"
        if each.slots_needed is not None:
            slots = f"{each.slots_needed:,} slots"
        out.print(
            f"{each.arm}: privacy makes the last interval {each.wider:.1%} wider. For a chance of "
            f"{USUAL_POWER:.0%} at the end: {rho} with these slots, or {slots} with this rho."
        )


def _print_errors(planned: Plan) -> None:
    """The queries of every view, as many of them as people read."""
    out, views = results(), dict[tuple[str, str], list[ExpectedError]]()
    for row in planned.queries:
        views.setdefault((row.measure, row.view), []).append(row)
    errors = Table(
        *("measure", "view", "slot", "query", "standard error"),
        title=f"Expected errors, {planned.condition}",
    )
    most, shown = max(2, _SHOWN // len(views)), 0
    for (measure, view), rows in views.items():
        step = max(1, -(-len(rows) // most))
        chosen = [*rows[:-1:step], rows[-1]]
        shown += len(chosen)
        for row in chosen:
            errors.add_row(measure, view, str(row.slot), row.query, f"{row.standard_error:,.2f}")
        errors.add_section()
    out.print(errors)
    if shown < len(planned.queries):
        out.print(f"{shown} of {len(planned.queries)} figures shown; --json has them all.")


def _expected(texts: list[str]) -> dict[str, float]:
    """What people write after --expect."""
    found = {}
    for text in texts:
        name, _, amount = text.partition("=")
        try:
            found[name.strip()] = float(amount.replace(",", ""))
        except ValueError:
            raise SpecError(
                f"--expect {text!r}: expected a measure and how much of it the whole campaign will "
                "have, such as conversions=70000"
            ) from None
    return found


def print_accuracy(planned: Plan) -> None:
    """How far sums are off, as counts and as parts of what is expected."""
    if not planned.accuracy:
        names = ", ".join(dict.fromkeys(row.measure for row in planned.queries))
        results().print(
            "To see how large that is beside what is counted, say how much you expect of "
            f"{names}, with --expect or under [expected] in the campaign file."
        )
        return
    table = Table(
        title="How far sums are off, 95 times of 100: an average one, one with 10% or 2% of the "
        "total, and an average one in one slot",
    )
    table.add_column("sum", overflow="fold")
    for heading in ("expected", "off by", "average", "of 10%", "of 2%", "one slot"):
        table.add_column(heading, justify="right")
    rows: dict[tuple[str, str], dict[str, list[Accuracy]]] = {}
    for row in planned.accuracy:
        rows.setdefault((row.measure, row.view), {}).setdefault(row.period, []).append(row)
    for (measure, view), periods in rows.items():
        first, *others = periods["campaign"]
        parts = {round(each.part, 6): each.within for each in (first, *others)}
        table.add_row(
            measure if view == "total" else f"{measure} by {view}",
            f"{first.amount:,.0f}",
            f"± {first.error:,.0f}",
            _within(first.within),
            *("" if view == "total" else _within(parts[part]) for part in (0.1, 0.02)),
            _within(periods["slot"][0].within),
        )
    results().print(table)


def _within(part: float) -> str:
    return f"± {100 * part:.1f}%" if part < 0.1 else f"± {100 * part:,.0f}%"


def _print_frontier(planned: Plan) -> None:
    """The total against its parts, where a measure has a total of its own to weigh."""
    by_measure: dict[str, list[Frontier]] = {}
    for row in planned.frontier:
        by_measure.setdefault(row.measure, []).append(row)
    for measure, rows in by_measure.items():
        if not planned.expected.get(measure):
            continue
        table = Table(title=f"{measure}: the total against its parts, for people who convert once")
        table.add_column("weights")
        for view in rows[0].errors:
            table.add_column(f"{view} off by", justify="right")
        for row in rows:
            table.add_row(str(list(row.weights)), *(f"{each:,.0f}" for each in row.errors.values()))
        results().print(table)


def _print_proposal(planned: Plan, proposal: Proposal, targets: list[str]) -> None:
    shares = ", ".join(f"{name} {share:g}" for name, share in proposal.shares.items())
    several = len(proposal.shares) > 1
    if targets:
        told = f"The targets need rho = {proposal.rho:g}"
        told += f", with shares {shares}." if several else "."
        told += f" This plan has rho = {float(planned.promise.guarantee.rho):g}."
    else:
        told = f"Shares under which measures are off least, by publisher: {shares}."
    results().print(told)


def _tried(campaign: Campaign, pilot: Path) -> Pilot:
    from adsbpc.lab.pilot import GUESSES, try_out

    with progress("Trying guesses", len(GUESSES)) as step:
        return try_out(campaign.spec, pilot, GUESSES, step)


def _print_pilot(tried: Pilot) -> None:
    table = Table(
        title=f"On {tried.data}: {tried.people:,} people, {tried.slots} slots. Errors of a "
        "publisher's total at the end, in conversions",
    )
    for heading in ("heavy_user", "noise", "cut", "error"):
        table.add_column(heading, justify="right")
    for guess in tried.guesses:
        style = "bold" if guess == tried.best else None
        row = (guess.noise, guess.cut, guess.error)
        table.add_row(f"{guess.heavy_user:,}", *(f"{each:,.1f}" for each in row), style=style)
    out = results()
    out.print(table)
    out.print(
        f"Write heavy_user = {tried.best.heavy_user} under [privacy.personal_budget]. It becomes "
        "public with the campaign: use only data that may be looked at, never this campaign's own."
    )


def _print_fit(planned: Plan, fit: PlannedFit) -> None:
    out = results()
    out.print(
        f"\nThe model {fit.model!r} is fitted once, when slot {fit.slot} is released, from "
        f"{fit.cells:,} counts of {fit.counts} with noise of {fit.noise:,.1f} users each. Up to "
        f"slot {fit.slot} conversions are attributed with {fit.fallback!r}; its parameters are "
        "public from then on and never fitted again."
    )
    table = Table(
        "model",
        "shares up to the fit",
        "figures of every slot, as accurate",
        title="What comparing with further models costs",
    )
    for further in planned.further_models:
        shares = "nothing more" if further.shares else "not in these counts"
        table.add_row(further.model, shares, f"rho = {float(further.rho):.4g} more")
    out.print(table)
    out.print(
        "Shares that follow from the counts of the fit cost nothing more. Figures of every slot "
        "under another model are credits of their own: another campaign of the scope, whose rho "
        "adds up with this one's."
    )
