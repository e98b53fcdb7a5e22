"""Random campaigns with everything that a campaign may have at once: measures of every metric,
dimensions of conversions and of impressions, views with weights, conversions and impressions that
arrive in later slots, renewals and sizes. From files to what is kept, engines, arrays and plain
Python agree to the last unit, and nobody moves the rows by more than the limit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from adsbpc.attribution import journeys_of
from adsbpc.attribution.reference import Conversion, Credit, Impression, journey_before
from adsbpc.campaign.data_path import accounted
from adsbpc.campaign.data_path import attribute as attribute_on
from adsbpc.contributions import ArrayAccounts, CellIndex
from adsbpc.contributions.reference import ReferenceAccounts, Row, taken_apart
from adsbpc.mechanisms.by_rows.sizes import counted_layout
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import CampaignSpec, Layout, Measure
from adsbpc.privacy import LIMIT, toeplitz
from tests.conftest import open_test_engine
from tests.contributions.renewing import Choice, books_of, choices, costs_by_rows, run, step
from tests.contributions.rows import arrays_of
from tests.effort import examples
from tests.worlds import plain_credits

SLOTS, CAP = 4, 40.0
START = datetime(2026, 3, 1, tzinfo=UTC)
STRATEGY = toeplitz(SLOTS, 0.3)
LISTS = {"publisher": ("P-1", "P-2"), "country": ("DE", "FR"), "device": ("phone",)}
# Dimensions of what, and weights that a view may have.
BY = {
    "conversions": ("publisher", "country"),
    "value": ("publisher", "country", "device"),
    "converters": ("publisher", "device"),
    "clicks": ("publisher", "device"),
    "impressions": ("publisher",),
    "reach": ("publisher", "device"),
}


@dataclass(frozen=True)
class Seen:
    touch: Impression
    device: str | None


@dataclass(frozen=True)
class Bought:
    conversion: Conversion
    country: str | None
    value: float


@dataclass(frozen=True)
class World:
    """What happened, and when it was known; and weights of views by metric."""

    seen: list[Seen]
    bought: list[Bought]
    weights: dict[str, tuple[int, ...]]

    def write(self, folder: Path) -> CampaignSpec:
        zone = pa.timestamp("us", tz="UTC")
        touches, purchases = [s.touch for s in self.seen], [b.conversion for b in self.bought]
        tables: dict[str, dict[str, Any]] = {
            "impressions": {
                "publisher_id": pa.array([t.publisher_id for t in touches], pa.string()),
                "kind": pa.array(["click" if t.is_click else "view" for t in touches], pa.string()),
                "device": pa.array([s.device for s in self.seen], pa.string()),
            },
            "conversions": {
                "event_id": pa.array([c.conversion_id for c in purchases], pa.string()),
                "country": pa.array([b.country for b in self.bought], pa.string()),
                "value": pa.array([b.value for b in self.bought], pa.float64()),
            },
        }
        for name, events in (("impressions", touches), ("conversions", purchases)):
            tables[name] |= {
                "user_id": pa.array([each.user_id for each in events], pa.string()),
                "advertiser_id": pa.array(["A"] * len(events), pa.string()),
                "timestamp": pa.array([each.time_us for each in events], zone),
                "arrived_at": pa.array([each.arrived_us for each in events], zone),
            }
            pq.write_table(pa.table(tables[name]), folder / f"{name}.parquet")
        return CampaignSpec.model_validate({
            "campaign": {"name": "a", "advertiser": "A", "start": "2026-03-01", "slots": SLOTS,
                         "publishers": LISTS["publisher"]},
            "events": {"impressions": "impressions.parquet", "conversions": "conversions.parquet",
                       "settle": "6h", "wait": "1d"},
            "privacy": {"rho": 1.0, "mechanism": "personal-budget"},
            "measure": [
                {"name": metric, "metric": metric, "by": by}
                | ({"value_cap": CAP} if metric == "value" else {})
                | ({"weights": self.weights[metric]} if metric in self.weights else {})
                for metric, by in BY.items()
            ],
            "dimensions": {
                "country": {"column": "country", "values": LISTS["country"]},
                "device": {"column": "device", "of": "impression", "values": LISTS["device"]},
            },
            "directory": folder,
        })  # fmt: skip

    def rows(self, spec: CampaignSpec, measure: Measure) -> list[Row]:
        """Of the finest cells of a measure, or of all its sums where people are counted once."""
        rows, layout = [], measure.layout
        for user, slot, keys, units in self._counted(spec, measure):
            cell = 0
            for dimension in layout.dimensions:
                listed = dimension.values
                place = listed.index(keys[dimension.name]) if keys[dimension.name] in listed else -1
                cell = cell * len(listed) + place % len(listed)
            if not layout.once:
                rows.append(Row(user, slot, cell, units))
                continue
            first = 0
            for size in layout.sizes:
                rows.append(Row(user, slot, first + cell * size // layout.sizes[-1], UNIT))
                first += size
        return [row for row in rows if row.weight]

    def _counted(
        self, spec: CampaignSpec, measure: Measure
    ) -> Iterator[tuple[str, int, dict[str, str | None], int]]:
        """User, slot, values of dimensions and units of everything that is counted."""
        kinds = {"clicks": [True], "impressions": [False], "reach": [True, False]}
        if measure.metric not in kinds:
            yield from self._credited(spec, measure)
            return
        for each in self.seen:
            touch, slot = each.touch, spec.grid.slot_of(each.touch.time_us)
            # Whatever is not there when its slot is released is in no figure.
            if slot is None or touch.arrival >= settled(spec, slot):
                continue
            if touch.is_click in kinds[measure.metric]:
                keys = {"publisher": touch.publisher_id, "device": each.device}
                yield touch.user_id, slot, keys, UNIT

    def credits(self, spec: CampaignSpec) -> list[Credit]:
        return plain_credits(
            spec, [each.touch for each in self.seen], [each.conversion for each in self.bought]
        )

    def _credited(
        self, spec: CampaignSpec, measure: Measure
    ) -> Iterator[tuple[str, int, dict[str, str | None], int]]:
        journeys = journeys_of(spec.attribution)
        touches = [each.touch for each in self.seen]
        devices = {(each.touch.user_id, each.touch.time_us): each.device for each in self.seen}
        bought = {each.conversion.conversion_id: each for each in self.bought}
        for credit in self.credits(spec):
            purchase = bought[credit.conversion_id]
            in_time = [
                touch
                for touch in touches
                if touch.user_id == credit.user_id and touch.arrival < settled(spec, credit.slot)
            ]
            last = journey_before(purchase.conversion.time_us, in_time, journeys)[-1]
            keys = {
                "publisher": credit.publisher_id,
                "country": purchase.country,
                "device": devices[last.user_id, last.time_us],
            }
            units = credit.credit_units
            if measure.metric == "value":
                units = int(units * (min(purchase.value, CAP) / CAP))
            yield credit.user_id, credit.slot, keys, units


def settled(spec: CampaignSpec, slot: int) -> int:
    """When a slot is released."""
    assert spec.events.settle is not None
    return spec.grid.boundaries[slot] + spec.events.settle


def microseconds(hours: float) -> int:
    return int((START + timedelta(hours=hours)).timestamp() * 1e6)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Hours from a day before the campaign to its end; half of what happens is known later."""
    user, hour = st.sampled_from(["a", "b", "c", "ä"]), st.integers(-24, 24 * SLOTS - 1)
    later = st.one_of(st.just(0), st.integers(1, 60))
    seen, bought = list[Seen](), list[Bought]()
    for number in range(draw(st.integers(0, 14))):
        # No two at once: which of them is the last touch would be left to their publishers.
        moment, name = microseconds(draw(hour)) + number, draw(user)
        publisher = draw(st.sampled_from(["P-1", "P-2", "X"]))
        arrived = moment + draw(later) * 3_600_000_000
        touch = Impression(name, publisher, moment, draw(st.booleans()), arrived)
        seen.append(Seen(touch, draw(st.sampled_from(["phone", "desk", None]))))
    for number in range(draw(st.integers(0, 12))):
        moment, name = microseconds(draw(hour)) + 100 + number, draw(user)
        arrived = moment + draw(later) * 3_600_000_000
        conversion = Conversion(name, f"c{number}", moment, arrived)
        country, value = draw(st.sampled_from(["DE", "FR", "IT", None])), draw(st.floats(0.01, 60))
        bought.append(Bought(conversion, country, value))
        if draw(st.booleans()):
            # The touch that led to it, which may be known after it.
            known = moment + draw(later) * 3_600_000_000
            touch = Impression(name, "P-1", moment - 60_000_000, draw(st.booleans()), known)
            seen.append(Seen(touch, "phone"))
    weights = {
        "conversions": draw(st.sampled_from([(1, 8, 8), (2, 0, 1), (0, 0, 1)])),
        "value": draw(st.sampled_from([(1, 8, 8, 8), (8, 8, 0, 8), (0, 1, 0, 2)])),
        "clicks": draw(st.sampled_from([(1, 3, 3), (0, 0, 1)])),
        "impressions": draw(st.sampled_from([(1, 2), (0, 1)])),
    }
    return World(seen, bought, weights)


