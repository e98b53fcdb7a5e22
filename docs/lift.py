"""Tables of docs/lift.md, from what `adsbpc lab lift --json` prints: `make lift` runs both."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pages import between

PAGE = Path(__file__).parent / "lift.md"

Rows = list[dict[str, Any]]


def coverage(rows: Rows) -> str:
    lines = [
        "| trial | rho | the last plain interval holds | the band holds on all days | an effect is "
        "told by the band | by plain intervals |",
        "|---|---|---|---|---|---|",
    ]
    order = list(dict.fromkeys(row["scenario"] for row in rows))
    for row in sorted(rows, key=lambda row: (order.index(row["scenario"]), row["rho"])):
        is_false = "false_alarms" in row
        told, plain = (
            row[f"{'plain_' if by_plain else ''}false_alarms"]
            if is_false
            else row[f"told{'_by_plain' if by_plain else ''}"]
            for by_plain in (False, True)
        )
        note = " (false alarms)" if is_false else ""
        lines.append(
            f"| {row['scenario']} | {row['rho']:g} | {row['plain_at_the_end']:.1%} "
            f"| {row['band_on_all_days']:.1%} | {told:.1%}{note} | {plain:.1%}{note} |"
        )
    trials, error = rows[0]["trials"], rows[0]["standard_error"]
    lines += ["", f"{trials:,} trials each; a figure near 95% has a standard error of {error:.1%}."]
    return "\n".join(lines)


def prices(rows: Rows) -> str:
    daily = f"{rows[0]['slots']} daily releases"
    lines = [f"| rho | {daily} | one release at the end |", "|---|---|---|"]
    lines += [
        f"| {row['rho']:g} | {row['wider_by_daily_releases']:.2%} "
        f"| {row['wider_by_one_release']:.2%} |"
        for row in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    found, text = json.load(sys.stdin), PAGE.read_text(encoding="utf-8")
    for name, table in (("coverage", coverage), ("price", prices)):
        text = between(text, name, table([row for row in found if row["figure"] == name]))
    PAGE.write_text(text, encoding="utf-8")
