"""Models with parameters: credits follow from a journey and public whole numbers, nothing else.

A journey is the set of its publishers' places in the public list, in the order of their first
touches. Publishers outside the list are one member, whose credit they share equally.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from adsbpc.attribution.counts import Coalitions, mask_of
from adsbpc.attribution.estimation import EFFECT_PARTS
from adsbpc.attribution.models import AttributionModel, Numbers
from adsbpc.engines import Relation
from adsbpc.events import EventTables
from adsbpc.model.grid import UNITS_PER_CONVERSION


def members_sql(publishers: Relation) -> str:
    """Named steps from `touches` to `placed`, a row for each member of a journey."""
    return f"""named AS (
  SELECT touches.conversion_key, touches.publisher_number, publishers.publisher_index,
    min(touches.touch_order) AS first_touch
  FROM touches
  JOIN {publishers} AS publishers ON publishers.publisher_number = touches.publisher_number
  GROUP BY touches.conversion_key, touches.publisher_number, publishers.publisher_index
),
members AS (
  SELECT conversion_key, publisher_index, min(first_touch) AS first_touch, count(*) AS names
  FROM named GROUP BY conversion_key, publisher_index
),
placed AS (
  SELECT conversion_key, publisher_index, names,
    row_number() OVER (PARTITION BY conversion_key ORDER BY first_touch) - 1 AS place,
    count(*) OVER (PARTITION BY conversion_key) AS journey_members
  FROM members
)"""


# From `divided` (conversion_key, publisher_index, names, units).
_SHARES = """shares AS (
  SELECT named.conversion_key, named.publisher_number,
    whole_div(divided.units, divided.names) AS credit_units
  FROM divided
  JOIN named ON named.conversion_key = divided.conversion_key
    AND named.publisher_index = divided.publisher_index
)"""


def _in_proportion(least_whole: str = "0") -> str:
    """From `weighed`, which has a weight >= 0, to `divided`: in proportion, rounded down; equally
    if there is nothing to share."""
    return f"""summed AS (
  SELECT conversion_key, publisher_index, names, weight, journey_members,
    greatest(sum(weight) OVER (PARTITION BY conversion_key),
      max({least_whole}) OVER (PARTITION BY conversion_key)) AS whole
  FROM weighed
),
divided AS (
  SELECT conversion_key, publisher_index, names,
    CASE WHEN whole = 0 THEN whole_div({UNITS_PER_CONVERSION}, journey_members)
      ELSE whole_div({UNITS_PER_CONVERSION} * weight, whole) END AS units
  FROM summed
)"""


class FittedModel(AttributionModel):
    """What fitted models share; `publishers` is the public list, with the rest as its last."""

    publishers: tuple[str, ...]

    @abstractmethod
    def units_sql(self, tables: Mapping[str, Relation]) -> str:
        """Named steps from `placed` to `divided`."""

    def shares_sql(self, events: EventTables, tables: Mapping[str, Relation]) -> str:
        return f"{members_sql(events.publishers)},\n{self.units_sql(tables)},\n{_SHARES}"


@dataclass(frozen=True)
class PublisherWeights(FittedModel):
    """Credit in proportion to a weight of each publisher: incremental values, or removal effects of
    a Markov chain."""

    publishers: tuple[str, ...]
    weights: tuple[int, ...]

    def tables(self) -> dict[str, Numbers]:
        indices = range(len(self.publishers))
        return {"model_weights": {"publisher_index": indices, "weight": self.weights}}

    def units_sql(self, tables: Mapping[str, Relation]) -> str:
        return f"""weighed AS (
  SELECT placed.conversion_key, placed.publisher_index, placed.names, placed.journey_members,
    model_weights.weight
  FROM placed
  JOIN {tables["model_weights"]} AS model_weights
    ON model_weights.publisher_index = placed.publisher_index
),
{_in_proportion()}"""


@dataclass(frozen=True)
class PairWeights(FittedModel):
    """The probabilistic model of Shao and Li 2011. `added` has what each pair adds, row by row."""

    publishers: tuple[str, ...]
    rates: tuple[int, ...]
    added: tuple[int, ...]

    def tables(self) -> dict[str, Numbers]:
        players = range(len(self.publishers))
        return {
            "model_rates": {"publisher_index": players, "rate": self.rates},
            "model_added": {
                "publisher_index": [one for one in players for _ in players],
                "other_index": [other for _ in players for other in players],
                "added": self.added,
            },
        }

    def units_sql(self, tables: Mapping[str, Relation]) -> str:
        # Everything times twice the number of the others, so that nothing has to be divided.
        return f"""paired AS (
  SELECT one.conversion_key, one.publisher_index, CAST(sum(model_added.added) AS BIGINT) AS added
  FROM placed AS one
  JOIN placed AS other ON other.conversion_key = one.conversion_key
    AND other.publisher_index <> one.publisher_index
  JOIN {tables["model_added"]} AS model_added ON model_added.publisher_index = one.publisher_index
    AND model_added.other_index = other.publisher_index
  GROUP BY one.conversion_key, one.publisher_index
),
weighed AS (
  SELECT placed.conversion_key, placed.publisher_index, placed.names, placed.journey_members,
    greatest(0, 2 * (placed.journey_members - 1) * model_rates.rate + coalesce(paired.added, 0))
      AS weight
  FROM placed
  JOIN {tables["model_rates"]} AS model_rates
    ON model_rates.publisher_index = placed.publisher_index
  LEFT JOIN paired ON paired.conversion_key = placed.conversion_key
    AND paired.publisher_index = placed.publisher_index
),
{_in_proportion()}"""


# The logistic curve from -16 to 16 in steps of 1/16, straight between them, in whole numbers.
_CURVE_END = 16 * EFFECT_PARTS
_CURVE_STEP = EFFECT_PARTS // 16
_CURVE_PARTS = 2**32


def _curve() -> tuple[int, ...]:
    from math import exp

    steps = range(-_CURVE_END, _CURVE_END + 1, _CURVE_STEP)
    return tuple(round(_CURVE_PARTS / (1 + exp(-step / EFFECT_PARTS))) for step in steps)


CURVE = _curve()


def curve_at(log_odds: int) -> int:
    """The chance to convert at log odds in 1 / EFFECT_PARTS, in 1 / 2^32."""
    place = min(max(log_odds, -_CURVE_END), _CURVE_END - 1) + _CURVE_END
    step, rest = divmod(place, _CURVE_STEP)
    return CURVE[step] + (CURVE[step + 1] - CURVE[step]) * rest // _CURVE_STEP


@dataclass(frozen=True)
class LogisticEffects(FittedModel):
    """Each publisher is credited with what a journey's chance to convert would lose without it, and
    with an equal part of the chance that no publisher accounts for. `effects` are log odds: of a
    user who saw nothing, then of each publisher.

    Without the equal part, whether an effect lies just above or just below 0 would decide over all
    of a conversion.
    """

    publishers: tuple[str, ...]
    effects: tuple[int, ...]

    def tables(self) -> dict[str, Numbers]:
        rises = [high - low for low, high in pairwise(CURVE)]
        return {
            "model_effects": {
                "publisher_index": range(len(self.publishers)),
                "effect": self.effects[1:],
            },
            "model_curve": {"step": range(len(rises)), "low": CURVE[:-1], "rise": rises},
        }

    def units_sql(self, tables: Mapping[str, Relation]) -> str:
        def clipped(log_odds: str) -> str:
            return f"least(greatest({log_odds}, {-_CURVE_END}), {_CURVE_END - 1}) + {_CURVE_END}"

        def height(curve: str, place: str) -> str:
            rest = f"whole_div({curve}.rise * ({place} % {_CURVE_STEP}), {_CURVE_STEP})"
            return f"({curve}.low + {rest})"

        return f"""effective AS (
  SELECT placed.conversion_key, placed.publisher_index, placed.names, placed.journey_members,
    model_effects.effect,
    {self.effects[0]} + CAST(sum(model_effects.effect) OVER (
      PARTITION BY placed.conversion_key) AS BIGINT) AS log_odds
  FROM placed
  JOIN {tables["model_effects"]} AS model_effects
    ON model_effects.publisher_index = placed.publisher_index
),
compared AS (
  SELECT conversion_key, publisher_index, names, journey_members,
    {clipped("log_odds")} AS with_it, {clipped("log_odds - effect")} AS without_it
  FROM effective
),
chances AS (
  SELECT compared.conversion_key, compared.publisher_index, compared.names,
    compared.journey_members, {height("upper", "with_it")} AS chance,
    greatest(0, {height("upper", "with_it")} - {height("lower", "without_it")}) AS lost
  FROM compared
  JOIN {tables["model_curve"]} AS upper
    ON upper.step = whole_div(compared.with_it, {_CURVE_STEP})
  JOIN {tables["model_curve"]} AS lower
    ON lower.step = whole_div(compared.without_it, {_CURVE_STEP})
),
weighed AS (
  SELECT conversion_key, publisher_index, names, journey_members,
    lost * journey_members
      + greatest(0, chance - sum(lost) OVER (PARTITION BY conversion_key)) AS weight
  FROM chances
),
{_in_proportion()}"""


class _OfCoalitions(FittedModel):
    """Models with a figure for every coalition that was counted."""

    @cached_property
    def _counted(self) -> Coalitions:
        return Coalitions(len(self.publishers))

    @property
    def largest(self) -> int:
        return self._counted.largest

    @property
    def coalitions(self) -> tuple[tuple[int, ...], ...]:
        return self._counted.members


@dataclass(frozen=True)
class CoalitionUnits(_OfCoalitions):
    """Shapley values of the game whose coalitions are worth how often users convert who saw exactly
    them. `units` are those of the members of every coalition, one after the other.

    A journey with more members than the largest coalitions that are counted is looked at in parts:
    as many as it has members, each of the largest size and beginning with the next member, the
    first following the last. Its credit is the mean over them.
    """

    publishers: tuple[str, ...]
    units: tuple[int, ...]

    @cached_property
    def _lookup(self) -> dict[int, tuple[int, ...]]:
        found, place = {}, 0
        for members in self.coalitions:
            found[mask_of(members)] = self.units[place : place + len(members)]
            place += len(members)
        return found

    def of(self, members: Sequence[int]) -> tuple[int, ...]:
        """Units of the members of a coalition, in the order of the public list."""
        return self._lookup[mask_of(members)]

    def tables(self) -> dict[str, Numbers]:
        masks = [mask_of(members) for members in self.coalitions for _ in members]
        indices = [member for members in self.coalitions for member in members]
        found: dict[str, Numbers] = {
            "model_units": {"mask": masks, "publisher_index": indices, "units": self.units}
        }
        if self.largest < len(self.publishers):
            found["model_parts"] = {"part": range(len(self.publishers))}
        return found

    def units_sql(self, tables: Mapping[str, Relation]) -> str:
        source, part, parts = "placed", "", "1"
        steps = ""
        if self.largest < len(self.publishers):
            source, part = "parted", ", part"
            parts = f"CASE WHEN journey_members > {self.largest} THEN journey_members ELSE 1 END"
            steps = f"""parted AS (
  SELECT placed.conversion_key, placed.publisher_index, placed.names, placed.journey_members,
    model_parts.part
  FROM placed
  JOIN {tables["model_parts"]} AS model_parts ON model_parts.part < {parts}
  WHERE (placed.place - model_parts.part + placed.journey_members) % placed.journey_members
    < {self.largest}
),
"""
        return f"""{steps}coalitions AS (
  SELECT conversion_key{part}, CAST(sum(CAST(1 AS BIGINT) << publisher_index) AS BIGINT) AS mask
  FROM {source} GROUP BY conversion_key{part}
),
divided AS (
  SELECT members.conversion_key, members.publisher_index, max(members.names) AS names,
    whole_div(CAST(sum(model_units.units) AS BIGINT), max({parts})) AS units
  FROM {source} AS members
  JOIN coalitions ON coalitions.conversion_key = members.conversion_key
    {"AND coalitions.part = members.part" if part else ""}
  JOIN {tables["model_units"]} AS model_units ON model_units.mask = coalitions.mask
    AND model_units.publisher_index = members.publisher_index
  GROUP BY members.conversion_key, members.publisher_index
)"""


@dataclass(frozen=True)
class CoalitionRatesInOrder(_OfCoalitions):
    """Publishers join in the order of the journey, and each is credited with what the rate of the
    coalition grows by when it comes. `rates` are those of the empty coalition and all others.

    In a journey with more members than the largest coalitions that are counted, each joins those
    that came last before it.
    """

    publishers: tuple[str, ...]
    rates: tuple[int, ...]

    @cached_property
    def _lookup(self) -> dict[int, int]:
        masks = [0, *(mask_of(members) for members in self.coalitions)]
        return dict(zip(masks, self.rates, strict=True))

    def of(self, members: Sequence[int]) -> int:
        """How often users convert who saw exactly these publishers."""
        return self._lookup[mask_of(members)]

    def tables(self) -> dict[str, Numbers]:
        return {
            "model_coalition_rates": {"mask": list(self._lookup), "rate": self.rates},
        }

    def units_sql(self, tables: Mapping[str, Relation]) -> str:
        return f"""joining AS (
  SELECT conversion_key, publisher_index, names, place, journey_members,
    CAST(1 AS BIGINT) << publisher_index AS own,
    CAST(sum(CAST(1 AS BIGINT) << publisher_index) OVER (
      PARTITION BY conversion_key ORDER BY place
      ROWS BETWEEN {self.largest - 1} PRECEDING AND CURRENT ROW) AS BIGINT) AS mask
  FROM placed
),
weighed AS (
  SELECT joining.conversion_key, joining.publisher_index, joining.names, joining.journey_members,
    greatest(0, after.rate - before.rate) AS weight,
    CASE WHEN joining.place = joining.journey_members - 1 THEN after.rate ELSE 0 END AS reached
  FROM joining
  JOIN {tables["model_coalition_rates"]} AS after ON after.mask = joining.mask
  JOIN {tables["model_coalition_rates"]} AS before ON before.mask = joining.mask - joining.own
),
{_in_proportion("reached")}"""