@dataclass(frozen=True)
class Case:
    """A measure of a world as budgets count it: in the cells of its layout, or in the same taken
    apart, with what is public of every slot."""

    measure: Measure
    layout: Layout
    chosen: list[Choice]
    rows: list[Row]

    def reference(self) -> ReferenceAccounts:
        rows = taken_apart(self.rows, self.layout) if self.layout.apart else self.rows
        return ReferenceAccounts(rows, SLOTS, self.layout)

    def arrays(self) -> ArrayAccounts:
        asked = arrays_of(self.rows, SLOTS, self.measure.layout)
        return ArrayAccounts(CellIndex.of(asked, self.layout))


def cases_of(world: World, spec: CampaignSpec, data: st.DataObject) -> Iterator[Case]:
    for measure in spec.measures:
        layout = measure.layout
        if data.draw(st.booleans()):
            layout = counted_layout(layout)
        each = choices(len(layout), is_sized=len(layout.views) == 1)
        chosen = data.draw(st.lists(each, min_size=SLOTS, max_size=SLOTS))
        yield Case(measure, layout, chosen, world.rows(spec, measure))


def check_agreement(engine_name: str, world: World, data: st.DataObject) -> None:
    # Hypothesis may end an example before its time.
    with TemporaryDirectory() as name, closing(open_test_engine(engine_name)) as engine:
        spec = world.write(Path(name))
        # As releases do: what a slot needs.
        attributed = [attribute_on(spec, engine, slot) for slot in range(1, SLOTS + 1)]
        for case in cases_of(world, spec, data):
            expected = run(case.reference(), STRATEGY, case.chosen)
            assert run(case.arrays(), STRATEGY, case.chosen) == expected, case.measure.name
            found, begun, firsts = list[list[int]](), 1, tuple[int, ...]()
            sizes: tuple[int, ...] = ()
            for slot, choice in enumerate(case.chosen, start=1):
                books = books_of(Path(name) / case.measure.name, choice, firsts, begun)
                with accounted(attributed[slot - 1], case.measure, case.layout, books) as accounts:
                    found += step(accounts, STRATEGY, slot, choice, sizes, begun)
                sizes, begun = choice.sizes, slot if choice.is_renewed else begun
                firsts += (books.gathers or slot,)
            assert found == expected, case.measure.name
            costs = costs_by_rows(case.reference(), STRATEGY, case.chosen, case.layout)
            assert all(moved <= spent <= LIMIT for moved, spent in costs.values())


