"""What a slot reads, as commands show it to the operator."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from adsbpc.campaign.overview import Overview
from adsbpc.cli.console import counted, notes
from adsbpc.cli.quarantine import as_objects


def show_start(seen: Overview) -> None:
    """Before the first charge of a campaign."""
    console = notes()
    show_overview(seen, console)
    console.print("These counts have no noise: keep them to yourself.", style="dim")


def show_overview(seen: Overview, console: Console) -> None:
    sources = Table("rows", "usable", "set aside", title=f"What slot {seen.slot} reads")
    for column in sources.columns[1:]:
        column.justify = "right"
    for source, counts in seen.sources.items():
        sources.add_row(source, f"{counts.usable:,}", f"{sum(counts.bad.values()):,}")
        for reason, count in counts.bad.items():
            sources.add_row(f"  {reason}", "", f"{count:,}", style="yellow")
        if counts.late:
            sources.add_row("  arrived after settle and wait", f"{counts.late:,}", style="yellow")
    console.print(sources)
    share = f" ({seen.matched / seen.conversions:.1%})" if seen.conversions else ""
    console.print(
        f"{seen.matched:,} of {counted(seen.conversions, 'conversion')}{share} have a touch."
    )
    if not seen.matched:
        return
    publishers = Table("publisher", "conversions", "share")
    for column in publishers.columns[1:]:
        column.justify = "right"
    for name, credited in sorted(seen.credited.items(), key=lambda each: -each[1]):
        publishers.add_row(name, f"{credited:,.1f}", f"{credited / seen.matched:.1%}")
    console.print(publishers)


def overview_object(seen: Overview) -> dict[str, Any]:
    return {
        "slot": seen.slot,
        "conversions": seen.conversions,
        "matched": seen.matched,
        "credited": dict(seen.credited),
        "usable": {source: counts.usable for source, counts in seen.sources.items()},
        "late": sum(counts.late for counts in seen.sources.values()),
        "quarantined": as_objects(seen.quarantined),
        "refused": bool(seen.problems),
        "problems": list(seen.problems),
        "personal_data": True,
    }
