"""The sentences beside charts and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adsbpc.report import model_words, wording

if TYPE_CHECKING:
    from adsbpc.report.report import Report

# By whether releases tell what was cut.
UPPER_ENDS = "Upper ends of intervals include what may have been cut and not counted."
NOISE_ONLY = "Intervals cover the noise. What bounds cut off is not in them, nor in the estimates."
FAR_AHEAD = (
    "So early, a handful of people who do far more than everybody else cannot be told from noise, "
    "and no interval has room for them."
)
# In this part of a campaign.
_EARLY = 1 / 3


def below_table(report: Report) -> str:
    """Where nothing else is said of a report."""
    told = intervals(report), model_words.fit_noise(report), wording.warning(report)
    return " ".join(filter(None, told))


def intervals(report: Report) -> str:
    """What intervals have room for, and what they leave out."""
    if not report.estimates_cut:
        return NOISE_ONLY
    is_early = report.newest.slot < _EARLY * report.spec.campaign.slots
    return f"{UPPER_ENDS} {FAR_AHEAD}" if is_early else UPPER_ENDS


def trend(report: Report, drawn: int) -> str:
    before, if_alike = "noise", ""
    if report.estimates_cut:
        before, if_alike = "cutting and noise", ", if all publishers are cut alike"
    note = (
        f"Totals from the first {report.timeline.word} of the range on. Each band holds the total "
        f"before {before} with {wording.level_name(report)} confidence{if_alike}."
    )
    if report.band:
        note += (
            " The lighter band around it does so for all "
            f"{report.timeline.word}s of the campaign at once, for one publisher."
        )
    count = len(report.standings.publishers)
    if count > drawn:
        note += f" The {drawn} largest of {count} publishers are drawn; all are in the table."
    parts = (note, model_words.models_by_slot(report), model_words.fit_noise(report))
    return " ".join(part for part in parts if part)


def slots(report: Report, drawn: int) -> str:
    word = report.timeline.word
    note = (
        f"{wording.metric_name(report).capitalize()} of each {word} alone, on a scale of its own "
        "for each publisher. Pale bars cannot be told from zero; "
        f"lines are {wording.level_name(report)} intervals."
    )
    if drawn < report.newest.slot:
        note += f" The newest {drawn} of {report.newest.slot} {word}s are drawn."
    return note


def shares(report: Report, drawn: int) -> str:
    note = (
        f"Share of all {wording.metric_name(report)} so far, with {wording.level_name(report)} "
        "intervals."
    )
    if report.estimates_cut:
        note += " What may be missing because it was cut is not in them."
    missing = len(report.standings.publishers) - drawn
    if missing:
        note += f" {missing} smaller publishers are in the table."
    return note


def models(report: Report, drawn: int) -> str:
    compared = report.models.comparison if report.models else ()
    used = report.spec.attribution.model
    note = (
        "The share of conversions that each model gives a publisher, on a scale of its own for "
        f"each publisher, with {wording.level_name(report)} intervals."
    )
    name = model_words.model_name(used)
    if any(each.model == used for each in compared):
        note += f" The upright line is at {name}, the model in use."
    else:
        note += f" {name}, the model in use, does not follow from these counts."
    missing = len({each.publisher for each in compared}) - drawn
    if missing:
        note += f" {missing} smaller publishers are in the JSON format."
    return note


def totals_until(report: Report) -> str:
    name, end = wording.metric_name(report), report.timeline.end(report.newest.slot)
    return f"{name.capitalize()} up to the end of {end}."


def table(report: Report) -> str:
    note = intervals(report)
    if report.adjusted:
        note += (
            " Totals are adjusted: none ever falls or is negative, and parts add up. Small ones "
            "lean upwards, and totals over many small ones do too."
        )
    if any(standing.total.noisy for standing in report.standings.publishers):
        note += (
            f" ~ marks what cannot be told from zero at {wording.level_name(report)}: "
            "its interval reaches zero."
        )
    return note
