"""A campaign and its four verbs: plan, release, status, report. The command line is a front of it.

campaign = Campaign.load("spring.toml")
campaign.plan()
campaign.release()
campaign.report().to_pandas()
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo

from adsbpc.campaign.plan import Plan, plan
from adsbpc.campaign.published import Published
from adsbpc.campaign.release import Released, Releases, release_slot, start
from adsbpc.engines import Engine, open_engine
from adsbpc.errors import LedgerError, ReleaseError
from adsbpc.ledger import Ledger, Verification
from adsbpc.mechanisms import guarantee_of, privacy_of
from adsbpc.model import PICO_RHO, Budget, CampaignSpec, Promise, Release, load_spec
from adsbpc.model.slots import to_microseconds
from adsbpc.privacy import SecureRandomness, epsilon_of, exact_rho
from adsbpc.report import Report


@dataclass(frozen=True)
class Status:
    """How far a campaign is. `over` is the last slot that has ended; `bound` is the one in force,
    in conversions per user and slot."""

    released: int
    slots: int
    over: int
    campaign_budget: Budget
    scope_budget: Budget
    bound: int | None
    ledger: str


@dataclass(frozen=True)
class Campaign:
    """Everything that can be done with a campaign file."""

    spec: CampaignSpec

    @classmethod
    def load(cls, path: str | Path) -> Campaign:
        return cls(load_spec(Path(path)))

    @property
    def promise(self) -> Promise:
        guarantee, delta = guarantee_of(self.spec), privacy_of(self.spec).delta
        return Promise(guarantee, epsilon_of(guarantee.rho, delta), delta)

    def plan(self, bound: int = 1) -> Plan:
        """The promise, the split of the budget and the expected errors, before any data."""
        return plan(self.spec, bound)

    def release(
        self, slot: int | None = None, through: date | datetime | str | None = None
    ) -> Releases:
        """Release what is due: everything that is over, one slot, or up to a date."""
        return Releases(self.releasing(slot, through))

    def releasing(
        self, slot: int | None = None, through: date | datetime | str | None = None
    ) -> Iterator[Released]:
        """The same, one by one as they are committed. Slots released before are returned too."""
        wanted = self.due(slot, through)
        running = start(self.spec, self._ledger)
        with ExitStack() as stack:

            @cache
            def engine() -> Engine:
                opened = open_engine(self.spec.events.engine, self.spec.engine_options)
                stack.callback(opened.close)
                return opened

            stack.callback(running.ledger.seal)
            for number in wanted:
                yield release_slot(running, number, engine, SecureRandomness())

    def due(self, slot: int | None = None, through: date | datetime | str | None = None) -> range:
        """The slots that a release covers; those that are not over yet are refused."""
        grid = self.spec.grid
        over = grid.last_ended(to_microseconds(datetime.now(UTC)))
        if slot is not None and through is not None:
            raise ReleaseError("give a slot or a date to release through, not both")
        if slot is None and through is None:
            return range(1, over + 1)
        last = slot if slot is not None else self._slot_at(through)
        if not 1 <= last <= grid.count:
            raise ReleaseError(f"slot {last}: expected a number from 1 to {grid.count}")
        if last > over:
            ends_at = grid.bounds_text(last)[1]
            done = f"slot {over} is the last that is over" if over else "no slot is over yet"
            raise ReleaseError(
                f"slot {last}: lasts until {ends_at}, and what arrives before then would be lost; "
                f"{done}. Release it after that"
            )
        return range(last, last + 1) if slot is not None else range(1, last + 1)

    def _slot_at(self, through: date | datetime | str | None) -> int:
        """The last slot of a date, or the slot of an instant, in the campaign's time zone."""
        zone, grid = ZoneInfo(self.spec.campaign.timezone), self.spec.grid
        try:
            moment = datetime.fromisoformat(str(through))
        except ValueError:
            raise ReleaseError(
                f"through {through!r}: expected a date such as 2026-03-31, or a date and time"
            ) from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        whole_day = "T" not in str(through) and " " not in str(through)
        if whole_day:
            moment = moment.replace(hour=23, minute=59, second=59)
        if to_microseconds(moment) < grid.starts_at:
            raise ReleaseError(
                f"through {through}: is before the campaign starts on {self.spec.campaign.start}. "
                "Give a later date"
            )
        return grid.slot_of(to_microseconds(moment)) or grid.count

    def status(self) -> Status:
        """How far the campaign is and what it has spent."""
        releases = self._releases()
        return Status(
            len(releases),
            self.spec.campaign.slots,
            self.spec.grid.last_ended(to_microseconds(datetime.now(UTC))),
            *self._budgets(),
            releases[-1].bound if releases else None,
            self._ledger.where,
        )

    def verify(self) -> Verification:
        """Whether any entry of the scope's ledger, or any published file, was changed."""
        scope, name = self._key
        if not self._ledger.exists():
            return Verification(0, "", None)
        found = self._ledger.verify(scope)
        if found.problem is None:
            problem = Published(self.spec).problem(self._ledger.releases(scope, name))
            found = Verification(found.entries, found.head, problem)
        return found

    def report(self, level: float = 0.95, adjusted: bool = False) -> Report:
        """Released values with intervals; `adjusted` totals never fall and are never negative."""
        return Report(self.spec, self._releases(), self.promise, *self._budgets(), level, adjusted)

    @property
    def _key(self) -> tuple[str, str]:
        return self.spec.campaign.scope, self.spec.campaign.name

    @property
    def _ledger(self) -> Ledger:
        return Ledger(self.spec.ledger.location, self.spec.directory)

    def _releases(self) -> tuple[Release, ...]:
        Published(self.spec).check(self._ledger)
        if not self._ledger.exists():
            return ()
        texts = self._ledger.releases(*self._key)
        try:
            return tuple(Release.from_text(text) for text in texts)
        except ValueError as error:
            raise LedgerError(
                f"ledger {self._ledger.where}: a stored release cannot be read ({error}). "
                "Run adsbpc status --verify"
            ) from None

    def _budgets(self) -> tuple[Budget, Budget]:
        """The campaign's and the scope's; before the campaign starts, as they would be."""
        ledger, (scope, name) = self._ledger, self._key
        exists = ledger.exists()
        if exists and ledger.campaign(scope, name) is not None:
            return ledger.budgets(scope, name)
        own = int(self.promise.guarantee.rho * PICO_RHO)
        record = ledger.scope(scope) if exists else None
        if record is not None:
            return Budget(own, 0), Budget(record.limit_pico_rho, ledger.spent(scope))
        limit = privacy_of(self.spec).scope_rho
        return Budget(own, 0), Budget(own if limit is None else int(exact_rho(limit) * PICO_RHO), 0)
