"""The page's sections as HTML, every name in them escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import ceil
from typing import TYPE_CHECKING

from adsbpc.model import ALL_PUBLISHERS, Budget
from adsbpc.report import wording
from adsbpc.report.cells import Cell
from adsbpc.report.charts import Drawn
from adsbpc.report.models import Compared
from adsbpc.report.numbers import (
    amount,
    budget_texts,
    decimals_of,
    interval,
    percent,
    rounded_up,
)
from adsbpc.report.palette import variable
from adsbpc.report.standings import Share, Standing

if TYPE_CHECKING:
    from adsbpc.report.report import Report

# A longer table scrolls in a box of its own.
_LONG_TABLE = 15
# Between the ticks of an axis of shares.
_STEPS, _MOST_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2), 5
_NOISY_MARK = '<span class="mark" role="img" aria-label="cannot be told from nothing">~</span>'


def facts(report: Report) -> str:
    campaign, timeline = report.spec.campaign, report.timeline
    found = {
        "Metric": wording.metric_name(report),
        "Period": f"{timeline.period(report.newest.slot)} ({campaign.timezone})",
        "Released": f"{timeline.word} {report.newest.slot} of {campaign.slots}",
        "Attribution": wording.attribution(report.spec.attribution),
        "Intervals": wording.level_name(report),
        "Numbers": "adjusted" if report.adjusted else "as released",
    }
    return _definitions(found)


def trend_note(report: Report, drawn: int) -> str:
    before, if_alike = "noise", ""
    if report.has_personal_budgets:
        before, if_alike = "cutting and noise", ", if all publishers are cut alike"
    note = (
        f"{wording.metric_name(report).capitalize()} from the first {report.timeline.word} on. "
        f"Each band holds the total before {before} with {wording.level_name(report)} "
        f"confidence{if_alike}."
    )
    missing = len(report.standings.publishers) - drawn
    if missing:
        note += (
            f" The {drawn} largest of {drawn + missing} publishers are drawn; all are in the table."
        )
    return f"{note} {wording.models_by_slot(report)}".rstrip()


def chips(drawn: Sequence[Drawn]) -> str:
    return "".join(
        f'<button type="button" class="chip" aria-pressed="false" title="{escape(each.publisher)}" '
        f'style="--colour: {variable(each.colour)}"><span class="swatch"></span>'
        f"<span>{escape(each.publisher)}</span></button>"
        for each in drawn
    )


def slots_note(report: Report, bars: int) -> str:
    word = report.timeline.word
    note = (
        f"Each {word} alone, on a scale of its own for each publisher. Pale bars cannot be told "
        f"from nothing; lines are {wording.level_name(report)} intervals."
    )
    if bars < report.newest.slot:
        note += f" The newest {bars} of {report.newest.slot} {word}s are drawn."
    return note


def multiples(publishers: Sequence[tuple[str, str]]) -> str:
    return "".join(
        f'<figure style="--colour: {variable(colour)}"><figcaption><span class="swatch"></span>'
        f"{_named(_name(publisher))}</figcaption>"
        f'<div id="chart-bars-{index}" class="chart low"></div></figure>'
        for index, (publisher, colour) in enumerate(publishers)
    )


def shares(report: Report, drawn: Sequence[Drawn]) -> str:
    found = report.standings.publishers[: len(drawn)]
    known = [(each, each.share) for each in found if each.share is not None]
    if not known:
        return (
            '<p class="note">Shares are not shown yet: the total of all publishers cannot be told '
            "from nothing.</p>"
        )
    step, end = _scale(share.high for _, share in known)
    rows = "".join(
        _share_row(report, standing, share, each.colour, end, step)
        for (standing, share), each in zip(known, drawn, strict=True)
    )
    missing = len(report.standings.publishers) - len(known)
    more = " What was cut is not in them." if report.has_personal_budgets else ""
    if missing:
        more += f" {missing} smaller publishers are in the table."
    return (
        f'<p class="note">Share of all {escape(wording.metric_name(report))} so far, with '
        f"{wording.level_name(report)} intervals.{more}</p>"
        f'<ol class="shares">{rows}{_axis(step, end)}</ol>'
    )


def _scale(highs: Iterable[float]) -> tuple[float, float]:
    """The step between ticks, and the tick past every interval where the axis ends."""
    widest = max(highs)
    step = next(step for step in _STEPS if widest <= _MOST_STEPS * step)
    return step, step * ceil(widest / step - 1e-9)


def _axis(step: float, end: float) -> str:
    ticks = "".join(
        f'<span style="left: {100 * tick * step / end:.4g}%">{percent(tick * step)}</span>'
        for tick in range(round(end / step) + 1)
    )
    return (
        f'<li class="axis" aria-hidden="true"><span></span><span class="scale">{ticks}</span></li>'
    )


def _share_row(
    report: Report, standing: Standing, share: Share, colour: str, end: float, step: float
) -> str:
    return (
        f'<li style="--colour: {variable(colour)}; --step: {100 * step / end:.6g}%">'
        f"{_named(standing.publisher)}"
        f'<span class="track" aria-hidden="true">'
        f'<span class="bar" style="width: {100 * share.value / end:.4g}%"></span>'
        f"{_whisker(share.low, share.high, end)}</span>"
        f'<span class="number">{percent(share.value)} '
        f"<small>{_share_interval(share, 0)}</small></span></li>"
    )


def _whisker(low: float, high: float, end: float) -> str:
    left, width = 100 * low / end, 100 * (high - low) / end
    return f'<span class="whisker" style="left: {left:.4g}%; width: {width:.4g}%"></span>'


def _share_interval(share: Share, digits: int) -> str:
    return f"{percent(share.low, digits)} to {percent(share.high, digits)}"


def models_compared(report: Report, drawn: Sequence[Drawn]) -> str:
    """A section of its own; nothing where there is no comparison."""
    models = report.models
    if models is None or models.fit_slot is None or not models.comparison:
        return ""
    shares: dict[str, list[Compared]] = {}
    for each in models.comparison:
        shares.setdefault(each.publisher, []).append(each)
    shown = [each for each in drawn if each.publisher in shares]
    figures = "".join(_models_of(report, shares[each.publisher], each) for each in shown)
    used = report.spec.attribution.model
    note = (
        "The share of conversions that each model gives a publisher, on a scale of its own for "
        f"each publisher, with {wording.level_name(report)} intervals."
    )
    if any(each.model == used for each in models.comparison):
        note += f" The upright line is at {wording.model_name(used)}, the model in use."
    else:
        note += f" {wording.model_name(used)}, the model in use, does not follow from these counts."
    missing = len(shares) - len(shown)
    if missing:
        note += f" {missing} smaller publishers are in the JSON format."
    return (
        '<section class="card" aria-labelledby="models-title">'
        '<h2 id="models-title">Models compared</h2>'
        f'<p class="note">{escape(note)}</p><div class="compared">{figures}</div>'
        f'<p class="note">{escape(wording.comparison_cost(report, models.fit_slot))}</p></section>'
    )


def _models_of(report: Report, shares: Sequence[Compared], each: Drawn) -> str:
    """A publisher's figure, with a row for each model."""
    used = report.spec.attribution.model
    step, end = _scale(share.high for share in shares)
    line = "".join(
        f'<span class="used-line" style="left: {100 * share.share / end:.4g}%"></span>'
        for share in shares
        if share.model == used
    )
    # The same for all models, so that columns line up.
    digits = decimals_of("conversions", 100 * min(share.standard_error for share in shares))

    def row(share: Compared) -> str:
        kind, mark = "", ""
        if share.model == used:
            kind, mark = ' class="used"', " <small>in use</small>"
        return (
            f'<li{kind}><span class="name">{escape(wording.model_name(share.model))}{mark}</span>'
            f'<span class="track" aria-hidden="true">{line}{_whisker(share.low, share.high, end)}'
            f'<span class="dot" style="left: {100 * share.share / end:.4g}%"></span></span>'
            f'<span class="number">{percent(share.share, digits)} <small>± '
            f"{100 * report.lens.reach * share.standard_error:.{digits}f}</small></span></li>"
        )

    return (
        f'<figure style="--colour: {variable(each.colour)}; --step: {100 * step / end:.6g}%">'
        f'<figcaption><span class="swatch"></span>{_named(each.publisher)}</figcaption>'
        f'<ol class="shares">{"".join(map(row, shares))}{_axis(step, end)}</ol></figure>'
    )