@given(worlds(), st.data())
@settings(
    max_examples=examples(5, 60),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.generate],
)
def test_everything_at_once_agrees_to_the_last_unit(world: World, data: st.DataObject) -> None:
    check_agreement("duckdb", world, data)


@pytest.mark.slow
@pytest.mark.spark
@given(worlds(), st.data())
@settings(
    max_examples=1,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.generate],
)
def test_spark_agrees_too(world: World, data: st.DataObject) -> None:
    check_agreement("spark", world, data)


@given(worlds(), st.data())
@settings(
    max_examples=examples(40, 400),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_arrays_agree_and_nobody_moves_the_rows_by_more(world: World, data: st.DataObject) -> None:
    """The same without files: many more of them."""
    with TemporaryDirectory() as name:
        spec = world.write(Path(name))
    for case in cases_of(world, spec, data):
        expected = run(case.reference(), STRATEGY, case.chosen)
        assert run(case.arrays(), STRATEGY, case.chosen) == expected, case.measure.name
        costs = costs_by_rows(case.reference(), STRATEGY, case.chosen, case.layout)
        assert all(moved <= spent <= LIMIT for moved, spent in costs.values())


@given(worlds())
@settings(max_examples=examples(5, 40), suppress_health_check=[HealthCheck.too_slow])
def test_slots_that_are_read_together_have_what_each_has_alone(world: World) -> None:
    """What is late for its slot is not counted because a later one is read, too."""
    with TemporaryDirectory() as name, closing(open_test_engine("duckdb")) as engine:
        spec = world.write(Path(name))

        def counted(slots: int | range) -> list[tuple[object, ...]]:
            attributed = attribute_on(spec, engine, slots)
            exposures = attributed.events.exposures
            found = f"SELECT user_id, slot, time_us, 'x' FROM {exposures} UNION ALL"
            found += f" SELECT user_id, slot, credit_units, publisher_id FROM {attributed.credits}"
            return engine.rows("everything that counts", found)

        alone = [row for slot in range(1, SLOTS + 1) for row in counted(slot)]
        assert sorted(counted(range(1, SLOTS + 1))) == sorted(alone)


def test_random_campaigns_have_late_data_that_counts() -> None:
    """Or the tests above test little: a purchase that was known late, and then waited for its touch
    until a later slot."""
    with TemporaryDirectory() as name:
        spec = World([], [], {}).write(Path(name))

    def waits(world: World) -> bool:
        bought = {each.conversion.conversion_id: each.conversion for each in world.bought}
        for credit in world.credits(spec):
            conversion = bought[credit.conversion_id]
            arrived = spec.grid.slot_of(conversion.arrived_us)
            if conversion.arrived_us > conversion.time_us and arrived and arrived < credit.slot:
                return True
        return False

    found_at_once = settings(max_examples=2000, phases=[Phase.generate])
    assert find(worlds(), waits, settings=found_at_once)
