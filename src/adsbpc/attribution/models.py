"""Attribution models: small classes that compile to SQL over the touches of each conversion.

Credits are whole units of which a conversion has 720,720. Every model rounds down, so the credits
of a conversion are >= 0 and never add up to more than one conversion. A model looks at one
journey at a time: nothing of another user can reach a credit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from adsbpc.attribution.journeys import Journeys
from adsbpc.engines import Relation
from adsbpc.events import EventTables
from adsbpc.model.attribution_spec import AttributionSection
from adsbpc.model.grid import UNITS_PER_CONVERSION

# Columns of a small table, by name.
Numbers = Mapping[str, Sequence[int]]


class AttributionModel(ABC):
    """A model and what it needs to know of events: `whole_journey` is False if the last touch is
    enough."""

    whole_journey: ClassVar[bool] = True

    def tables(self) -> dict[str, Numbers]:
        """Small tables of whole numbers that the SQL reads."""
        return {}

    @abstractmethod
    def shares_sql(self, events: EventTables, tables: Mapping[str, Relation]) -> str:
        """Named steps from `touches` that end in `shares` (conversion_key, publisher_number,
        credit_units). `tables` are those of `tables()`, as they stand in the engine."""


@dataclass(frozen=True)
class LastTouch(AttributionModel):
    """All credit to the latest touch."""

    whole_journey: ClassVar[bool] = False

    def shares_sql(self, events: EventTables, tables: Mapping[str, Relation]) -> str:
        return _single_touch("max", events.publisher_count)


@dataclass(frozen=True)
class FirstTouch(AttributionModel):
    """All credit to the earliest touch of the journey."""

    def shares_sql(self, events: EventTables, tables: Mapping[str, Relation]) -> str:
        return _single_touch("min", events.publisher_count)


def _single_touch(choose: str, publisher_count: int) -> str:
    return f"""shares AS (
  SELECT conversion_key,
    CAST({choose}(touch_order) % {max(publisher_count, 1)} AS BIGINT) AS publisher_number,
    {UNITS_PER_CONVERSION} AS credit_units
  FROM touches GROUP BY conversion_key
)"""


def _in_proportion(step: str, weight: str) -> str:
    """A conversion's units shared in proportion to a column of an earlier step, rounded down."""
    return f"""journeys AS (
  SELECT conversion_key, publisher_number, {weight},
    sum({weight}) OVER (PARTITION BY conversion_key) AS journey_{weight}
  FROM {step}
),
shares AS (
  SELECT conversion_key, publisher_number,
    whole_div({UNITS_PER_CONVERSION} * {weight}, journey_{weight}) AS credit_units
  FROM journeys
)"""


@dataclass(frozen=True)
class DistinctPublishers(AttributionModel):
    """The same credit to every publisher of the journey, however often it is met: the Shapley value
    of the game in which a conversion takes all of them (Zhao et al. 2018)."""

    def shares_sql(self, events: EventTables, tables: Mapping[str, Relation]) -> str:
        return f"""touched AS (
  SELECT DISTINCT conversion_key, publisher_number, 1 AS met FROM touches
),
{_in_proportion("touched", "met")}"""


@dataclass(frozen=True)
class Uniform(AttributionModel):
    """The same credit to every touch."""

    def shares_sql(self, events: EventTables, tables: Mapping[str, Relation]) -> str:
        return f"""touched AS (
  SELECT conversion_key, publisher_number, count(*) AS touches
  FROM touches GROUP BY conversion_key, publisher_number
),
{_in_proportion("touched", "touches")}"""


# Weights of time decay: a half-life is cut into steps, and the newest touch weighs 2**20.
DECAY_STEPS = 64
_DECAY_BITS = 20
DECAY_WEIGHTS = tuple(round(2 ** (_DECAY_BITS - step / DECAY_STEPS)) for step in range(DECAY_STEPS))