def download(report: Report, file_name: str | None) -> str:
    count = f"{len(report.rows()):,}"
    if file_name is None:
        return f'<p class="note">{count} cells are too many for a page: ask for CSV or Parquet.</p>'
    return (
        f'<a class="download" id="download" href="#" download="{escape(file_name)}">'
        f"Download all {count} cells (CSV)</a>"
    )


def table_note(report: Report) -> str:
    note = f"Totals up to the end of {report.timeline.name(report.newest.slot)}."
    if report.has_personal_budgets:
        note += f" {wording.UPPER_ENDS}"
    if report.adjusted:
        note += (
            " They are adjusted: no total ever falls or is negative, and parts add up. Small ones "
            "lean upwards, and totals over many small ones do too."
        )
    if any(standing.total.noisy for standing in report.standings.publishers):
        note += (
            f" ~ marks what cannot be told from nothing at {wording.level_name(report)}: "
            "its interval reaches zero."
        )
    return note


def table(report: Report) -> str:
    standings, shown = report.standings, wording.decimals(report)

    def row(cell: Cell, share: str, share_interval: str) -> str:
        noisy, mark = (' class="noisy"', _NOISY_MARK) if cell.noisy else ("", "")
        return (
            f'<tr{noisy}><th scope="row">{escape(_name(cell.publisher))}</th>'
            f"<td>{amount(cell.estimate, shown)}{mark}</td>"
            f"<td>{interval(cell.low, cell.high, shown)}</td>"
            f"<td>{share}</td><td>{share_interval}</td></tr>"
        )

    rows = "".join(
        row(
            standing.total,
            percent(standing.share.value, 1) if standing.share else "",
            _share_interval(standing.share, 1) if standing.share else "",
        )
        for standing in standings.publishers
    )
    everything = row(standings.everything, "" if standings.everything.noisy else "100%", "")
    level = wording.level_name(report)
    long = " long" if len(standings.publishers) > _LONG_TABLE else ""
    return (
        f'<div class="scroll{long}" role="group" aria-labelledby="table-title" tabindex="0">'
        '<table><thead><tr><th scope="col">Publisher</th><th scope="col">Total so far</th>'
        f'<th scope="col">{level} interval</th><th scope="col">Share</th>'
        f'<th scope="col">{level} interval</th></tr></thead>'
        f"<tbody>{rows}</tbody><tfoot>{everything}</tfoot></table></div>"
    )


