"""One release, step by step, exactly once.

A crash before the commit publishes nothing and spends nothing; after it, everything is there and
the next run publishes it. Must never: publish what the ledger has not committed, or draw noise
for a slot that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, overload

from adsbpc.campaign.books import BookFolder
from adsbpc.campaign.data_path import accounted, attribute, contributed
from adsbpc.campaign.declared_fits import check_declared, declared_fit
from adsbpc.campaign.fits import check_fit, check_holdout, fit_is_due, known_fit, make_fit, model_at
from adsbpc.campaign.planning import plan_again, plan_anew, stored_plan
from adsbpc.campaign.promise import check_promise, promise_of
from adsbpc.campaign.published import Published
from adsbpc.contributions import Accounts
from adsbpc.engines import Engine
from adsbpc.errors import LedgerError, ReleaseError
from adsbpc.ledger import Ledger, Opening
from adsbpc.mechanisms import (
    AdsBPC,
    Mechanism,
    PersonalState,
    SlotRelease,
    State,
    guarantee_of,
    privacy_of,
)
from adsbpc.model import CampaignSpec, Charge, ChargeLine, Fit, Release
from adsbpc.privacy import Randomness, exact_rho
from adsbpc.report.tabular import Tabular


@dataclass(frozen=True)
class Released:
    """`text` is the release byte for byte; `replayed` if an earlier run made it.

    `conversions` read and rows `quarantined` by (source, reason) are for the operator's log and
    must not be published; they are None and empty if no events were read.
    """

    text: str
    replayed: bool
    conversions: int | None = None
    quarantined: dict[tuple[str, str], int] = field(default_factory=dict)

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
        rows = [
            (
                release.slot,
                one.replayed,
                each.publisher,
                each.query,
                each.value,
                each.standard_error,
            )
            for one in self._released
            for release in [one.release]
            for each in release.estimates
        ]
        names = ("slot", "replayed", "publisher", "query", "value", "standard_error")
        return {name: [row[k] for row in rows] for k, name in enumerate(names)}

    def __repr__(self) -> str:
        return f"Releases({self.caption()})"

    def caption(self) -> str:
        replayed = sum(one.replayed for one in self._released)
        return f"{len(self) - replayed} slots released, {replayed} were released before"


@dataclass(frozen=True)
class Running:
    """A campaign with the plan that it started with; `opening` before its first slot."""

    spec: CampaignSpec
    ledger: Ledger
    published: Published
    mechanism: Mechanism
    opening: Opening | None
    steps: list[dict[str, Any]] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str]:
        return self.spec.campaign.scope, self.spec.campaign.name

    def fit(self) -> Fit | None:
        """The public parameters that conversions are attributed with, if there are any by now."""
        if self.opening is not None and self.opening.plan.fit is not None:
            return Fit.from_text(self.opening.plan.fit)
        return known_fit(self.spec, self.ledger)

    def state(self) -> State | PersonalState:
        """SECRET: the mechanism's state after everything that was committed, by anybody."""
        if self.ledger.exists():
            self.steps.extend(self.ledger.steps(*self.key, after=len(self.steps)))
        try:
            return self.mechanism.state_type.from_steps(self.steps)
        except (KeyError, TypeError, ValueError) as error:
            raise LedgerError(
                f"ledger {self.ledger.where}: the saved state cannot be read ({error!r}). "
                "Run adsbpc status --verify"
            ) from None


def start(spec: CampaignSpec, ledger: Ledger) -> Running:
    """Hold the ledger to what was published, and the file to what the ledger says of the campaign;
    plan a campaign that is new."""
    published = Published(spec, ledger)
    published.check()
    return take_up(spec, ledger, published)


def take_up(spec: CampaignSpec, ledger: Ledger, published: Published) -> Running:
    """The same from a ledger that may be behind what was published."""
    guarantee, limit = guarantee_of(spec), privacy_of(spec).scope_rho
    scope_limit = None if limit is None else exact_rho(limit)
    record = None
    if ledger.exists():
        ledger.check_chain(guarantee.scope)
        ledger.check_terms(guarantee, scope_limit)
        record = ledger.campaign(guarantee.scope, spec.campaign.name)
    if record is not None:
        check_promise(record.promise, promise_of(spec), spec.campaign.name)
        if record.plan.fit is not None:
            check_declared(spec, Fit.from_text(record.plan.fit))
        return Running(spec, ledger, published, plan_again(spec, record.plan), None)
    check_fit(spec)
    fit = declared_fit(spec)
    planned = plan_anew(spec)
    plan = replace(stored_plan(planned), fit=None if fit is None else fit.essentials().to_text())
    opening = Opening(guarantee, spec.campaign.name, promise_of(spec), plan, scope_limit)
    ledger.check_room(opening)
    return Running(spec, ledger, published, planned, opening)


