"""`make bench`: makes the data once, runs every case in its own process, prints one JSON object."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from bench.cases import CASES
from bench.data import Sizes, make_contributions, make_events, make_market, make_year
from bench.measured import Measured
from bench.service_cases import SERVICE_CASES


def _make_data(directory: Path, sizes: Sizes) -> None:
    for name, make in (
        ("events", make_events),
        ("market", make_market),
        ("contributions", make_contributions),
        ("year", make_year),
    ):
        finished = directory / f"{name}.done"
        if finished.exists():
            continue
        print(f"making {name} in {directory}", file=sys.stderr)
        (directory / name).mkdir(parents=True, exist_ok=True)
        make(directory / name, sizes)
        finished.touch()


def _run(name: str, data: Path, scale: float) -> Measured:
    return SERVICE_CASES[name](scale) if name in SERVICE_CASES else CASES[name](data)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full size")
    parser.add_argument(
        "--case", choices=sorted([*CASES, *SERVICE_CASES]), help="run one case in this process"
    )
    parser.add_argument("--ids", choices=["text", "integer"], default="text", help="kind of ids")
    parser.add_argument("--data", type=Path, help="where to keep the data")
    options = parser.parse_args()
    data: Path = (options.data or Path(".bench") / f"{options.ids}-{options.scale:g}").absolute()
    if options.case not in SERVICE_CASES:
        sizes = Sizes(integer_ids=options.ids == "integer")
        _make_data(data, sizes.scaled(options.scale))
    if options.case:
        print(json.dumps(asdict(_run(options.case, data, options.scale))))
        return
    results = {}
    for name in (*CASES, *SERVICE_CASES):
        print(f"running {name}", file=sys.stderr)
        command = [sys.executable, "-m", "bench", "--case", name, "--data", str(data)]
        command += ["--scale", str(options.scale)]
        results[name] = json.loads(
            subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        )
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
