"""Which slots a release covers: what is over, one slot, or up to a date in the campaign's time
zone."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from adsbpc.errors import ReleaseError, SpecError
from adsbpc.model import CampaignSpec
from adsbpc.model.durations import duration_text
from adsbpc.model.slots import to_microseconds

# A whole day, or a moment.
Through = date | datetime | str


def slots_due(spec: CampaignSpec, slot: int | None, through: Through | None) -> range:
    """Those that are not over yet are refused."""
    grid, over = spec.grid, slots_over(spec)
    if slot is not None and through is not None:
        raise SpecError("give a slot or a date to release through, not both")
    if slot is not None and (not isinstance(slot, int) or isinstance(slot, bool)):
        raise SpecError(f"slot = {slot!r}: expected a whole number")
    if through is not None:
        last = _slot_at(spec, through)
    elif slot is not None:
        last = slot
    else:
        return range(1, over + 1)
    if not 1 <= last <= grid.count:
        raise SpecError(f"slot {last}: expected a number from 1 to {grid.count}")
    if last > over:
        ends_at, settle = grid.bounds_text(last)[1], spec.events.settle
        if settle:
            ends_at += f" and is held back for {duration_text(settle)} ([events] settle)"
        done = f"slot {over} is the last that is over" if over else "no slot is over yet"
        raise ReleaseError(
            f"slot {last}: lasts until {ends_at}, and what arrives before then would be lost; "
            f"{done}. Release it after that"
        )
    return range(last, last + 1) if slot is not None else range(1, last + 1)


def slots_over(spec: CampaignSpec) -> int:
    """How many are by now, and were held back long enough."""
    return spec.last_over(to_microseconds(datetime.now(UTC)))


def starts_after(spec: CampaignSpec, through: Through) -> bool:
    """Whether no slot of it has begun by then."""
    return to_microseconds(_last_moment(spec, through)) < spec.grid.starts_at


def _slot_at(spec: CampaignSpec, through: Through) -> int:
    """The last slot of a date, or the slot of an instant."""
    if starts_after(spec, through):
        raise SpecError(
            f"through {through}: is before the campaign starts on {spec.campaign.start}. "
            "Give a later date"
        )
    grid = spec.grid
    return grid.slot_of(to_microseconds(_last_moment(spec, through))) or grid.count


def _last_moment(spec: CampaignSpec, through: Through) -> datetime:
    zone = ZoneInfo(spec.campaign.timezone)
    try:
        moment = datetime.fromisoformat(str(through))
    except ValueError:
        raise SpecError(
            f"through {through!r}: expected a date such as 2026-03-31, or a date and time"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    whole_day = "T" not in str(through) and " " not in str(through)
    if whole_day:
        moment = moment.replace(hour=23, minute=59, second=59)
    return moment
