"""Calendar periods of campaigns without an end: at the start of each, people's budgets are new.

Every period is a campaign of its own, in a scope of its own, and both carry the period's name:
`shoes@2026-03` of scope `acme@2026-03`. So nothing renews that does not say so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal, get_args

from adsbpc.errors import SpecError
from adsbpc.model.toml import place

Renewal = Literal["month", "quarter", "year"]
OPEN = "open"

_MONTHS: dict[Renewal, int] = {"month": 1, "quarter": 3, "year": 12}
_LABEL = re.compile(r"(\d{4})(?:-(0[1-9]|1[0-2])|-Q([1-4]))?", re.ASCII)
_ONE_DAY = timedelta(days=1)
_AT = "@"


@dataclass(frozen=True)
class Period:
    """A month, a quarter or a year, by its first day."""

    renewal: Renewal
    first: date

    @classmethod
    def of(cls, day: date, renewal: Renewal) -> Period:
        """The one that a day is in."""
        months = _MONTHS[renewal]
        return cls(renewal, date(day.year, (day.month - 1) // months * months + 1, 1))

    @property
    def label(self) -> str:
        """
        >>> [Period.of(date(2026, 5, 7), kind).label for kind in ("month", "quarter", "year")]
        ['2026-05', '2026-Q2', '2026']
        """
        if self.renewal == "year":
            return f"{self.first.year:04d}"
        if self.renewal == "quarter":
            return f"{self.first.year:04d}-Q{(self.first.month + 2) // 3}"
        return f"{self.first:%Y-%m}"

    @property
    def last(self) -> date:
        return self.next.first - _ONE_DAY

    @property
    def next(self) -> Period:
        later = self.first.month - 1 + _MONTHS[self.renewal]
        return Period(self.renewal, date(self.first.year + later // 12, later % 12 + 1, 1))

    @property
    def before(self) -> Period:
        return Period.of(self.first - _ONE_DAY, self.renewal)


def period_named(label: str) -> Period | None:
    """
    >>> period_named("2026-Q2")
    Period(renewal='quarter', first=datetime.date(2026, 4, 1))
    """
    found = _LABEL.fullmatch(label)
    if found is None or found[1] == "0000":
        return None
    year, month, quarter = (None if part is None else int(part) for part in found.groups())
    assert year is not None
    if quarter is not None:
        return Period("quarter", date(year, 3 * quarter - 2, 1))
    return Period("year" if month is None else "month", date(year, month or 1, 1))


def named_for(name: str, period: Period) -> str:
    return f"{name}{_AT}{period.label}"


def parts_of(name: str) -> tuple[str, Period | None]:
    """The name of a scope or campaign, and the period that it is for, if it is for one.

    >>> parts_of("acme@2026")[0], parts_of("ads@example.org")
    ('acme', ('ads@example.org', None))
    """
    base, at, label = name.rpartition(_AT)
    period = period_named(label) if at and base else None
    return (name, None) if period is None else (base, period)


def file_and_period(path: Path) -> tuple[Path, Period | None]:
    """`shoes.toml@2026-03` is the campaign of one period of `shoes.toml`."""
    if path.exists():
        return path, None
    name, period = parts_of(path.name)
    return path.with_name(name), period


def is_open(content: Mapping[str, Any]) -> bool:
    """Whether a campaign file has no end."""
    campaign = content.get("campaign")
    return isinstance(campaign, Mapping) and campaign.get("slots") == OPEN


def check_open(content: Mapping[str, Any], where: str) -> tuple[date, Renewal]:
    """First day and renewal of a file without an end. Whatever else is wrong with it is reported
    when a period of it is read."""
    campaign = content["campaign"]
    start, renewal = campaign.get("start"), campaign.get("renewal")
    if renewal not in get_args(Renewal):
        raise SpecError(
            f'a campaign with slots = "{OPEN}" says when people\'s budgets are new: expected month,'
            " quarter or year",
            place("campaign", "renewal"),
            "missing" if renewal is None else repr(renewal),
            f'Add renewal = "month", for example, to {where}',
        )
    if type(start) is not date:
        raise SpecError("expected a day, such as 2026-03-01", place("campaign", "start"))
    if "lift" in content:
        raise SpecError(
            f'a trial has an end, and slots = "{OPEN}" has none: people would be counted anew in '
            "every period",
            place("lift"),
            to_do="Give the campaign a number of slots, or remove the section",
        )
    return start, renewal


def of_period(content: Mapping[str, Any], period: Period) -> dict[str, Any]:
    """What the file of a campaign without an end says of one of its periods: as much of it as
    comes after the campaign's first day."""
    campaign = dict(content["campaign"])
    campaign.pop("slots")
    campaign |= {
        "name": named_for(str(campaign.get("name", "")), period),
        "scope": named_for(str(campaign.get("scope", "default")), period),
        "start": max(campaign["start"], period.first),
        "end": period.last,
    }
    return {**content, "campaign": campaign}