def gauges(scope: str, campaign_budget: Budget, scope_budget: Budget) -> str:
    return _gauge("This campaign", campaign_budget) + _gauge(
        f"All campaigns of scope “{scope}”", scope_budget
    )


def _gauge(title: str, budget: Budget) -> str:
    filled = 100 * float(budget.spent / budget.limit) if budget.limit else 100.0
    spent, limit, left = budget_texts(budget)
    return (
        f'<div class="gauge"><h3 class="name">{escape(title)}</h3>'
        f'<div class="meter" role="meter" aria-label="{escape(title)}: spent" aria-valuemin="0" '
        f'aria-valuemax="{limit}" aria-valuenow="{spent}" '
        f'aria-valuetext="{spent} of {limit} spent">'
        f'<span style="width: {filled:.4g}%"></span></div>'
        f"<p><span><strong>{spent}</strong> of {limit} spent</span>"
        f"<span><strong>{left}</strong> left</span></p></div>"
    )


def promise(report: Report) -> str:
    guarantee = report.promise.guarantee
    parameters = {
        "epsilon": rounded_up(report.promise.epsilon, 4),
        "delta": f"{report.promise.delta:g}".replace("e-0", "e-"),
        "rho (zCDP)": rounded_up(guarantee.rho, 4),
        "neighbours": guarantee.adjacency.value,
        "scope": guarantee.scope,
    }
    return "".join(
        (
            f'<dl class="parameters">{_definitions(parameters)}</dl>',
            "<h3>Who is protected</h3>",
            "<p>A person, which means one user id with all of its impressions and conversions.</p>",
            f"<p>{escape(wording.scope(report))}</p>",
            "<h3>What it means</h3>",
            f"<p>{escape(wording.neighbours(report))}</p>",
            f"<p>{escape(wording.odds(report.promise))}</p>",
            f"<p>{escape(wording.strength(report.promise))}</p>",
            "<h3>What is cut</h3>",
            f"<p>{escape(wording.bounds(report))}</p>",
            "<h3>What is not protected</h3>",
            "<ul><li>One person behind several ids: each id is protected by itself, so that "
            "person is protected less.</li>"
            "<li>What is public from the start: the list of publishers, the dates, the questions "
            "that are answered, the budgets. How much of one person counts, and the size of the "
            "noise, are published with every release.</li>"
            "<li>What is true of people in general. That is what the report is there to show.</li>"
            "</ul>",
        )
    )


def _definitions(found: dict[str, str]) -> str:
    return "".join(
        f"<div><dt>{escape(key)}</dt><dd>{escape(value)}</dd></div>" for key, value in found.items()
    )


def _name(publisher: str) -> str:
    return "All publishers" if publisher == ALL_PUBLISHERS else publisher


def _named(name: str) -> str:
    """A name that may be cut for want of room, and is whole when pointed at."""
    return f'<span class="name" title="{escape(name)}">{escape(name)}</span>'
