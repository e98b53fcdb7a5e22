"""`adsbpc report`: what was released, with intervals, for people and for files."""

from __future__ import annotations

import sys
from pathlib import Path

from adsbpc.campaign import Campaign, check_targets
from adsbpc.campaign.series import Series
from adsbpc.cli.console import results
from adsbpc.cli.status import budget_line
from adsbpc.errors import SpecError, no_such_choice
from adsbpc.report.report import FORMATS


def run(
    file: Path,
    file_format: str | None,
    out: Path | None,
    level: float,
    adjusted: bool,
    measure: str | None,
    band: bool,
    as_json: bool,
) -> None:
    ending = "" if out is None else out.suffix.removeprefix(".")
    if file_format is None and ending:
        file_format = ending
    elif file_format is None and out is not None:
        raise SpecError(f"--out {out}: has no ending that says which format. Add --format")
    if file_format is not None and file_format not in FORMATS:
        raise no_such_choice(f"--format {file_format}", file_format, FORMATS)
    written_as = "csv" if file_format == "mmm" else file_format
    if ending in FORMATS and ending != written_as:
        raise SpecError(
            f"--out {out}: its ending is not --format {file_format}. Change one of them"
        )
    series = Series.load(file)
    campaign = Campaign.load(file) if series is None else series.first
    target = out or Path("weeks.csv" if file_format == "mmm" else f"report.{file_format}")
    if file_format is not None:
        check_targets([target], campaign.spec, file)
    whole = campaign if series is None else series
    report = whole.report(level, adjusted, measure=measure, band=band)
    if file_format is not None:
        report.write(target, file_format)
        print(f"Wrote {target}", file=sys.stderr if as_json else sys.stdout)
    if as_json:
        print(report.to_json())
    elif file_format is None:
        results().print(report.table())
        ratios = report.ratio_table()
        if ratios is not None:
            results().print(ratios)
        lift = report.lift_table()
        if lift is not None:
            results().print(lift)
        print(budget_line(report.campaign_budget))
