"""How far noise moves the shares of publishers under fitted attribution models, on made-up
people."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from adsbpc.attribution import CountSet, FittedModel, count_set, fitted_model, journeys_of
from adsbpc.attribution.estimation import Counted, estimate
from adsbpc.attribution.fitted import members_sql
from adsbpc.attribution.fitted_reference import member_units
from adsbpc.attribution.games import Reals
from adsbpc.contributions import engine_counts
from adsbpc.engines import Engine, open_engine
from adsbpc.events import read_events
from adsbpc.lab.journeys import make_campaign
from adsbpc.model import Adjacency, CampaignSpec, Fit, load_spec
from adsbpc.privacy import SeededRandomness, exact_rho, full_weight, noisy_counts
from adsbpc.privacy.randomness import Integers

# Long enough that nobody's journey counts for less.
_WHOLE_JOURNEY = 500


@dataclass(frozen=True)
class FitTrial:
    """The largest distance between a publisher's shares of all credit, fitted with noise and
    without, in percentage points."""

    model: str
    order: int
    users: int
    rho: float
    distance: float


class Fits:
    """A week of made-up people with six publishers, fitted with noise and without."""

    def __init__(self, users: int, seed: int = 1) -> None:
        self.users = users
        self._engine: Engine = open_engine("duckdb", {})
        self._folder = tempfile.TemporaryDirectory(prefix="adsbpc-fits-")
        made = make_campaign(Path(self._folder.name), users, 8, seed, "uniform")
        self._spec: CampaignSpec = load_spec(made.spec)
        self._journeys = journeys_of(self._spec.attribution)
        self._events = read_events(self._spec, self._engine, through=7)
        self._converting = self._converting_journeys()
        self._counted: dict[CountSet, Integers] = {}

    @property
    def publishers(self) -> tuple[str, ...]:
        return self._spec.reported_publishers

    def close(self) -> None:
        self._engine.close()
        self._folder.cleanup()

    def _converting_journeys(self) -> list[tuple[tuple[int, ...], int]]:
        """Which publishers conversions had, in the order of first touches, and how often."""
        found = self._engine.rows(
            "converting journeys",
            f"""WITH {self._journeys.touches_sql(self._events, whole_journey=True)},
{members_sql(self._events.publishers)},
listed AS (
  SELECT string_agg(CAST(publisher_index AS STRING), ' ' ORDER BY place) AS journey
  FROM placed GROUP BY conversion_key
)
SELECT journey, count(*) FROM listed GROUP BY journey""",
        )
        return [(tuple(map(int, journey.split())), count) for journey, count in found]

    def _counts(self, counts: CountSet) -> Integers:
        if counts not in self._counted:
            self._counted[counts] = engine_counts(
                self._events, counts, self._journeys, self._spec.grid.starts_at
            )
        return self._counted[counts]

    def shares(self, model: str, order: int, rho: float | None, seed: int = 0) -> Reals:
        """Shares of all credit under a model that was fitted with noise, or without any."""
        players = len(self.publishers)
        if rho is None:
            counts = count_set(model, order, players, _WHOLE_JOURNEY)
            values, scale = self._counts(counts), 0.0
        else:
            counts = count_set(model, order, players)
            noisy = noisy_counts(
                self._counts(counts), exact_rho(rho), Adjacency.ADD_REMOVE, SeededRandomness(seed)
            )
            values, scale = noisy.values, noisy.scale
        full = full_weight(counts.full_squared)
        counted = Counted(counts, values / full, scale / full)
        fit = Fit.model_validate(
            {
                "model": model,
                "order": order,
                "publishers": self.publishers,
                "parameters": estimate(model, order, counted),
            }
        )
        return self._applied(fitted_model(fit))

    def _applied(self, model: FittedModel) -> Reals:
        totals = np.zeros(len(self.publishers))
        for members, count in self._converting:
            totals[list(members)] += count * np.array(member_units(model, members))
        return np.asarray(totals / totals.sum())

    def trials(self, model: str, order: int, rho: float, seeds: Sequence[int]) -> list[FitTrial]:
        plain = self.shares(model, order, None)
        return [
            FitTrial(
                model,
                order,
                self.users,
                rho,
                100 * float(np.abs(self.shares(model, order, rho, seed) - plain).max()),
            )
            for seed in seeds
        ]
