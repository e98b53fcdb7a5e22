"""A campaign without an end: its periods one after another, each a campaign of its own.

What is released of a period costs people at most that period's budget, and the next period has a
scope, a ledger entry and books of its own. Must never: begin a period while one before it still has
slots to release, or go on after one was closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from adsbpc.campaign.campaign import Campaign
from adsbpc.campaign.status import Status
from adsbpc.errors import SourceError, SpecError
from adsbpc.model.campaign_file import read_campaign, spec_of_period
from adsbpc.model.periods import Period, Renewal, check_open, is_open

if TYPE_CHECKING:
    from adsbpc.campaign.overview import Overview
    from adsbpc.campaign.release import Released
    from adsbpc.report import Report


@dataclass(frozen=True)
class Series:
    """A campaign file with slots = "open"."""

    file: Path
    content: Mapping[str, Any]
    start: date
    renewal: Renewal

    @classmethod
    def load(cls, path: str | Path) -> Series | None:
        """None for a file that has an end, or names one period."""
        file = Path(path)
        if not file.exists():
            return None
        content = read_campaign(file)
        if not is_open(content):
            return None
        return cls(file, content, *check_open(content, str(file)))

    def campaign(self, period: Period) -> Campaign:
        """One period, for everything that can be done with a campaign."""
        return Campaign(spec_of_period(self.content, period, self.file))

    @property
    def first(self) -> Campaign:
        return self.campaign(Period.of(self.start, self.renewal))

    def periods(self, through: date | datetime | str | None = None) -> list[Period]:
        """Those that have begun by now, or up to a day."""
        zone = ZoneInfo(self.first.spec.campaign.timezone)
        last = datetime.now(UTC).astimezone(zone).date() if through is None else _day(through)
        found = [Period.of(self.start, self.renewal)]
        while found[-1].next.first <= last:
            found.append(found[-1].next)
        return found

    def standing(self) -> list[tuple[Period, Status]]:
        """How far each period is that has begun."""
        return [(period, self.campaign(period).status()) for period in self.periods()]

    def releasing(
        self,
        through: date | datetime | str | None = None,
        shown: Callable[[Overview], None] = lambda seen: None,
    ) -> Iterator[tuple[Campaign, Released]]:
        """What is due, period by period. Periods that are complete are not gone through again."""
        for period in self.periods(through):
            campaign = self.campaign(period)
            before = campaign.status()
            if before.closed:
                return
            if before.released < before.slots:
                for released in campaign.releasing(None, through, shown):
                    yield campaign, released
                if campaign.status().released < before.slots:
                    return

    def current(self) -> Campaign:
        """The first period that is not complete, or the newest."""
        standing = self.standing()
        open_ones = [period for period, found in standing if found.released < found.slots]
        return self.campaign((open_ones or [standing[-1][0]])[0])

    def report(
        self,
        level: float = 0.95,
        adjusted: bool = False,
        measure: str | None = None,
        band: bool = False,
    ) -> Report:
        """Everything that was released, as if it were one campaign: of the newest periods, as far
        back as they count the same. Measures that count people once are left out if there are
        several periods, because people are counted anew in each."""
        from adsbpc.campaign.spend import read_spend
        from adsbpc.report.joined import joined_report

        reports = []
        for period, found in self.standing():
            if found.released:
                own = self.campaign(period)
                reports.append(own.report(level, adjusted, measure=measure, band=band))
        if not reports:
            raise SourceError(
                str(self.file), "no release", "slot 1 of the first period at least",
                "Nothing is released yet: run adsbpc release FILE first",
            )  # fmt: skip
        return joined_report(reports, read_spend)


def _day(through: date | datetime | str) -> date:
    try:
        return datetime.fromisoformat(str(through)).date()
    except ValueError:
        raise SpecError(
            f"through {through!r}: expected a date such as 2026-03-31, or a date and time"
        ) from None