def release_slot(
    running: Running, slot: int, engine: Callable[[], Engine], randomness: Randomness
) -> Released:
    """Release a slot, or return the release that it has."""
    spec, ledger, published = running.spec, running.ledger, running.published

    # 1. If the slot is committed, return what was stored: never draw again.
    state = running.state()
    # Asked for after the state: whoever commits the slot in between is seen here.
    stored = ledger.release(*running.key, slot) if ledger.exists() else None
    if stored is not None:
        published.publish(slot, stored)
        return Released(stored, replayed=True)
    if slot != state.next_slot:
        raise ReleaseError(
            f"slot {slot}: slots are released in order, and slot {state.next_slot} is next. "
            f"Release that one first, or everything up to {slot} with --through"
        )

    # 2. and 3. Read the slot's events, set bad rows aside, attribute with what is public by now.
    made = make_fit(spec, engine(), randomness) if fit_is_due(spec, slot) else None
    fit = running.fit()
    events = attribute(spec, engine(), slot, fit)
    if running.opening is not None:
        check_holdout(spec, events)
    read, bad = events.conversions(), events.quarantined()

    # 4. and 5. Contributions on the integer grid; what is kept of them for every publisher of the
    # public list; noise.
    drawn, step, secret = _draw(running, state, engine(), randomness)

    # 6. One transaction: charges, state, noisy outputs; then publish.
    release = _release(running, drawn, fit, made)
    text, ours = ledger.commit(release, step, running.opening, secret)
    published.publish(slot, text)
    return Released(text, not ours, read, bad)


def _draw(
    running: Running, state: State | PersonalState, engine: Engine, randomness: Randomness
) -> tuple[SlotRelease, dict[str, Any], Any]:
    """What is released of the slot, what the ledger keeps of the mechanism's state, and what of
    that is secret."""
    mechanism = running.mechanism
    if isinstance(mechanism, AdsBPC):
        assert isinstance(state, State)
        with contributed(running.spec, engine) as contributions:
            drawn, bounded = mechanism.release(state, contributions, randomness)
        return drawn, bounded.last_step(), bounded.last_secret
    assert isinstance(state, PersonalState)
    (drawn, personal), books = keep_books(
        running, engine, lambda accounts: mechanism.release(state, accounts, randomness)
    )
    return drawn, {**personal.last_step(), "books": books}, personal.last_secret


Found = TypeVar("Found")


def keep_books(
    running: Running, engine: Engine, admit: Callable[[Accounts], Found]
) -> tuple[Found, dict[str, Any]]:
    """Admit people of the next slot, and bring its new books onto the disk; also returns what the
    ledger keeps of them. If anything fails they are gone."""
    folder = BookFolder(running.spec)
    with folder.attempt(running.steps) as books:
        with accounted(running.spec, engine, books) as accounts:
            found = admit(accounts)
        return found, folder.seal(books.new)


def _release(
    running: Running, drawn: SlotRelease, fit: Fit | None, made: tuple[Fit, Charge] | None
) -> Release:
    """`fit` attributed the slot; `made` is the one that this release gives out, if any."""
    spec = running.spec
    charges = drawn.charges if made is None else (*drawn.charges, made[1])
    attribution = None
    if spec.attribution.fit is not None:
        attribution = model_at(spec, drawn.slot, fit)[0]
    starts_at, ends_at = spec.grid.bounds_text(drawn.slot)
    return Release(
        scope=spec.campaign.scope,
        campaign=spec.campaign.name,
        slot=drawn.slot,
        starts_at=starts_at,
        ends_at=ends_at,
        metric=spec.campaign.metric,
        mechanism=running.mechanism.name,
        bound=drawn.bound,
        allowance=drawn.allowance,
        histogram=drawn.histogram,
        scale=drawn.scale,
        values=drawn.values,
        randomness=drawn.randomness,
        charges=tuple(
            ChargeLine(charge.part, float(charge.rho), charge.pico_rho) for charge in charges
        ),
        estimates=drawn.answers,
        slot_totals=drawn.slot_totals,
        running_totals=drawn.running_totals,
        attribution=attribution,
        fit=None if made is None else made[0],
    )
