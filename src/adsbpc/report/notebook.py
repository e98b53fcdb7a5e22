"""The report inside a notebook: a picture, a small table and the promise, without any script."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from adsbpc.model import ALL_PUBLISHERS
from adsbpc.report import charts
from adsbpc.report.cells import Cell
from adsbpc.report.numbers import amount, interval, percent
from adsbpc.report.palette import LIGHT
from adsbpc.report.wording import UPPER_ENDS, decimals, level_name, promise_in_words, summary

if TYPE_CHECKING:
    from adsbpc.report.report import Report

_MOST_ROWS = 12
# Notebooks may drop style sheets, and keep attributes.
_BOX = (
    f"max-width:760px;padding:16px 20px;background:{LIGHT['card']};color:{LIGHT['ink']};"
    f"border:1px solid {LIGHT['line']};border-radius:10px;"
    f"font:14px/1.5 {charts.FONT};font-variant-numeric:tabular-nums"
)
_QUIET = f"color:{LIGHT['quiet']};font-size:13px"
_NUMBER = "text-align:right;padding:3px 0 3px 20px;background:none"
_NAME = "text-align:left;padding:3px 0;overflow-wrap:anywhere;font-weight:inherit;background:none"


def fragment_of(report: Report) -> str:
    standings = report.standings
    rows = [
        _row(report, standing.total, percent(standing.share.value) if standing.share else "")
        for standing in standings.publishers[:_MOST_ROWS]
    ]
    left_out = len(standings.publishers) - len(rows)
    if left_out > 0:
        rows.append(f'<tr><td colspan="4" style="{_QUIET}">and {left_out} smaller ones</td></tr>')
    rows.append(_row(report, standings.everything, "", weight="600"))
    headings = "".join(
        f'<th style="{style};{_QUIET}">{heading}</th>'
        for heading, style in (
            ("publisher", _NAME),
            ("total so far", _NUMBER),
            (f"{level_name(report)} interval", _NUMBER),
            ("share", _NUMBER),
        )
    )
    note = f"{UPPER_ENDS} " if report.has_personal_budgets else ""
    return (
        f'<div style="{_BOX}"><div style="font-size:17px;font-weight:600">'
        f"{escape(report.spec.campaign.name)}</div>"
        f'<div style="margin-bottom:10px">{escape(summary(report))}</div>{_picture(report)}'
        f'<table style="border-collapse:collapse;width:100%;margin:10px 0;font:inherit">'
        f"<thead><tr>{headings}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        f'<div style="{_QUIET}">{note}{escape(promise_in_words(report.promise))}</div></div>'
    )


def _picture(report: Report) -> str:
    import vl_convert

    def paint(name: str) -> str:
        return LIGHT[name]

    spec = charts.trend(report, paint) | {"width": 660, "height": 240}
    spec["encoding"]["color"]["legend"] = {
        "title": None,
        "orient": "top",
        "columns": 4,
        "symbolOpacity": 1,
    }
    picture: str = vl_convert.vegalite_to_svg(spec, config=charts.config(paint))
    # The size gives way to narrow cells.
    return picture.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)


def _row(report: Report, cell: Cell, share: str, weight: str = "400") -> str:
    shown = decimals(report)
    name = "all publishers" if cell.publisher == ALL_PUBLISHERS else cell.publisher
    mark = " ~" if cell.noisy else ""
    colour = LIGHT["quiet"] if cell.noisy else LIGHT["ink"]
    return (
        f'<tr style="font-weight:{weight};color:{colour};background:none">'
        f'<th style="{_NAME}">{escape(name)}</th>'
        f'<td style="{_NUMBER}">{amount(cell.estimate, shown)}{mark}</td>'
        f'<td style="{_NUMBER}">{interval(cell.low, cell.high, shown)}</td>'
        f'<td style="{_NUMBER}">{share}</td></tr>'
    )
