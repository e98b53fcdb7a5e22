"""The tables of docs/measures.md: what sums of their own gain, and what they cost cells; and, of
JSON that `adsbpc lab coverage --json` printed, how often intervals hold."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from math import sqrt
from pathlib import Path
from typing import Any

from adsbpc.lab.coverage import BAND, FIRST, HALF, LAST
from adsbpc.workloads import Margins

SHAPES = (((6,), (1, 8)), ((50,), (1, 8)), ((287,), (1, 8)), ((50, 20), (1, 8, 8)))
# What holds more or less often than this is told with the ends that fail.
LEAST, MOST = 0.935, 0.975

Row = dict[str, Any]


def main(files: list[str]) -> None:
    lines = coverage(files) if files else sums_of_their_own()
    sys.stdout.writelines(f"{line}\n" for line in lines)


def sums_of_their_own() -> Iterator[str]:
    for lengths, weights in SHAPES:
        own = Margins(lengths, weights)
        alone = Margins(lengths, (*[0] * len(lengths), 1))
        unit = sum(weight**2 for weight in weights)
        errors = [
            f"{sqrt(unit * own.view_variance(depth)):.2f} instead of "
            f"{sqrt(alone.view_variance(depth)):.2f}"
            for depth in range(len(lengths) + 1)
        ]
        yield f"{' x '.join(map(str, lengths))} {weights}: {'; '.join(errors)}"


def coverage(files: Iterable[str]) -> Iterator[str]:
    """A table for each mechanism, and one of the figures that hold more or less often."""
    rows: list[Row] = [row for file in files for row in json.loads(Path(file).read_text())]
    for mechanism in dict.fromkeys(row["mechanism"] for row in rows):
        own = [row for row in rows if row["mechanism"] == mechanism]
        yield from ("", mechanism, "")
        yield from _table(own)
        yield ""
        yield from _outside(own)


def _table(rows: list[Row]) -> Iterator[str]:
    times = (FIRST, HALF, LAST, BAND)
    yield f"| figure | view | {' | '.join(times)} |"
    yield f"|---|---|{'---|' * len(times)}"
    found: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row["figure"], row["view"]), {})[row["when"]] = row
    for names, by_time in found.items():
        yield _line(*names, *(_percent(by_time.get(when)) for when in times))


def _outside(rows: list[Row]) -> Iterator[str]:
    """Bands that hold more often than they say are not among them: they have no upper bar."""
    yield "| figure | view | when | hold | too low | too high |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        most = 1.0 if row["when"] == BAND else MOST
        if row["coverage"] is not None and not LEAST <= row["coverage"] <= most:
            ends = (f"{100 * row[end] / row['intervals']:.1f}" for end in ("too_low", "too_high"))
            yield _line(row["figure"], row["view"], row["when"], _percent(row), *ends)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _percent(row: Row | None) -> str:
    if row is None or row["coverage"] is None:
        return ""
    held, error = 100 * row["coverage"], row["standard_error"]
    return f"{held:.1f}" if error is None else f"{held:.1f} ± {100 * error:.1f}"


if __name__ == "__main__":
    main(sys.argv[1:])
