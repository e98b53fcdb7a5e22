"""Users of both sources meet by the same id, whatever type each has written it in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from adsbpc.campaign import attribute
from adsbpc.engines import Engine
from adsbpc.errors import SourceError
from tests.events.files import CONVERSION, IMPRESSION, NOON, spec_of, write
from tests.events.test_readers import ROWS

LARGEST, LEAST = 2**63 - 1, -(2**63)
MEETINGS: list[tuple[list[Any], pa.DataType, list[Any], pa.DataType, list[Any]]] = [
    # (ids of impressions, their type, ids of conversions, their type, who is credited)
    ([1, -1], pa.int8(), [-1, 2], pa.int64(), [-1]),
    ([7, 4_000_000_000], pa.uint32(), [4_000_000_000, -7], pa.int64(), [4_000_000_000]),
    ([LARGEST, LEAST], pa.int64(), [LEAST, LARGEST - 1], pa.int64(), [LEAST]),
    ([7, -8], pa.int16(), ["7", "-8"], pa.string(), ["-8", "7"]),
    ([7, 8], pa.int64(), ["007", "8.0"], pa.string(), []),
    ([7, 8], pa.int64(), ["+7", " 8"], pa.string(), []),
    (["007", "7"], pa.string(), [7, 70], pa.int64(), ["7"]),
    (["007", "7"], pa.string(), ["007", "07"], pa.string(), ["007"]),
    (
        ["9223372036854775808", "9223372036854775807"], pa.string(),
        [LARGEST, LEAST], pa.int64(), ["9223372036854775807"],
    ),
]  # fmt: skip


@pytest.mark.parametrize("meeting", MEETINGS)
def test_who_is_the_same(
    meeting: tuple[list[Any], pa.DataType, list[Any], pa.DataType, list[Any]],
    engine: Engine,
    tmp_path: Path,
) -> None:
    seen, seen_type, bought, bought_type, credited = meeting
    impressions = [{**ROWS[0], "user_id": user} for user in seen]
    conversions = [{**CONVERSION, "user_id": user, "timestamp": NOON} for user in bought]
    write(tmp_path / "impressions.parquet", impressions, user_id=seen_type)
    write(tmp_path / "conversions.parquet", conversions, user_id=bought_type)
    for slot in (None, 2):
        credits = attribute(spec_of(tmp_path), engine, slot).credits
        found = engine.rows("credited", f"SELECT user_id FROM {credits} AS credited")
        assert sorted(user for (user,) in found) == credited


def test_integers_that_have_no_room_are_refused(engine: Engine, tmp_path: Path) -> None:
    write(tmp_path / "impressions.parquet", [{**IMPRESSION, "user_id": 7}], user_id=pa.uint64())
    write(tmp_path / "conversions.parquet", [{**CONVERSION, "user_id": 7}])
    with pytest.raises(SourceError, match="user_id"):
        attribute(spec_of(tmp_path), engine)


@pytest.mark.parametrize("slot", [None, 2])
def test_empty_texts_are_none(slot: int | None, engine: Engine, tmp_path: Path) -> None:
    """And rows that have them show none, in quarantine."""
    empty = ("advertiser_id", "publisher_id", "kind")
    write(tmp_path / "impressions.parquet", [ROWS[0]] + [{**ROWS[0], name: ""} for name in empty])
    write(tmp_path / "conversions.parquet", [CONVERSION])
    attributed = attribute(spec_of(tmp_path), engine, slot)
    quarantine = attributed.events.quarantine
    found = engine.rows(
        "bad rows",
        "SELECT reason, advertiser_id IS NULL, publisher_id IS NULL, kind IS NULL"
        f" FROM {quarantine} AS bad",
    )
    assert sorted(found) == [
        ("advertiser of another campaign", True, False, False),
        ("kind is neither click nor view", False, False, True),
        ("no publisher", False, True, False),
    ]
    ((credited,),) = engine.rows("credited", f"SELECT count(*) FROM {attributed.credits} AS c")
    assert credited == 1
