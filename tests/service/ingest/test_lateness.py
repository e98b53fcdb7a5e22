"""Which rows arrived after a release: as conversions are placed, and whatever cannot be asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from adsbpc.errors import LedgerError
from adsbpc.model import CampaignSpec, spec_of
from adsbpc.model.slots import to_microseconds
from adsbpc.service.ingest.lateness import Lateness, Waiting, missed_by
from tests.service.pushed import IMPRESSION, checked
from tests.service.running import content

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = 3_600_000_000
FIRST = to_microseconds(START)


def spec_with(settle: str, wait: str) -> CampaignSpec:
    events = {"impressions": "i", "conversions": "c", "settle": settle, "wait": wait}
    campaign = {**content()["campaign"], "start": START.date()}
    return spec_of({**content(), "campaign": campaign, "events": events}, Path(), "a test")


def is_credited(spec: CampaignSpec, happened: int, arrived: int) -> bool:
    """Of a purchase right after an impression, as slots are filled one by one: in its own slot, or
    in the one that runs when the impression has been there for `settle`, if it waits so long."""
    bought = max(happened, spec.grid.starts_at)
    own = spec.grid.slot_of(bought)
    assert own is not None
    if arrived < spec.grid.boundaries[own] + spec.events.held_back:
        return True
    ready = arrived - spec.events.held_back
    return ready <= bought + spec.events.wait and spec.grid.slot_of(ready) is not None


@pytest.mark.parametrize(
    ("settle", "wait"), [("0h", "0h"), ("5h", "0h"), ("5h", "30h"), ("30h", "12h"), ("0h", "9d")]
)
def test_late_is_what_no_slot_can_credit(settle: str, wait: str) -> None:
    spec = spec_with(settle, wait)
    for happened in range(FIRST - 30 * HOUR, spec.grid.ends_at, 5 * HOUR):
        for arrived in range(max(happened, FIRST), FIRST + 160 * HOUR, 7 * HOUR):
            first, last = missed_by(spec, arrived + 1).released
            late = first <= happened < last
            assert late != is_credited(spec, happened, arrived + 1), (happened, arrived)


def test_rows_are_judged_by_what_was_known_when_nobody_can_be_asked() -> None:
    asked: list[list[CampaignSpec] | None] = [[spec_with("1h", "0h")], None]

    def campaigns() -> list[CampaignSpec]:
        found = asked.pop(0)
        if found is None:
            raise LedgerError("the ledger cannot be reached. Start it")
        return found

    lateness = Lateness(campaigns, Waiting(10**15, 0))
    table = checked([IMPRESSION]).table
    for day in (2, 3):
        moment = to_microseconds(START + timedelta(days=day))
        lateness.renew(moment)
        assert lateness.counts_of(table, moment, moment) == (1, 0)
    assert asked == []
    assert lateness.counts_of(table.slice(0, 0), moment, moment) == (0, 0)
