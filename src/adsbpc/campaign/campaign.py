"""A campaign and its verbs: plan, release, restore, status, report. The command line is a
front of it.

campaign = Campaign.load("spring.toml")
campaign.plan()
campaign.release()
campaign.report().to_pandas()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adsbpc.campaign.due_slots import Through, slots_due, slots_over, starts_after
from adsbpc.campaign.promise import as_started
from adsbpc.campaign.release_folder import ReleaseFolder
from adsbpc.campaign.status import Status
from adsbpc.errors import LedgerError, ReleaseError, SpecError
from adsbpc.ledger import Ledger, Snapshot, Verification
from adsbpc.mechanisms import guarantee_of, promise_with, scope_limit_of
from adsbpc.model import PICO_RHO, Budget, CampaignSpec, Fit, Promise, Release, load_spec, spec_of
from adsbpc.model.rules import cause_of
from adsbpc.model.toml import place
from adsbpc.storage import folder_at, hashes_of, is_remote

# Each verb imports what it alone needs: how far a campaign is, is asked often and answered at once.
if TYPE_CHECKING:
    from adsbpc.audit import Findings
    from adsbpc.campaign.book_seals import Hashes
    from adsbpc.campaign.overview import Overview
    from adsbpc.campaign.plan import Plan
    from adsbpc.campaign.power import Power
    from adsbpc.campaign.release import Released, Releases
    from adsbpc.campaign.restore import Restored
    from adsbpc.campaign.run import Run
    from adsbpc.engines import Engine
    from adsbpc.report import Report
    from adsbpc.report.statement import Statement


@dataclass(frozen=True)
class Campaign:
    """Everything that can be done with a campaign file. `frames` are events in memory, by source,
    in place of files that the campaign file names."""

    spec: CampaignSpec
    frames: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def load(cls, path: str | Path) -> Campaign:
        """Read a campaign file; nothing is opened or released yet."""
        return cls(load_spec(Path(path)))

    @classmethod
    def from_dict(
        cls,
        content: Mapping[str, Any],
        directory: str | Path = ".",
        *,
        impressions: Any = None,
        conversions: Any = None,
    ) -> Campaign:
        """A campaign from what its file would say, section by section; ledger, books and releases
        are kept in `directory`. Events may be tables in memory, of pandas, polars or Arrow, where
        the section `events` names no files."""
        from adsbpc.engines.frames import check_frame

        given = {"impressions": impressions, "conversions": conversions}
        frames = {source: frame for source, frame in given.items() if frame is not None}
        events, named = content.get("events", {}), dict[str, str]()
        if not isinstance(events, Mapping):
            raise SpecError("expected a section of keys", place("events"), repr(events))
        for source, frame in frames.items():
            check_frame(source, frame)
            if source in events:
                raise SpecError(
                    f"{source} are handed over, and {place('events', source)} names them too: "
                    "leave one of them out"
                )
            named[source] = f"{source} in memory"
        whole = {**content, "events": {**events, **named}}
        return cls(spec_of(whole, Path(directory).resolve(), "campaign"), frames)

    @property
    def promise(self) -> Promise:
        """What is promised, with the limit that the ledger has for the scope."""
        return promise_with(self.spec, self._budgets(self._ledger.snapshot(*self._key))[1].limit)

    def plan(
        self,
        bound: float | None = None,
        expected: Mapping[str, float] | None = None,
        targets: Sequence[str] = (),
    ) -> Plan:
        """The promise, the split of the budget, and the errors that a bound, or an allowance of
        personal budgets, would mean, before any data; beside what is `expected` of each measure.
        `targets`, such as "revenue/publisher=10%", ask which rho and shares reach them. Refused
        where the scope has no room."""
        from adsbpc.campaign.plan import plan
        from adsbpc.campaign.planning import with_room

        return plan(with_room(self.spec, self._ledger), bound, expected, targets)

    def power(self, lift: float, rate: float) -> list[Power]:
        """The chance to see an effect, before any data: `rate` is the part of the control that will
        convert, and `lift` how much larger it is for the treated, such as 0.1."""
        from adsbpc.campaign.planning import with_room
        from adsbpc.campaign.power import power_of

        return power_of(with_room(self.spec, self._ledger), lift, rate)

    def release(self, slot: int | None = None, through: Through | None = None) -> Releases:
        """Release what is due: everything that is over, one slot, or up to a date."""
        from adsbpc.campaign.release import Releases

        return Releases(self.releasing(slot, through))

    def releasing(
        self,
        slot: int | None = None,
        through: Through | None = None,
        shown: Callable[[Overview], None] = lambda seen: None,
    ) -> Iterator[Released]:
        """The same, one by one as they are committed. Slots released before are returned too. What
        a campaign starts with is `shown` to the operator before anything is charged."""
        if not self.due(slot, through):
            return
        with self._engine() as engine, self.under_way(slot, through, shown) as run:
            while run.waiting:
                yield run.release_next(engine)

    @contextmanager
    def under_way(
        self,
        slot: int | None = None,
        through: Through | None = None,
        shown: Callable[[Overview], None] = lambda seen: None,
    ) -> Iterator[Run]:
        """The same for whoever has an engine: one slot whenever it is asked for. At the end the
        ledger is sealed."""
        from adsbpc.campaign.observed import lineage
        from adsbpc.campaign.run import Run

        with self._with_events() as spec:
            run = Run.started(spec, self._ledger, self.due(slot, through), shown)
            if run.running.closed and slot is None:
                run.waiting = [each for each in run.waiting if run.is_released(each)]
            with self._sealed(), lineage(spec, str(run.running.published.folder)):
                yield run

    def close(self) -> Fraction:
        """End the campaign early, for good. What it has not spent goes back to its scope; how much
        rho that was. The file may be changed, and the ledger put back from before a closing."""
        published = ReleaseFolder(self.spec, self._ledger)
        if self.spec.campaign.name in published.lost():
            published.check()
        returned = self._ledger.close(*self._key)
        # What others have lost is noted until it is restored.
        if not published.lost():
            published.mark()
        self._ledger.seal()
        return Fraction(returned, PICO_RHO)

    def restore(self, releases: str | Path | None = None) -> Restored:
        """Go on from releases that were published and that the ledger, restored from a backup, has
        lost: nothing is drawn. They are taken from a folder, the campaign's own if left out."""
        from adsbpc.campaign.restore import restore

        ledger, folder = self._ledger, None
        if releases is not None:
            folder = folder_at(str(releases), Path(), "releases")
        with self._with_events() as spec, self._sealed(), self._engine() as engine:
            return restore(spec, ledger, folder, engine)

    @contextmanager
    def _with_events(self) -> Iterator[CampaignSpec]:
        """The campaign file, with events in memory written to files for as long as they are read:
        one way of reading for every engine."""
        if not self.frames:
            yield self.spec
            return
        from adsbpc.engines.frames import written_frames

        with written_frames(self.frames) as files:
            events = self.spec.events.model_copy(update=files)
            yield self.spec.model_copy(update={"events": events})

    @contextmanager
    def _sealed(self) -> Iterator[None]:
        """At the end the ledger is sealed, whatever happened."""
        try:
            yield
        finally:
            self._ledger.seal()

    @contextmanager
    def _engine(self) -> Iterator[Callable[[], Engine]]:
        """An engine that is opened when it is first asked for."""
        from adsbpc.engines import open_engine

        with ExitStack() as stack:

            @cache
            def engine() -> Engine:
                opened = open_engine(self.spec.events.engine, self.spec.engine_options)
                stack.callback(opened.close)
                return opened

            yield engine

    def fit(self) -> Fit | None:
        """The public parameters that conversions are attributed with; None before they are there,
        or for a model without any."""
        from adsbpc.campaign.fits import known_fit

        return known_fit(self.spec, self._ledger)

    def rehearse(self, slot: int | None = None) -> Overview:
        """Read and attribute the next slot, or another, without drawing or charging anything. Of a
        first slot, `problems` say why the campaign would not start with it."""
        from adsbpc.campaign.data_path import attribute
        from adsbpc.campaign.overview import overview_of, start_of

        seen = self.status()
        if slot is None and (seen.closed or seen.released == seen.slots):
            why = (
                "the campaign was closed" if seen.closed else f"all {seen.slots} slots are released"
            )
            raise ReleaseError(f"{why}: look at the report, or name a slot with --slot")
        number = seen.released + 1 if slot is None else slot
        with self._with_events() as spec, self._engine() as engine:
            attributed = attribute(spec, engine(), number, self.fit())
            if number == 1 and not seen.released:
                return start_of(attributed, self.fit())
            return overview_of(attributed, number)

    def due(self, slot: int | None = None, through: Through | None = None) -> range:
        """The slots that a release covers; those that are not over yet are refused."""
        return slots_due(self.spec, slot, through)

    def starts_after(self, through: Through) -> bool:
        """Whether no slot of it has begun by then."""
        return starts_after(self.spec, through)

    def status(self, through: Mapping[str, int] | None = None) -> Status:
        """How far the campaign is and what it has spent; `through` names slots by campaign of the
        scope, as if nothing after them were released."""
        seen = self._snapshot(through)
        releases, budgets = self._releases(seen), self._budgets(seen)
        free = budgets[1].limit - Fraction(seen.scope_reserved, PICO_RHO)
        return Status(
            len(releases),
            self.spec.campaign.slots,
            slots_over(self.spec),
            *budgets,
            releases[-1].measures[0].bound if releases else None,
            releases[-1].measures[0].allowance if releases else None,
            self._ledger.where,
            free if through is None else None,
            seen.campaign is not None and seen.campaign.closed,
        )

    def verify(self) -> Verification:
        """Whether any entry of the scope's ledger, or any published file, was changed."""
        from adsbpc.campaign.books import BookFolder

        ledger, found = self._ledger, Verification(0, "", None)
        published = ReleaseFolder(self.spec, ledger)
        try:
            found = ledger.verify(self.spec.campaign.scope)
            if found.problem is None:
                published.verify()
                record = ledger.campaign(*self._key)
                erased = record is not None and record.erased
                steps = [] if erased else ledger.steps(*self._key)
                folders = BookFolder.all_of(self.spec)
                with self._engine() as engine:
                    problems = [each.problem(steps, True, self._hashes(engine)) for each in folders]
                found = replace(found, problem=next(filter(None, problems), None))
        except LedgerError as error:
            return replace(found, problem=str(error))
        return found

    def _hashes(self, engine: Callable[[], Engine]) -> Hashes:
        """A cluster reads its books in a store where they are; others are read here."""
        on_cluster = self.spec.events.engine == "spark" and is_remote(
            self.spec.storage.location or ""
        )
        return (lambda files: engine().hashes(files)) if on_cluster else hashes_of

    def audit(self, told: Callable[[int, int], None] = lambda done, total: None) -> Findings:
        """Recompute from ledger, published files and books what was promised, claim by claim, in
        code of its own. `told` hears of every step how many are done, and how many there are."""
        from adsbpc.audit import Subject, audit
        from adsbpc.campaign.books import BookFolder

        spec, ledger = self.spec, self._ledger
        options = spec.engine_options if spec.events.engine == "duckdb" else {}
        # The books are files; a database of events is not needed for them.
        options.pop("database", None)
        published = ReleaseFolder(spec, ledger).folder
        subject = Subject(ledger, *self._key, published, lambda name: BookFolder(spec, name).folder)
        return audit(subject, options, told)

    def report(
        self,
        level: float = 0.95,
        adjusted: bool = False,
        through: Mapping[str, int] | None = None,
        measure: str | None = None,
        band: bool = False,
    ) -> Report:
        """Released values with intervals; `adjusted` totals never fall; a `band` of running totals
        holds for all slots at once. For `through`: status."""
        from adsbpc.campaign.running_noise import running_noise_of
        from adsbpc.campaign.spend import read_spend
        from adsbpc.report import Report

        seen = self._snapshot(through)
        releases, (own, scope) = self._releases(seen), self._budgets(seen)
        spend, promise = read_spend(self.spec), promise_with(self.spec, scope.limit)
        noise = running_noise_of(self.spec, seen.campaign, releases)
        shown = (level, adjusted, measure, spend, noise, band)
        return Report(self.spec, releases, promise, own, scope, *shown)

    def statement(
        self,
        audited: bool = True,
        through: Mapping[str, int] | None = None,
        others: Sequence[Campaign] = (),
        told: Callable[[int, int], None] = lambda done, total: None,
    ) -> Statement:
        """What an auditor reads: promise, charges, releases, hazards, and which claims of the audit
        hold. `others` are further campaigns of the scope. For `through`: status."""
        from adsbpc.campaign.statement import campaign_statement, ledger_of, statement_of

        seen, stated = self._snapshot(through), []
        for each in (self, *others):
            own = seen if each is self else each._snapshot(through)
            budget, scope = each._budgets(own)
            spec, promise = each.spec, promise_with(each.spec, scope.limit)
            if own.campaign is not None:
                spec = as_started(spec, own.campaign.promise)
            findings = each.audit(told) if audited else None
            stated.append(campaign_statement(spec, promise, budget, own, findings))
        shared = self._budgets(seen)[1]
        return statement_of(self._key[0], shared, ledger_of(seen, through), tuple(stated))

    @property
    def _key(self) -> tuple[str, str]:
        return self.spec.campaign.scope, self.spec.campaign.name

    @cached_property
    def _ledger(self) -> Ledger:
        return Ledger(self.spec.ledger.location, self.spec.directory)

    def _snapshot(self, through: Mapping[str, int] | None) -> Snapshot:
        """The ledger, held to what was published, and the file to the promise that it started
        with. How far it is, is noted: something of it will be shown."""
        published = ReleaseFolder(self.spec, self._ledger)
        found = published.snapshot(through)
        if found.campaign is not None:
            as_started(self.spec, found.campaign.promise)
            published.mark(found.mark)
        return found

    def _releases(self, seen: Snapshot) -> tuple[Release, ...]:
        try:
            return tuple(Release.from_text(text) for text in seen.releases)
        except ValueError as error:
            raise LedgerError(
                f"ledger {self._ledger.where}: a stored release cannot be read "
                f"({cause_of(error)}). Run adsbpc status --verify"
            ) from None

    def _budgets(self, seen: Snapshot) -> tuple[Budget, Budget]:
        """The campaign's and the scope's; before they start, as they would be."""
        own, limit = int(guarantee_of(self.spec).rho * PICO_RHO), scope_limit_of(self.spec)
        shared = own if limit is None else int(limit * PICO_RHO)
        return (
            Budget(seen.campaign.reserved_pico_rho if seen.campaign else own, seen.campaign_spent),
            Budget(seen.scope.limit_pico_rho if seen.scope else shared, seen.scope_spent),
        )
