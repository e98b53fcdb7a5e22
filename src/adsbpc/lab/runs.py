"""Runs of mechanisms on datasets: described, computed on several cores, remembered on disk.

A run is a function of its description, so that a finished one is never computed again: an
interrupted comparison goes on where it stopped.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, fields, replace
from fractions import Fraction
from functools import cache, lru_cache
from hashlib import file_digest, sha256
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from adsbpc.durable import replacing
from adsbpc.errors import SourceError, SpecError
from adsbpc.lab.baselines import bounded
from adsbpc.lab.baselines.pipelinedp import PipelineDP
from adsbpc.lab.baselines.published import PublishedAdsBPC
from adsbpc.lab.baselines.strategies import GlobalSensitivity
from adsbpc.lab.catalogue import MECHANISMS, PERSONAL, mechanism_named, personal_budgets
from adsbpc.lab.datasets import load_dataset, read_own_data
from adsbpc.lab.evaluation import (
    LabMechanism,
    Outcome,
    Prepared,
    Scores,
    Setting,
    last_scores_of,
    scores_of,
)
from adsbpc.model import Adjacency
from adsbpc.model.release_spec import AdsBPCSection, PersonalBudgetSection

# What a result depends on besides its description: results of other code are not recalled.
_ROOMS = (
    "lab/baselines", "lab/datasets", "mechanisms", "privacy", "contributions", "workloads", "model",
)  # fmt: skip


@cache
def _edition() -> str:
    package = Path(__file__).parent.parent
    digest = sha256(np.__version__.encode() + (package / "lab/evaluation.py").read_bytes())
    for room in _ROOMS:
        for file in sorted((package / room).rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def version_of(file: Path) -> str:
    """What a file of one's own holds now: it may change under its name."""
    try:
        with file.open("rb") as content:
            return file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise SourceError(
            str(file),
            f"a file that cannot be read ({error.strerror})",
            "a Parquet or CSV file",
            "Check the path.",
        ) from None


@dataclass(frozen=True)
class Run:
    """One mechanism on one dataset. `options` are parameters of the mechanism, where it has any;
    `data` is a file of one's own in place of a named dataset, `data_version` what it holds, and
    `largest_user` the public limit GS on its users, which is read off the file if left out."""

    dataset: str
    mechanism: str
    rho: float = 1.0
    adjacency: str = Adjacency.ADD_REMOVE.value
    slots: int = 31
    queries: str = "prefix"
    users: int | None = None
    trials: int = 10
    seed: int = 1
    copies: int = 1
    data: str | None = None
    data_version: str | None = None
    largest_user: int | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        described = json.dumps([_edition(), asdict(self)], sort_keys=True)
        return sha256(described.encode()).hexdigest()[:24]


_DATA_OF = attrgetter(
    "dataset", "slots", "seed", "users", "copies", "data", "data_version", "largest_user"
)


def compute(run: Run) -> dict[str, Any]:
    data = _prepared(*_DATA_OF(run))
    setting = Setting(Fraction(str(run.rho)), Adjacency(run.adjacency), data.slots, run.queries)
    _ = data.truth
    began = time.perf_counter()
    outcome = mechanism_of(run)(data, setting, run.trials, run.seed)
    seconds = (time.perf_counter() - began) / run.trials
    return {
        **asdict(run),
        "slots": data.slots,
        "users": data.dataset.users,
        "label": data.dataset.label,
        "gs": data.dataset.largest_user,
        "publishers": data.layout.sizes[1],
        "view": data.layout.view_name(len(data.layout.dimensions)),
        **_scores(outcome, data, setting),
        "seconds": seconds,
    }


def _scores(outcome: Outcome, data: Prepared, setting: Setting) -> dict[str, Any]:
    """All scores by name, those of coarser views behind the view's; those over all queries are None
    if only the last was answered."""
    if outcome.answers_all(setting):
        found = asdict(scores_of(outcome, data, setting))
    else:
        none = dict.fromkeys(each.name for each in fields(Scores))
        found = {**none, **asdict(last_scores_of(outcome, data, setting))}
    coarser = found.pop("coarser")
    return found | {
        f"{view}_{name}": value for view, own in coarser.items() for name, value in own.items()
    }


def mechanism_of(run: Run) -> LabMechanism:
    if not run.options:
        return mechanism_named(run.mechanism)
    named = MECHANISMS.get(run.mechanism)
    if isinstance(named, GlobalSensitivity | PublishedAdsBPC | PipelineDP):
        return replace(named, **run.options)
    if run.mechanism == "adsbpc-constant":
        return bounded.constant_bound(int(run.options["bound"]))
    if run.mechanism in ("adsbpc", "adsbpc-svt"):
        return bounded.adsbpc(AdsBPCSection(**run.options))
    if run.mechanism in PERSONAL:
        return personal_budgets(run.mechanism, PersonalBudgetSection(**run.options))
    raise SpecError(f"mechanism {run.mechanism!r} has no options: remove {sorted(run.options)}")


@lru_cache(maxsize=1)
def _prepared(
    name: str,
    slots: int,
    seed: int,
    users: int | None,
    copies: int,
    data: str | None,
    _data_version: str | None,
    largest_user: int | None,
) -> Prepared:
    """Kept between runs of one process: neighbouring runs are on the same data."""
    if data is not None:
        dataset = read_own_data(Path(data), slots or None)
    else:
        dataset = load_dataset(name, slots, seed, users, copies)
    if largest_user is not None:
        dataset = replace(dataset, largest_user=largest_user)
    return Prepared(dataset)


def compute_all(
    runs: Sequence[Run], cache: Path | None = None, jobs: int = 1
) -> Iterator[tuple[Run, dict[str, Any]]]:
    """Rows as they are done; those that the cache has come first."""
    waiting = []
    for run in runs:
        known = _recall(cache, run)
        if known is None:
            waiting.append(run)
        else:
            yield run, known
    if jobs <= 1:
        for run in waiting:
            yield run, _remember(cache, run, compute(run))
        return
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        # Neighbours share a dataset, and a core keeps the last ones it loaded.
        futures = {pool.submit(compute, run): run for run in waiting}
        for future in as_completed(futures):
            yield futures[future], _remember(cache, futures[future], future.result())


def _recall(cache: Path | None, run: Run) -> Any:
    if cache is None:
        return None
    try:
        return json.loads((cache / f"{run.key}.json").read_text())
    except (OSError, ValueError):
        return None


def _remember(cache: Path | None, run: Run, row: dict[str, Any]) -> dict[str, Any]:
    if cache is not None:
        cache.mkdir(parents=True, exist_ok=True)
        with replacing(cache / f"{run.key}.json") as unfinished:
            unfinished.write_text(json.dumps(row))
    return row
