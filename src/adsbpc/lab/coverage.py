"""How often intervals hold what they should, and bands at all slots at once: campaigns that are
repeated on made-up people. Nothing touches a file or a ledger."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from adsbpc.contributions import ArrayAccounts, ArrayContributions, CellIndex
from adsbpc.lab.repeated import People, RepeatedCampaign, Truth
from adsbpc.mechanisms import (
    BudgetByRows,
    Measures,
    guarantee_of,
    plan_measures,
    promise_with,
)
from adsbpc.model import (
    PICO_RHO,
    Budget,
    CampaignSpec,
    Measure,
    Measured,
    Release,
    RunningNoise,
)
from adsbpc.privacy import SeededRandomness
from adsbpc.report import Report
from adsbpc.report.cells import Cell

_LEVEL = 0.95
FIRST, HALF, LAST, BAND = "first slot", "half of the slots", "last slot", "all slots, band"
# What each ratio is of.
_RATIOS = {
    "value per conversion": ("revenue", "conversions"),
    "conversion rate": ("conversions", "reach"),
    "frequency": ("impressions", "reach"),
}


def released(spec: CampaignSpec, measures: Measures, people: People, seed: int) -> Report:
    """A campaign from the first slot to the last."""
    randomness, slots = SeededRandomness(seed), spec.campaign.slots
    by_slot: list[list[Measured]] = [[] for _ in range(slots)]
    for measure, mechanism in measures.runs:
        rows, state = people.rows(measure, slots), mechanism.resume(())
        data: ArrayAccounts | ArrayContributions = rows
        if isinstance(mechanism, BudgetByRows):
            data = ArrayAccounts(CellIndex.of(rows, mechanism.counted))
        for found in by_slot:
            drawn, state = mechanism.release(state, data, randomness)
            found.append(Measured(**dict(drawn), measure=measure.name, metric=measure.metric))
    releases = tuple(
        _release(spec, slot, tuple(found)) for slot, found in enumerate(by_slot, start=1)
    )

    def noise_of(measure: str, boundaries: Sequence[int]) -> RunningNoise:
        return measures.running_noise(releases, measure, boundaries)

    rho = guarantee_of(spec).rho
    budget = Budget(int(rho * PICO_RHO), int(rho * PICO_RHO))
    promise = promise_with(spec, rho)
    return Report(spec, releases, promise, budget, budget, _LEVEL, noise_of=noise_of, band=True)


def _release(spec: CampaignSpec, slot: int, found: tuple[Measured, ...]) -> Release:
    starts_at, ends_at = spec.grid.bounds_text(slot)
    return Release(
        scope=spec.campaign.scope,
        campaign=spec.campaign.name,
        slot=slot,
        starts_at=starts_at,
        ends_at=ends_at,
        measures=found,
    )


@dataclass(frozen=True)
class Held:
    """Figures of one kind in one campaign: how many there are, how many are told, and how many of
    those have an interval below, above or somewhere beside what is true."""

    figures: int = 0
    told: int = 0
    below: int = 0
    above: int = 0
    missed: int = 0

    def with_ends(
        self, ends: Sequence[tuple[float | None, float | None]], truth: Sequence[float]
    ) -> Held:
        """One figure more, which has intervals at one slot or at several."""
        told = all(low is not None and high is not None for low, high in ends)
        both = list(zip(ends, truth, strict=True))
        below = any(high is not None and high < true for (_, high), true in both)
        above = any(low is not None and low > true for (low, _), true in both)
        return Held(
            self.figures + 1,
            self.told + told,
            self.below + below,
            self.above + above,
            self.missed + (below or above),
        )


# By measure or ratio, view, and whether at a slot or at all of them.
Trial = dict[tuple[str, str, str], Held]


def one_trial(campaign: RepeatedCampaign, seed: int) -> Trial:
    spec, people = campaign.draw(seed)
    report = released(spec, plan_measures(spec), people, seed)
    slots, found = range(1, spec.campaign.slots + 1), Trial()
    truths: dict[str, Truth] = {}
    for measure in spec.measures:
        by_slot = [people.truth(measure, slot) for slot in slots]
        truths[measure.name] = by_slot[-1]
        name = measure.name if campaign.dataset is None else campaign.dataset
        for series in _by_sum(report, measure):
            view, keys = measure.layout.view_name(len(series[0].keys)), series[0].keys
            truth = [true[keys] for true in by_slot]
            for when, place in ((FIRST, 0), (HALF, len(slots) // 2), (LAST, -1)):
                own = series[place]
                _add(found, (name, view, when), [(own.low, own.high)], [truth[place]])
            bands = [(cell.band_low, cell.band_high) for cell in series]
            _add(found, (name, view, BAND), bands, truth)
    for ratio in (each for each in report.ratios if not each.keys):
        keys = () if ratio.is_of_everything else (ratio.publisher,)
        above, below = (truths[name][keys] for name in _RATIOS[ratio.name])
        view = "publisher" if keys else "total"
        _add(found, (ratio.name, view, LAST), [(ratio.low, ratio.high)], [above / below])
    return found


def _by_sum(report: Report, measure: Measure) -> Iterator[list[Cell]]:
    """Running totals after all slots, sum by sum."""
    measured, deepest = report.of_measure(measure), len(measure.layout.dimensions)
    lens = report.lens_of(measured)
    by_slot = [list(lens.cells(each, each.running_totals, deepest)) for each in measured]
    yield from (list(cells) for cells in zip(*by_slot, strict=True))


def _add(
    found: Trial,
    kind: tuple[str, str, str],
    ends: Sequence[tuple[float | None, float | None]],
    truth: Sequence[float],
) -> None:
    found[kind] = found.get(kind, Held()).with_ends(ends, truth)


def trials_of(campaign: RepeatedCampaign, trials: int, seed: int, jobs: int) -> Iterator[Trial]:
    """As they are done, in order."""
    seeds = range(seed * 1_000_000, seed * 1_000_000 + trials)
    if jobs <= 1:
        yield from map(partial(one_trial, campaign), seeds)
        return
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        yield from pool.map(partial(one_trial, campaign), seeds)


def rows_of(trials: list[Trial]) -> list[dict[str, Any]]:
    """For each measure or ratio, view and time: the part of its intervals that hold the truth.
    Figures of one campaign go together, so that the standard error is that of campaigns."""
    found = []
    for name, view, when in trials[0]:
        held: list[Held] = [trial[name, view, when] for trial in trials]
        told = sum(each.told for each in held)
        parts = [1 - each.missed / each.told for each in held if each.told]
        found.append(
            {
                "figure": name, "view": view, "when": when, "campaigns": len(trials),
                "intervals": told, "cannot_be_told": sum(each.figures for each in held) - told,
                "coverage": sum(parts) / len(parts) if parts else None,
                "standard_error": _error(parts),
                "too_low": sum(each.below for each in held),
                "too_high": sum(each.above for each in held),
            }
        )  # fmt: skip
    return found


def _error(parts: list[float]) -> float | None:
    return float(np.std(parts, ddof=1)) / sqrt(len(parts)) if len(parts) > 1 else None
