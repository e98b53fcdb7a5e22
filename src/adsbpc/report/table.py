"""The newest totals as a table for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from adsbpc.model import ALL_PUBLISHERS
from adsbpc.report.cells import Cell
from adsbpc.report.notes import below_table
from adsbpc.report.numbers import amount, interval, percent
from adsbpc.report.ratios import Ratio
from adsbpc.report.wording import decimals, level_name, metric_name

if TYPE_CHECKING:
    from rich.table import Table

    from adsbpc.report.report import Report

_NOISY_MARK = "~"


def table_of(report: Report, truth: Mapping[str, float] | None) -> Table:
    from rich.table import Table
    from rich.text import Text

    campaign, standings = report.spec.campaign, report.standings
    shown = decimals(report)
    table = Table(
        title=Text(
            f"{campaign.name}: {metric_name(report)} after {report.timeline.word} "
            f"{report.newest.slot} of {campaign.slots}"
        ),
        caption_justify="left",
    )
    # Names fold rather than lose their ends: publishers often share how they start.
    table.add_column(report.measure.layout.dimensions[0].name, overflow="fold")
    headings = ["estimate", f"{level_name(report)} interval", "share"]
    if report.band:
        headings.insert(2, "all at once")
    for heading in headings if truth is None else [*headings, "truth"]:
        table.add_column(heading, justify="right")

    if truth is not None:
        truth = {**truth, ALL_PUBLISHERS: sum(truth.values())}

    def add(cell: Cell, share: str, style: str = "", end_section: bool = False) -> None:
        mark = f" {_NOISY_MARK}" if cell.noisy else "  "
        table.add_row(
            # A text, so that brackets in a name are not taken for a style.
            Text(cell.publisher),
            f"{amount(cell.estimate, shown)}{mark}",
            interval(cell.low, cell.high, shown),
            *([_band(cell, shown)] if report.band else []),
            share,
            *([] if truth is None else [amount(truth[cell.publisher], shown)]),
            style="dim" if cell.noisy else style,
            end_section=end_section,
        )

    for standing in standings.publishers:
        share = percent(standing.share.value) if standing.share else ""
        add(standing.total, share, end_section=standing is standings.publishers[-1])
    add(standings.everything, "" if standings.everything.noisy else "100%", style="bold")
    notes = [below_table(report)]
    if report.band:
        word = report.timeline.word
        notes.append(f"All at once: holds for totals after every {word} of the campaign together.")
    if any(standing.total.noisy for standing in standings.publishers):
        notes.append(f"{_NOISY_MARK} cannot be told from zero at {level_name(report)}")
    table.caption = Text("\n".join(notes), style="dim")
    return table


def _band(cell: Cell, shown: int) -> str:
    if cell.band_low is None or cell.band_high is None:
        return ""
    return interval(cell.band_low, cell.band_high, shown)


def ratio_table_of(report: Report) -> Table | None:
    """Ratios so far, a row for each publisher; None if there is nothing to divide. Further levels
    are in files."""
    from rich.table import Table
    from rich.text import Text

    ratios = [each for each in report.ratios if not each.keys]
    names = list(dict.fromkeys(each.name for each in ratios))
    if not names:
        return None
    found = {(each.publisher, each.name): each for each in ratios}
    table = Table(title=f"Ratios so far, with {level_name(report)} intervals")
    table.add_column("publisher", overflow="fold")
    for name in names:
        table.add_column(name, justify="right")
    for publisher in dict.fromkeys(each.publisher for each in ratios):
        shown = (_told(found.get((publisher, name))) for name in names)
        table.add_row(Text(publisher), *shown)
    return table


def _told(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    if ratio.value is None or ratio.low is None or ratio.high is None:
        return "cannot be told"
    return f"{ratio.value:,.2f} ({ratio.low:,.2f} to {ratio.high:,.2f})"
