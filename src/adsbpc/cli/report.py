"""`adsbpc report`: what was released, with intervals, for people and for files."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from adsbpc.campaign import Campaign
from adsbpc.cli.status import budget_line
from adsbpc.errors import SpecError, did_you_mean

_FORMATS = ("html", "csv", "parquet", "json")


def run(
    file: Path,
    file_format: str | None,
    out: Path | None,
    level: float,
    adjusted: bool,
    as_json: bool,
) -> None:
    if file_format is None and out is not None:
        file_format = out.suffix.removeprefix(".")
    if file_format is not None and file_format not in _FORMATS:
        raise SpecError(
            f"--format {file_format}: expected one of {', '.join(_FORMATS)}."
            f"{did_you_mean(file_format, _FORMATS)}"
        )
    campaign = Campaign.load(file)
    report = campaign.report(level, adjusted)
    if file_format is not None:
        target = out or Path(f"report.{file_format}")
        report.write(target, file_format)
        Console(stderr=as_json).print(f"Wrote {target}", highlight=False)
    if as_json:
        print(report.to_json())
    elif file_format is None:
        console = Console()
        console.print(report.table())
        console.print(budget_line(campaign.status()), highlight=False)
