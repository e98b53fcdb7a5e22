"""`make bench-growth`: 31 slots of personal budgets with 5 to 100 million conversions, of fifty a
person, in seconds of all cores, as table and picture of docs/data-path.md.

Each size is made, measured in a process of its own and removed again; the largest takes 3 GB of
disk. `--sizes` takes other numbers of conversions, and prints the table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from adsbpc.engines import open_engine
from bench.cases import rows_by_slot, scan
from bench.data import Sizes, make_contributions
from bench.documents import draw, put_into_page
from bench.measured import Measured, peak_mib, processor_seconds_of
from bench.released import release_every_slot

SIZES = (5_000_000, 10_000_000, 25_000_000, 50_000_000, 100_000_000)
A_PERSON = 50
_PICTURE = "data-path/growth"
_TITLE = "31 slots of personal budgets"


def _measured(conversions: int) -> Measured:
    command = [sys.executable, "-m", "bench.growth", "--one", str(conversions)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return Measured(**json.loads(done.stdout))


def _one(conversions: int) -> Measured:
    Path(".bench").mkdir(exist_ok=True)
    with TemporaryDirectory(dir=".bench", prefix="growth-") as folder:
        data = Path(folder).absolute()
        sizes = Sizes(contributions=conversions, users=conversions // A_PERSON)
        make_contributions(data / "contributions", sizes)
        engine = open_engine("duckdb", {"threads": 2, "memory_limit": "3GiB"})
        relation = rows_by_slot(data)
        scan(engine, relation)
        floor = processor_seconds_of(lambda: scan(engine, relation))
        work = processor_seconds_of(lambda: release_every_slot(data, engine, relation))
        return Measured.of(floor, work, peak_mib())


def _table(found: dict[int, Measured]) -> str:
    lines = [
        "| conversions | people | seconds of all cores | of a million | of a plain scan | MiB |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    for size, each in found.items():
        of_a_million = each.seconds / (size / 1e6)
        lines.append(
            f"| {size:,} | {size // A_PERSON:,} | {each.seconds:.1f} | {of_a_million:.2f}"
            f" | {each.ratio:.0f} | {each.peak_mib:,} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of conversions")
    parser.add_argument("--one", type=int, help="measure one size in this process")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(vars(_one(options.one))))
        return
    found = {}
    for size in options.sizes or SIZES:
        print(f"running {size:,} conversions", file=sys.stderr)
        found[size] = _measured(size)
        print(json.dumps(vars(found[size])), file=sys.stderr)
    print(_table(found))
    if not options.sizes:
        rows = [
            {"setting": size / 1e6, "mechanism": _TITLE, "value": each.seconds}
            for size, each in found.items()
        ]
        draw(_TITLE, rows, "seconds of all cores", _PICTURE)
        put_into_page("data-path.md", "growth", _table(found), _TITLE, _PICTURE)


if __name__ == "__main__":
    main()
