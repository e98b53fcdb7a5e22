"""The worked example of the paper (its Tables 2 to 5), to the digit, on every engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from adsbpc.attribution import Journeys
from adsbpc.attribution.reference import Conversion, Impression
from adsbpc.campaign import attribute
from adsbpc.engines import Engine
from adsbpc.model import UNITS_PER_CONVERSION
from tests.worlds import World, credits_on

SECOND = 1_000_000
MIDNIGHT = 1_774_566_000_000_000  # 27 March 2026 in Berlin, the first slot of the test worlds


def at(time: int) -> int:
    """The paper's clock: seconds of day 1."""
    return MIDNIGHT + time * SECOND


# Table 2: user, publisher, time.
IMPRESSIONS = [
    Impression("u1", "P-1", at(1), True),
    Impression("u1", "P-1", at(11), True),
    Impression("u2", "P-1", at(15), True),
    Impression("u2", "P-2", at(25), True),
]
# Table 3: user, conversion, time.
CONVERSIONS = [
    Conversion("u1", "c_u1_1", at(10), at(10)),
    Conversion("u2", "c_u2_1", at(20), at(20)),
    Conversion("u2", "c_u2_2", at(30), at(30)),
]
# Table 4: user, publisher, conversion, impression time, conversion time.
JOINED = [
    ("u1", "P-1", "c_u1_1", 1, 10),
    ("u2", "P-1", "c_u2_1", 15, 20),
    ("u2", "P-1", "c_u2_2", 15, 30),
    ("u2", "P-2", "c_u2_2", 25, 30),
]
# Table 5: credit per conversion and publisher; zeros are rows that are not there.
TABLE_5: dict[str, dict[tuple[str, str], float]] = {
    "last_touch": {("c_u1_1", "P-1"): 1, ("c_u2_1", "P-1"): 1, ("c_u2_2", "P-2"): 1},
    "first_touch": {("c_u1_1", "P-1"): 1, ("c_u2_1", "P-1"): 1, ("c_u2_2", "P-1"): 1},
    "uniform": {
        ("c_u1_1", "P-1"): 1,
        ("c_u2_1", "P-1"): 1,
        ("c_u2_2", "P-1"): 0.5,
        ("c_u2_2", "P-2"): 0.5,
    },
}


def test_the_join_is_table_4(engine: Engine, tmp_path: Path) -> None:
    world = World(IMPRESSIONS, CONVERSIONS)
    events = attribute(world.write(tmp_path), engine).events
    touches = Journeys(30 * 86_400 * SECOND, 0, 50).touches_sql(events, whole_journey=True)
    found = engine.rows(
        "join",
        f"""WITH {touches}
        SELECT c.user_id, p.publisher_id, c.conversion_id, t.time_us, c.time_us
        FROM touches AS t
        JOIN {events.conversions} AS c ON c.conversion_key = t.conversion_key
        JOIN {events.publishers} AS p ON p.publisher_number = t.publisher_number""",
    )
    seconds = [
        (u, p, c, (i - MIDNIGHT) // SECOND, (t - MIDNIGHT) // SECOND) for u, p, c, i, t in found
    ]
    assert sorted(seconds) == JOINED


@pytest.mark.parametrize("model", sorted(TABLE_5))
def test_the_credits_are_table_5(model: str, engine: Engine, tmp_path: Path) -> None:
    world = World(IMPRESSIONS, CONVERSIONS, attribution={"model": model})
    credits = credits_on(engine, world.write(tmp_path))
    assert credits == world.reference(tmp_path)
    found = {(c.conversion_id, c.publisher_id): c.credit_units for c in credits}
    assert found == {key: share * UNITS_PER_CONVERSION for key, share in TABLE_5[model].items()}
    assert {c.slot for c in credits} == {1}
