"""`make mutants`: runs the tests on each mutant, prints who killed it, fails if one survives."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import track
from rich.table import Table

from tests.mutants.catalogue import MUTANTS, Mutant

_ROOT = Path(__file__).parents[2]
_SOURCE = _ROOT / "src"
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def killer(mutant: Mutant | None, tests: tuple[str, ...]) -> str | None:
    """The test that fails on a copy of the sources with the mutant in it, if any does."""
    with TemporaryDirectory(prefix="adsbpc-mutant-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(_SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
        if mutant is not None:
            file = source / "adsbpc" / mutant.file
            text = file.read_text()
            assert text.count(mutant.before) == 1, f"{mutant.name}: not one place in {mutant.file}"
            file.write_text(text.replace(mutant.before, mutant.after))
        run = subprocess.run(
            [
                sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
                "-m", "not slow and not spark and not browser", *tests,
            ],
            cwd=_ROOT, capture_output=True, text=True, check=False,
            env={**os.environ, "PYTHONPATH": str(source), "TEST_EFFORT": "mutant"},
        )  # fmt: skip
    if run.returncode == 0:
        return None
    found = _FAILED.search(run.stdout)
    if run.returncode != 1 or found is None:
        raise SystemExit(f"pytest did not run:\n{run.stdout[-3000:]}\n{run.stderr[-3000:]}")
    return found.group(1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="mutants whose name holds this text")
    wanted = [each for each in MUTANTS if parser.parse_args().only in each.name]
    console = Console()
    every_test = tuple(dict.fromkeys(test for each in wanted for test in each.tests))
    with ThreadPoolExecutor(2) as pool:
        control = pool.submit(killer, None, every_test)
        killers = [pool.submit(killer, each, each.tests) for each in wanted]
        found = [each.result() for each in track(killers, "mutants", console=console)]
    if control.result() is not None:
        raise SystemExit(f"without any mutant, {control.result()} fails: mend that first")
    table = Table("mutant", "in", "killed by")
    for mutant, by in zip(wanted, found, strict=True):
        table.add_row(mutant.name, mutant.file, by or "[bold red]survives[/]")
    console.print(table)
    alive = found.count(None)
    console.print(f"{len(found) - alive} of {len(found)} mutants killed")
    sys.exit(1 if alive else 0)


if __name__ == "__main__":
    main()