def decay_weight(age: int, half_life: int) -> int:
    """Weight of a touch this much older than the newest: halved once per half-life, in integers
    so that no engine's floating point can differ.

    >>> decay_weight(0, 7), decay_weight(7, 7), decay_weight(14, 7)
    (1048576, 524288, 262144)
    """
    steps = age * DECAY_STEPS // half_life
    return DECAY_WEIGHTS[steps % DECAY_STEPS] >> min(steps // DECAY_STEPS, _DECAY_BITS + 1)


@dataclass(frozen=True)
class TimeDecay(AttributionModel):
    """Credit that halves with every half-life between a touch and the newest touch.

    Measuring age from the newest touch instead of from the conversion gives the same shares,
    because the weights are exponential, and the newest touch never decays to nothing.
    """

    half_life: int

    def shares_sql(self, events: EventTables, tables: Mapping[str, Relation]) -> str:
        weights = ", ".join(f"({step}, {weight})" for step, weight in enumerate(DECAY_WEIGHTS))
        return f"""decay AS (
  SELECT * FROM (VALUES {weights}) AS decay_table(step, weight)
),
aged AS (
  SELECT conversion_key, publisher_number,
    max(time_us) OVER (PARTITION BY conversion_key) - time_us AS age
  FROM touches
),
stepped AS (
  SELECT conversion_key, publisher_number,
    whole_div(age, {self.half_life}) AS halvings,
    whole_div(age % {self.half_life} * {DECAY_STEPS}, {self.half_life}) AS step
  FROM aged
),
weighed AS (
  SELECT stepped.conversion_key, stepped.publisher_number,
    CAST(sum(CAST(decay.weight AS BIGINT) >> CAST(least(halvings, {_DECAY_BITS + 1}) AS INT))
      AS BIGINT) AS weight
  FROM stepped JOIN decay ON decay.step = stepped.step
  GROUP BY stepped.conversion_key, stepped.publisher_number
),
{_in_proportion("weighed", "weight")}"""


@dataclass(frozen=True)
class Position(AttributionModel):
    """Fixed shares to the first and the last touch; those between share the rest equally.

    With two touches, the rest goes to both in proportion to their shares (equally if both are 0).
    """

    first_share: float
    last_share: float

    def unit_shares(self) -> tuple[int, int, int]:
        """Units for first, last and middle of a journey with three touches or more."""
        first = int(Fraction(str(self.first_share)) * UNITS_PER_CONVERSION)
        last = int(Fraction(str(self.last_share)) * UNITS_PER_CONVERSION)
        return first, last, UNITS_PER_CONVERSION - first - last

    def pair_shares(self) -> tuple[int, int]:
        """Units for first and last of a journey with two touches."""
        first, last, _ = self.unit_shares()
        if first + last == 0:
            first = last = 1
        unit = Fraction(UNITS_PER_CONVERSION, first + last)
        return int(first * unit), int(last * unit)

    def shares_sql(self, events: EventTables, tables: Mapping[str, Relation]) -> str:
        first, last, middle = self.unit_shares()
        first_of_two, last_of_two = self.pair_shares()
        return f"""placed AS (
  SELECT conversion_key, publisher_number,
    row_number() OVER (PARTITION BY conversion_key ORDER BY touch_order) AS place,
    count(*) OVER (PARTITION BY conversion_key) AS journey_touches
  FROM touches
),
counted AS (
  SELECT conversion_key, publisher_number, max(journey_touches) AS journey_touches,
    count(CASE WHEN place = 1 THEN 1 END) AS firsts,
    count(CASE WHEN place = journey_touches THEN 1 END) AS lasts,
    count(*) AS touches
  FROM placed GROUP BY conversion_key, publisher_number
),
shares AS (
  SELECT conversion_key, publisher_number,
    CASE
      WHEN journey_touches = 1 THEN {UNITS_PER_CONVERSION}
      WHEN journey_touches = 2 THEN firsts * {first_of_two} + lasts * {last_of_two}
      ELSE firsts * {first} + lasts * {last}
        + whole_div({middle} * (touches - firsts - lasts), journey_touches - 2)
    END AS credit_units
  FROM counted
)"""


def plain_model(name: str, section: AttributionSection) -> AttributionModel:
    """A model whose credits follow from a journey alone, with what the campaign file says of it."""
    models: dict[str, AttributionModel] = {
        "last_touch": LastTouch(),
        "first_touch": FirstTouch(),
        "uniform": Uniform(),
        "time_decay": TimeDecay(section.half_life),
        "position": Position(section.first_share, section.last_share),
        "shapley_path": DistinctPublishers(),
    }
    return models[name]


def journeys_of(section: AttributionSection) -> Journeys:
    return Journeys(section.click_lookback, section.view_lookback, section.max_touches)


def credits_of(model: AttributionModel, journeys: Journeys, events: EventTables) -> Relation:
    """Credits of the events, a row per conversion and publisher: user_id, conversion_number,
    conversion_id, slot, time_us, value, publisher_id, publisher_index, credit_units, and the places
    in the lists of dimensions."""
    engine = events.engine
    tables = {what: engine.numbers(what, columns) for what, columns in model.tables().items()}
    return Relation.of(credits_sql(model, journeys, events, tables))


def credits_sql(
    model: AttributionModel,
    journeys: Journeys,
    events: EventTables,
    tables: Mapping[str, Relation],
) -> str:
    """One text from events to credits."""
    further = "".join(
        [f", conversions.{name}" for name in events.conversion_dimensions]
        + [f", publishers.{name}" for name in events.impression_dimensions]
    )
    return f"""WITH {journeys.touches_sql(events, whole_journey=model.whole_journey)},
{model.shares_sql(events, tables)}
SELECT conversions.user_id, conversions.conversion_number, conversions.conversion_id,
  conversions.slot, conversions.time_us, conversions.value,
  publishers.publisher_id, publishers.publisher_index{further},
  CAST(shares.credit_units AS BIGINT) AS credit_units
FROM shares
JOIN {events.conversions} AS conversions ON conversions.conversion_key = shares.conversion_key
JOIN {events.publishers} AS publishers
  ON publishers.publisher_number = shares.publisher_number
WHERE shares.credit_units > 0"""
