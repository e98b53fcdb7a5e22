"""Campaign files that hold slots back for late impressions: when slots are due, and the promise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from adsbpc import Campaign
from adsbpc.campaign.promise import promise_of
from adsbpc.cli.release import note_events
from adsbpc.errors import LedgerError, ReleaseError, SpecError
from tests.campaign.files import write_campaign

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MOMENT = pa.timestamp("us", "UTC")


def with_events(file: Path, line: str) -> Path:
    text = file.read_text(encoding="utf-8").replace("[events]\n", f"[events]\n{line}\n")
    file.write_text(text, encoding="utf-8")
    return file


def test_the_keys_are_part_of_the_promise_only_where_they_are_given(tmp_path: Path) -> None:
    file = write_campaign(tmp_path)
    before = promise_of(Campaign.load(file).spec)
    assert "events" not in before
    plain = file.read_text(encoding="utf-8")
    Campaign.load(file).release(1)
    with pytest.raises(LedgerError, match="settle: was None, is now '1h'"):
        Campaign.load(with_events(file, 'settle = "1h"')).release(2)
    file.write_text(plain.replace('"spring"', '"summer"').replace('"acme"', '"b"'))
    held = with_events(file, 'settle = "60m"')
    assert promise_of(Campaign.load(held).spec)["events"] == {"settle": "1h", "wait": "0d"}
    Campaign.load(held).release(1)
    text = held.read_text(encoding="utf-8")
    held.write_text(text.replace("60m", "1h"))
    Campaign.load(held).release(2)
    held.write_text(text.replace("60m", "2h"))
    with pytest.raises(LedgerError, match="settle: was '1h', is now '2h'"):
        Campaign.load(held).release(3)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('wait = "2d"', "needs settle"),
        ('settle = "soon"', "expected a whole number and a unit"),
        ('impression_columns = { arrived_at = "seen" }', "needs settle"),
    ],
)
def test_keys_that_make_no_sense(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        Campaign.load(with_events(write_campaign(tmp_path), line))


def campaign_of(
    directory: Path, start: datetime, again: timedelta | None = None, **events: Any
) -> Campaign:
    """Two clicks of two people; one is pushed twelve hours after the end of the day, and one so
    late that nobody waits for it. Its owner may convert `again` so long after the first time."""
    noon = start + 12 * HOUR
    users, arrived = ["ann", "bob"], [start + DAY + 12 * HOUR, start + 9 * DAY]
    impressions = pa.table(
        {
            "user_id": users,
            "publisher_id": ["P-1", "P-2"],
            "advertiser_id": ["Ad-1"] * 2,
            "timestamp": pa.array([noon - HOUR] * 2, MOMENT),
            "kind": ["click"] * 2,
            "arrived_at": pa.array(arrived, MOMENT),
        }
    )
    converted = [("ann", noon), ("bob", noon)] + ([] if again is None else [("bob", noon + again)])
    conversions = pa.table(
        {
            "user_id": [user for user, _ in converted],
            "advertiser_id": ["Ad-1"] * len(converted),
            "timestamp": pa.array([moment for _, moment in converted], MOMENT),
        }
    )
    content = {
        "campaign": {
            "name": "spring", "advertiser": "Ad-1", "start": start.date(), "slots": 12,
            "publishers": ["P-1", "P-2"],
        },
        "events": events,
        "privacy": {"rho": 1.0},
        "checks": {"min_match_rate": 0},
    }  # fmt: skip
    return Campaign.from_dict(content, directory, impressions=impressions, conversions=conversions)


@pytest.mark.parametrize(
    ("events", "matched"),
    [
        ({}, [2, 0, 0]),
        ({"settle": "0h"}, [0, 0, 0]),
        ({"settle": "1d"}, [1, 0, 0]),
        ({"settle": "6h", "wait": "3d"}, [0, 1, 0]),
    ],
)
def test_late_touches_of_files(tmp_path: Path, events: dict[str, str], matched: list[int]) -> None:
    campaign = campaign_of(tmp_path, START, None, **events)
    assert [campaign.rehearse(slot).matched for slot in (1, 2, 3)] == matched


def test_the_operator_is_told_of_what_came_too_late(tmp_path: Path) -> None:
    campaign = campaign_of(tmp_path, START, settle="6h", wait="3d")
    assert [campaign.rehearse(slot).sources["impressions"].late for slot in (1, 3, 9)] == [0, 0, 1]


def test_a_release_tells_of_late_touches_of_people_who_convert(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bob converts again when the click that came too late for his first purchase is there."""
    campaign = campaign_of(tmp_path, START, again=9 * DAY, settle="6h", wait="3d")
    done = list(campaign.releasing(through="2026-03-10"))
    assert [one.late for one in done] == [0] * 9 + [1]
    note_events(done)
    assert "1 impression in one slot of people who convert arrived after" in " ".join(
        capsys.readouterr().err.split()
    )


def test_a_slot_is_over_when_it_was_held_back(tmp_path: Path) -> None:
    yesterday = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - 2 * DAY
    assert len(campaign_of(tmp_path, yesterday).due()) == 2
    held = campaign_of(tmp_path, yesterday, settle="36h")
    assert len(held.due()) in (0, 1)
    late = campaign_of(tmp_path, yesterday, settle="9d")
    assert len(late.due()) == 0
    with pytest.raises(ReleaseError, match=r"is held back for 9d \(\[events\] settle\)"):
        late.release(1)
