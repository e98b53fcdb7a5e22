"""Bad rows, as commands tell the operator of them."""

from __future__ import annotations

from collections.abc import Mapping

from adsbpc.cli.console import notes

Quarantined = Mapping[tuple[str, str], int]


def note_quarantine(quarantined: Quarantined, where: str = "", whose: str = "") -> None:
    """`where` so many rows were found, if it is not everywhere; `whose` they are opens the line."""
    for (source, reason), count in quarantined.items():
        told = f"{whose}quarantined {count:,} {source}{f' {where}' if where else ''}: {reason}"
        notes().print(told, style="yellow")


def as_objects(quarantined: Quarantined) -> list[dict[str, object]]:
    return [
        {"source": source, "reason": reason, "rows": count}
        for (source, reason), count in quarantined.items()
    ]
