"""Table and picture of docs/tutorials/spark.md, of what `python -m bench.on_spark` has printed of
several scales: `python -m bench.spark_growth FILE`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from bench.documents import draw, put_into_page
from bench.measured import Measured

_TITLE = "A day of personal budgets, from events to the ledger"
_NAME = re.compile(r"day_of_(\d+)_conversions_on_(\d)_spark_workers")
_PICTURE = "tutorials/spark/growth"


def _read(file: Path) -> dict[int, dict[int, Measured]]:
    """Conversions of the month, and workers."""
    found: dict[int, dict[int, Measured]] = {}
    for name, measured in json.loads(file.read_text()).items():
        match = _NAME.fullmatch(name)
        if match is None:
            raise SystemExit(f"{file}: {name} is none of bench.on_spark's")
        conversions, workers = map(int, match.groups())
        found.setdefault(conversions, {})[workers] = Measured(**measured)
    return found


def _table(found: dict[int, dict[int, Measured]]) -> str:
    head = "conversions in the month", "Spark, 1 executor", "2 executors", "DuckDB, 1 thread", "2"
    lines = [f"| {' | '.join(head)} |", "|---:" * len(head) + "|"]
    for conversions, by_workers in found.items():
        seconds = [by_workers[workers].seconds for workers in (1, 2)]
        seconds += [by_workers[workers].floor_seconds for workers in (1, 2)]
        lines.append(f"| {conversions:,} | {' | '.join(f'{each:.1f}' for each in seconds)} |")
    return "\n".join(lines)


def main() -> None:
    found = _read(Path(sys.argv[1]))
    rows = [
        {"setting": conversions / 1e6, "mechanism": name, "value": seconds}
        for conversions, by_workers in found.items()
        for workers, each in by_workers.items()
        for name, seconds in (
            (f"Spark, executors: {workers}", each.seconds),
            (f"DuckDB, threads: {workers}", each.floor_seconds),
        )
    ]
    draw(_TITLE, rows, "seconds of a day", _PICTURE)
    put_into_page("tutorials/spark.md", "growth", _table(found), _TITLE, _PICTURE)


if __name__ == "__main__":
    main()
