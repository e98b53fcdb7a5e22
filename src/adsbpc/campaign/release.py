"""One release, step by step, exactly once.

A crash before the commit publishes nothing and spends nothing; after it, everything is there and
the next run publishes it. Must never: publish what the ledger has not committed, or draw noise
for a slot that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, overload

from adsbpc.campaign.books import BookFolder
from adsbpc.campaign.data_path import (
    Attributed,
    accounted,
    attribute,
    contributed,
    long_accounted,
)
from adsbpc.campaign.declared_fits import check_declared, declared_fit
from adsbpc.campaign.fits import check_fit, check_holdout, fit_is_due, known_fit, make_fit, model_at
from adsbpc.campaign.overview import Overview, check_start, start_of
from adsbpc.campaign.planning import plan_anew
from adsbpc.campaign.promise import as_started, promise_of
from adsbpc.campaign.release_folder import ReleaseFolder
from adsbpc.contributions import Accounts, Books, Contributions, EngineAccounts
from adsbpc.contributions.long_books import LongBooks
from adsbpc.engines import Engine
from adsbpc.errors import LedgerError, ReleaseError
from adsbpc.events import check_table
from adsbpc.ledger import Ledger, Opening
from adsbpc.mechanisms import (
    Measures,
    MeasuresState,
    guarantee_of,
    plan_measures,
    scope_limit_of,
)
from adsbpc.model import CampaignSpec, Charge, ChargeLine, Fit, Measure, Measured, Release
from adsbpc.model.layout import Layout, view_name
from adsbpc.privacy import Randomness
from adsbpc.privacy.decays import DecayingStrategy
from adsbpc.report.tabular import Tabular
from adsbpc.storage import Place, remove_tree

# How a commitment says whose the books are; versions before wrote no number.
_COMMITTED = 3
# From a slot's events to credits, with the fit that there is.
Attributing = Callable[[CampaignSpec, Engine, int, Fit | None], Attributed]


@dataclass(frozen=True)
class Released:
    """`text` is the release byte for byte; `replayed` if an earlier run made it.

    `conversions` read, rows `quarantined` by (source, reason) and touches that came `late` are for
    the operator's log and must not be published; they are None, empty and 0 if no events were read.
    """

    text: str
    replayed: bool
    conversions: int | None = None
    quarantined: dict[tuple[str, str], int] = field(default_factory=dict)
    late: int = 0

    @property
    def release(self) -> Release:
        return Release.from_text(self.text)


class Releases(Tabular, Sequence[Released]):
    """Slots in order; as a table, a row for each estimate."""

    def __init__(self, released: Iterable[Released]) -> None:
        self._released = tuple(released)

    def __len__(self) -> int:
        return len(self._released)

    @overload
    def __getitem__(self, index: int) -> Released: ...

    @overload
    def __getitem__(self, index: slice) -> Releases: ...

    def __getitem__(self, index: int | slice) -> Released | Releases:
        if isinstance(index, slice):
            return Releases(self._released[index])
        return self._released[index]

    def columns(self) -> dict[str, list[Any]]:
        rows = [row for one in self._released for row in rows_of(one)]
        names = list(dict.fromkeys(name for row in rows for name in row))
        return {name: [row.get(name) for row in rows] for name in names}

    def __repr__(self) -> str:
        return f"Releases({self.caption()})"

    def caption(self) -> str:
        replayed = sum(one.replayed for one in self._released)
        return f"{len(self) - replayed} slots released, {replayed} were released before"


def rows_of(one: Released) -> list[dict[str, Any]]:
    """A row for each estimate of a release, with a key for each dimension that its view keeps."""
    release = one.release
    return [
        {
            "slot": release.slot,
            "replayed": one.replayed,
            "measure": measured.measure,
            "view": view_name(answers.view),
            **dict(zip(answers.view, each.keys, strict=True)),
            "query": each.query,
            "value": each.value,
            "standard_error": each.standard_error,
        }
        for measured in release.measures
        for answers in measured.answers
        for each in measured.estimates(answers)
    ]


@dataclass(frozen=True)
class Running:
    """A campaign with the plan that it started with; `opening` before its first slot. One that is
    `closed` releases nothing more."""

    spec: CampaignSpec
    ledger: Ledger
    published: ReleaseFolder
    measures: Measures
    opening: Opening | None
    steps: list[dict[str, Any]] = field(default_factory=list)
    closed: bool = False

    @property
    def key(self) -> tuple[str, str]:
        return self.spec.campaign.scope, self.spec.campaign.name

    def fit(self) -> Fit | None:
        """The public parameters that conversions are attributed with, if there are any by now."""
        if self.opening is not None and self.opening.plan.fit is not None:
            return Fit.from_text(self.opening.plan.fit)
        return known_fit(self.spec, self.ledger)

    def state(self) -> MeasuresState:
        """SECRET: the state after everything that was committed, by anybody."""
        self.steps.extend(self.ledger.steps(*self.key, after=len(self.steps)))
        try:
            return self.measures.resume(self.steps)
        except (KeyError, TypeError, ValueError) as error:
            raise LedgerError(
                f"ledger {self.ledger.where}: the saved state cannot be read ({error!r}). "
                "Run adsbpc status --verify"
            ) from None


def start(spec: CampaignSpec, ledger: Ledger) -> Running:
    """Hold the ledger to what was published, and the file to what the ledger says of the campaign;
    plan a campaign that is new."""
    published = ReleaseFolder(spec, ledger)
    published.check()
    running = take_up(spec, ledger, published)
    if running.opening is not None:
        for folder in BookFolder.all_of(spec):
            folder.check_new()
    return running


def take_up(spec: CampaignSpec, ledger: Ledger, published: ReleaseFolder) -> Running:
    """The same from a ledger that may be behind what was published."""
    guarantee, scope_limit = guarantee_of(spec), scope_limit_of(spec)
    record = ledger.started(guarantee, spec.campaign.name, scope_limit)
    if record is not None:
        spec = as_started(spec, record.promise)
        if record.plan.fit is not None:
            check_declared(spec, Fit.from_text(record.plan.fit))
        planned = plan_measures(spec, record.plan)
        return Running(spec, ledger, published, planned, None, closed=record.closed)
    check_fit(spec)
    fit = declared_fit(spec)
    planned = plan_anew(spec)
    plan = replace(planned.stored_plan(), fit=None if fit is None else fit.essentials().to_text())
    opening = Opening(guarantee, spec.campaign.name, promise_of(spec), plan, scope_limit)
    ledger.check_room(opening)
    return Running(spec, ledger, published, planned, opening)


def release_slot(
    running: Running,
    slot: int,
    engine: Callable[[], Engine],
    randomness: Randomness,
    shown: Callable[[Overview], None] = lambda seen: None,
    attributing: Attributing = attribute,
) -> Released:
    """Release a slot, or return the release that it has. What a campaign starts with is `shown`
    before anything is charged. `attributing` reads and credits its events: by itself, or from what
    several campaigns share."""
    spec, ledger, published = running.spec, running.ledger, running.published

    # 1. If the slot is committed, return what was stored: never draw again.
    state = running.state()
    # Asked for after the state: whoever commits the slot in between is seen here.
    stored = ledger.release(*running.key, slot)
    if stored is not None:
        published.publish(slot, stored)
        return Released(stored, replayed=True)
    ledger.check_open(*running.key)
    if slot != state.next_slot:
        raise ReleaseError(
            f"slot {slot}: slots are released in order, and slot {state.next_slot} is next. "
            f"Release that one first, or everything up to {slot} with --through"
        )

    with engine().scratch():
        # 2. and 3. Read the slot's events, set bad rows aside, attribute with what is public.
        made = make_fit(spec, engine(), randomness) if fit_is_due(spec, slot) else None
        fit = running.fit()
        attributed = attributing(spec, engine(), slot, fit)
        events = attributed.events
        if running.opening is not None:
            check_holdout(spec, events)
            check_table(spec, engine())
            seen = start_of(attributed, fit)
            shown(seen)
            check_start(seen)
        read, bad, late = events.conversion_count(), events.quarantined(), events.late_count()

        # 4. and 5. Contributions on the integer grid; what is kept of them in every cell; noise.
        rows = SlotRows(running, lambda: attributed)
        drawn, after = running.measures.release(state, rows.of, randomness)

    # 6. One transaction: charges, state, noisy outputs; then publish.
    release = release_of(spec, slot, drawn, fit, made)
    step = after.last_step(rows.kept)
    text, ours = ledger.commit(release, step, running.opening, rows.secret(after))
    published.publish(slot, text)
    if slot == 1:
        for measure in rows.kept:
            BookFolder(spec, measure).remember()
    return Released(text, not ours, read, bad, late)


class SlotRows:
    """The people of the next slot, whose events were attributed. `kept` is what the ledger keeps of
    them beside the state, by measure: which new books count. Whoever looks for what an `earlier`
    version has committed to asks for their names, too."""

    def __init__(
        self, running: Running, attributed: Callable[[], Attributed], earlier: bool = False
    ) -> None:
        self.running, self.attributed, self.earlier = running, attributed, earlier
        self.books: list[Place] = []
        self.kept: dict[str, dict[str, Any]] = {}
        self._people: dict[str, tuple[int, ...]] = {}
        self._by_name: dict[str, int] = {}

    def secret(self, after: MeasuresState) -> Any:
        """SECRET, for JSON: what the release of the slot does not tell: the state that it leaves,
        and in whose books."""
        if not self._people:
            return after.last_secret
        return {"format": _COMMITTED, "state": after.last_secret, "people": self._people}

    def earlier_secrets(self, after: MeasuresState) -> list[Any]:
        """SECRET: what earlier versions have committed to: the state with hashes of what everybody
        has by name, and before that the state alone."""
        return [[after.last_secret, self._by_name], after.last_secret]

    def note(self, measure: str, books: dict[str, Any], accounts: EngineAccounts) -> None:
        """Books that are on the disk, and of whom they are."""
        self.kept[measure], self._people[measure] = {"books": books}, accounts.people

    def note_names(self, measure: str, accounts: EngineAccounts) -> None:
        if self.earlier:
            self._by_name[measure] = accounts.people_by_name()

    def of(self, measure: Measure) -> MeasureRows:
        return MeasureRows(self, measure)

    def discard(self) -> None:
        """New books that will not count are gone."""
        for folder in self.books:
            remove_tree(folder)


@dataclass(frozen=True)
class MeasureRows:
    """The same people, as a measure counts them."""

    rows: SlotRows
    measure: Measure

    def contributions(self) -> AbstractContextManager[Contributions]:
        return contributed(self.rows.attributed(), self.measure)

    @contextmanager
    def accounts(self, layout: Layout) -> Iterator[Accounts]:
        """New books are on the disk at the end, and gone if anything fails."""
        folder = BookFolder(self.rows.running.spec, self.measure.name)
        hashes = self.rows.attributed().events.engine.hashes
        with folder.attempt(self.rows.running.steps, hashes) as books:
            made = accounted(self.rows.attributed(), self.measure, layout, books)
            with self._sealed(folder, books, made) as accounts:
                yield accounts

    @contextmanager
    def long_accounts(self, layout: Layout, strategy: DecayingStrategy) -> Iterator[Accounts]:
        """The same with books of a long campaign."""
        folder = BookFolder(self.rows.running.spec, self.measure.name)
        hashes = self.rows.attributed().events.engine.hashes
        with folder.long_attempt(self.rows.running.steps, hashes) as books:
            made = long_accounted(self.rows.attributed(), self.measure, layout, books, strategy)
            with self._sealed(folder, books, made) as accounts:
                yield accounts

    @contextmanager
    def _sealed(
        self,
        folder: BookFolder,
        books: Books | LongBooks,
        made: AbstractContextManager[EngineAccounts],
    ) -> Iterator[Accounts]:
        self.rows.books.append(books.new)
        with made as accounts:
            yield accounts
            self.rows.note_names(self.measure.name, accounts)
        self.rows.note(self.measure.name, folder.seal(books), accounts)


def release_of(
    spec: CampaignSpec,
    slot: int,
    measured: tuple[Measured, ...],
    fit: Fit | None = None,
    made: tuple[Fit, Charge] | None = None,
) -> Release:
    """`fit` attributed the slot; `made` is the one that this release gives out, if any."""
    starts_at, ends_at = spec.grid.bounds_text(slot)
    return Release(
        scope=spec.campaign.scope,
        campaign=spec.campaign.name,
        slot=slot,
        starts_at=starts_at,
        ends_at=ends_at,
        measures=measured,
        attribution=None if spec.attribution.fit is None else model_at(spec, slot, fit)[0],
        fit=None if made is None else made[0],
        fit_charge=None if made is None else ChargeLine.of(made[1]),
    )
