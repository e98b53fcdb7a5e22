"""A week of a month of personal budgets with 5 to 100 million conversions, of fifty a person, on a
standalone Spark cluster of this machine with one executor and with two, as table and picture of
docs/tutorials/spark.md: `python -m bench.spark_growth`.

Rows are those of `make bench-growth`, which has DuckDB's whole month. Here DuckDB is beside Spark
with as many threads as there are executors. Seconds are of a day, the first one left out: it starts
what the others use. What was measured stands in `.bench/spark-growth.json` and is not measured
again. `--sizes` takes other numbers of conversions, and prints the table.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from adsbpc.engines import Engine, Relation, open_engine
from bench.data import SLOTS, Sizes, make_contributions
from bench.documents import draw, put_into_page
from bench.growth import A_PERSON, SIZES
from bench.measured import Measured, peak_mib, seconds_of
from bench.released import released_slots
from bench.spark_cluster import started_cluster

_DAYS = 7
_MEASURED = Path(".bench/spark-growth.json")
_PICTURE = "tutorials/spark/growth"
_TITLE = "A day of personal budgets"


def _rows(engine: Engine, data: Path) -> Relation:
    folder = data / "contributions"
    files = [str(folder / f"slot={slot}" / "rows.parquet") for slot in range(1, _DAYS + 1)]
    columns = "user_id", "slot", "time_us", "conversion_number", "publisher_index", "weight"
    made = engine.read_files("made", "parquet", files, str(folder), columns)
    return Relation.of(
        "SELECT user_id, CAST(slot AS INT) AS slot, time_us, conversion_number,"
        f" publisher_index AS cell_index, weight FROM {made}"
    )


def _seconds_of_a_day(data: Path, engine: Engine) -> float:
    try:
        days = islice(released_slots(data, engine, _rows(engine, data), SLOTS), _DAYS)
        next(days)
        return seconds_of(lambda: [*days]) / (_DAYS - 1)
    finally:
        engine.close()


def _measured(data: Path, executors: int) -> Measured:
    floor = _seconds_of_a_day(data, open_engine("duckdb", {"threads": executors}))
    with TemporaryDirectory(dir=data) as folder, started_cluster(Path(folder), executors) as master:
        options = {
            "spark.master": master,
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "1g",
        }
        seconds = _seconds_of_a_day(data, open_engine("spark", options))
        from pyspark import SparkContext

        # Before its workers are.
        SparkContext.getOrCreate().stop()
    return Measured.of(floor, seconds, peak_mib())


def _of_size(conversions: int) -> dict[int, Measured]:
    """By executors."""
    Path(".bench").mkdir(exist_ok=True)
    with TemporaryDirectory(dir=".bench", prefix="spark-growth-") as folder:
        data = Path(folder).absolute()
        sizes = Sizes(contributions=conversions, users=conversions // A_PERSON)
        make_contributions(data / "contributions", sizes)
        found = {}
        for executors in (1, 2):
            found[executors] = _measured(data, executors)
            print(json.dumps(vars(found[executors])), file=sys.stderr)
        return found


def _known() -> dict[int, dict[int, Measured]]:
    if not _MEASURED.exists():
        return {}
    return {
        int(size): {int(executors): Measured(**each) for executors, each in of_size.items()}
        for size, of_size in json.loads(_MEASURED.read_text()).items()
    }


def _table(found: dict[int, dict[int, Measured]]) -> str:
    head = "conversions in the month", "Spark, 1 executor", "2 executors", "DuckDB, 1 thread", "2"
    lines = [f"| {' | '.join(head)} |", "|---:" * len(head) + "|"]
    for conversions, by_executors in found.items():
        seconds = [by_executors[executors].seconds for executors in (1, 2)]
        seconds += [by_executors[executors].floor_seconds for executors in (1, 2)]
        lines.append(f"| {conversions:,} | {' | '.join(f'{each:.1f}' for each in seconds)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_growth", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of conversions")
    options = parser.parse_args()
    # Whoever ends this program ends the cluster, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    found, known = {}, _known()
    for size in options.sizes or SIZES:
        print(f"running {size:,} conversions", file=sys.stderr)
        found[size] = known.get(size) or _of_size(size)
        known[size] = found[size]
        _MEASURED.write_text(json.dumps(known, default=vars, indent=1))
    print(_table(found))
    if options.sizes:
        return
    rows = [
        {"setting": conversions / 1e6, "mechanism": name, "value": seconds}
        for conversions, by_executors in found.items()
        for executors, each in by_executors.items()
        for name, seconds in (
            (f"Spark, executors: {executors}", each.seconds),
            (f"DuckDB, threads: {executors}", each.floor_seconds),
        )
    ]
    draw(_TITLE, rows, "seconds of a day", _PICTURE)
    put_into_page("tutorials/spark.md", "growth", _table(found), _TITLE, _PICTURE)


if __name__ == "__main__":
    main()
