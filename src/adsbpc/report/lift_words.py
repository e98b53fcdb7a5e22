"""Lift in words and as a table: what a campaign caused, and what cannot be told yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adsbpc.report.balance import Balance
from adsbpc.report.calibration import Calibration
from adsbpc.report.lift import Lift, arm_totals, people_by_arm, uncounted_arms
from adsbpc.report.numbers import about, amount, decimals_of, interval, percent

if TYPE_CHECKING:
    from rich.table import Table

    from adsbpc.report.report import Report

# Beyond so many times the campaign nobody waits for an answer.
_LONG = 3


def newest_lifts(report: Report) -> list[Lift]:
    newest = max((each.slot for each in report.lifts), default=0)
    return [each for each in report.lifts if each.slot == newest]


def sentence(report: Report, lift: Lift) -> str:
    """What a manager takes away."""
    measure = next(each for each in report.spec.measures if each.name == lift.measure)
    shown = decimals_of(measure.metric, lift.standard_error)
    word, what = report.timeline.word, _what(measure.name, measure.currency)
    where = "".join(f", {name} {value}" for name, value in lift.keys.items())
    today = f"{interval(lift.low, lift.high, shown)} if today was the only look"
    if lift.band_low is None or lift.band_high is None:
        return (
            f"{_arm(lift.arm)}{where}: too few people are behind the figures to say anything of "
            f"{what} yet."
        )
    always = interval(lift.band_low, lift.band_high, shown)
    size = amount(abs(lift.incremental), shown)
    if lift.is_told:
        more = "more" if lift.incremental > 0 else "fewer"
        return (
            f"After {word} {lift.slot}, the arm “{lift.arm}”{where} has {size} {more} of {what} "
            f"than without {caused_by(lift)}: {always}, however often one looks ({today})."
            f"{_relative(lift)}{_cost(lift, measure.currency)}"
        )
    return (
        f"No effect of {caused_by(lift)} on {what} can be told yet for the arm "
        f"“{lift.arm}”{where}: it may be anything "
        f"from {always}, however often one looks ({today}). {_needed(report, lift)}"
    )


def caused_by(lift: Lift | Calibration) -> str:
    return " and ".join(lift.withheld) or "the campaign"


def _what(name: str, currency: str | None) -> str:
    return f"“{name}”" + (f" in {currency}" if currency else "")


def _arm(name: str) -> str:
    return f"The arm “{name}”"


def _relative(lift: Lift) -> str:
    if lift.relative is None or lift.relative_low is None or lift.relative_high is None:
        return " As a part of the control it cannot be told."
    low, high = percent(lift.relative_low, 1), percent(lift.relative_high, 1)
    change = "more" if lift.relative > 0 else "less"
    size = percent(abs(lift.relative), 1)
    return f" That is {size} {change} than it would have been (lift {low} to {high})."


def _cost(lift: Lift, currency: str | None) -> str:
    if lift.cost is None or lift.cost_low is None or lift.cost_high is None:
        return ""
    ends = interval(lift.cost_low, lift.cost_high, 2)
    return f" Each one cost {amount(lift.cost, 2)} ({ends})."


def _needed(report: Report, lift: Lift) -> str:
    """At this rate: what is caused grows with time, and its error with the root of it."""
    word, slots, needed = report.timeline.word, report.spec.campaign.slots, lift.slots_needed
    if needed is None or needed > _LONG * slots:
        return (
            "If there is one, it is too small for this campaign: more people in the control, or a "
            "longer trial, would be needed."
        )
    more = max(needed - lift.slot, 1)
    end = "" if needed <= slots else f", after the campaign's last {word}"
    plural = "" if more == 1 else "s"
    return f"If it goes on as so far, it would be told in about {about(more)} {word}{plural}{end}."


def balance_words(balance: Balance) -> str:
    people = ", ".join(f"{name} {amount(count, 0)}" for name, count in balance.people.items())
    shares = ", ".join(f"{name} {percent(share, 1)}" for name, share in balance.shares.items())
    how = "counted, with noise" if balance.counted else "declared"
    if balance.is_bad:
        return (
            f"WARNING: the arms are out of balance. People ({how}): {people}; expected {shares}. "
            f"Chance alone gives that once in {about(1 / max(balance.chance, 1e-9))} trials, so "
            "that something is wrong with who is shown ads or with who is counted: do not trust "
            "the lift."
        )
    return f"The arms are in balance. People ({how}): {people}; expected {shares}."


def people_words(report: Report) -> list[str]:
    """Whether arms have the people that they should, as far as that is known."""
    uncounted = uncounted_arms(report)
    found = [
        f"WARNING: nobody can be told to be in the arm “{arm}”. People are counted by impressions, "
        "and an arm that sees no ads has none of those: count people by an event that all arms "
        "have, such as the request that an ad would have answered, or give [lift.people]."
        for arm in uncounted
        # Of others there are people: it is not that little is known yet.
        if len(uncounted) < len(people_by_arm(report))
    ]
    if report.balance is not None:
        found.append(balance_words(report.balance))
    return found


def arm_rows(report: Report) -> list[dict[str, Any]]:
    """Totals of arms as they are shown."""
    return [
        {
            **each,
            "total": amount(each["value"], decimals_of(each["metric"], 1.0)),
            "interval": interval(each["low"], each["high"], decimals_of(each["metric"], 1.0)),
        }
        for each in arm_totals(report)
    ]


def calibration_words(report: Report) -> list[str]:
    return [
        f"{_what(each.measure, None)} of the arm “{each.arm}” so far: attribution credits "
        f"{amount(each.attributed, 0)} to {caused_by(each)}, which caused "
        f"{amount(each.incremental, 0)}: {factor_words(each)} for each credited one."
        for each in report.calibrations
        if each.factor is not None
    ]


def calibration_rows(report: Report) -> list[dict[str, str]]:
    """Attribution beside lift as it is shown."""
    return [
        {
            "measure": each.measure, "cause": caused_by(each), "arm": each.arm,
            "attributed": amount(each.attributed, 0), "incremental": amount(each.incremental, 0),
            "factor": factor_words(each),
        }
        for each in report.calibrations
    ]  # fmt: skip


def factor_words(calibration: Calibration) -> str:
    factor, low, high = calibration.factor, calibration.low, calibration.high
    if factor is None or low is None or high is None:
        return "cannot be told"
    return f"{amount(factor, 2)} ({interval(low, high, 2)})"


def lift_table_of(report: Report) -> Table | None:
    """The newest look, for a terminal; None where there are no arms."""
    from rich.table import Table
    from rich.text import Text

    if report.spec.lift is None:
        return None
    newest = newest_lifts(report)
    table = Table(
        title=Text(f"Caused by the campaign, after {report.timeline.word} {report.newest.slot}"),
        caption_justify="left",
    )
    table.add_column("measure", overflow="fold")
    table.add_column("arm", overflow="fold")
    table.add_column("beside", overflow="fold")
    for heading in ("incremental", "one look", "all looks", "lift"):
        table.add_column(heading, justify="right")
    for each in newest:
        metric = next(m.metric for m in report.spec.measures if m.name == each.measure)
        shown = decimals_of(metric, each.standard_error)
        band = "not yet"
        if each.band_low is not None and each.band_high is not None:
            band = interval(each.band_low, each.band_high, shown)
        relative = "cannot be told" if each.relative is None else percent(each.relative, 1)
        name = ", ".join([each.measure, *each.keys.values()])
        table.add_row(
            Text(name), Text(each.arm), Text(each.control), amount(each.incremental, shown),
            interval(each.low, each.high, shown), band, relative,
            style="" if each.is_told else "dim",
        )  # fmt: skip
    notes = [sentence(report, each) for each in newest if not each.keys]
    notes += [*calibration_words(report), *people_words(report)]
    table.caption = Text("\n".join(notes), style="dim")
    return table
