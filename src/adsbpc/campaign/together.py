"""Slots of many campaigns in one go: what they have in common is read and attributed once.

Each campaign is released as it is alone, by the same steps, under its own ledger: what is shared
are events of its own advertiser, and credits of its own journeys. Must never: let what happens to
one campaign stop another.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from typing import Any, TypeVar

from adsbpc.campaign.campaign import Campaign
from adsbpc.campaign.data_path import Attributed, attribute, credited_for
from adsbpc.campaign.overview import Overview
from adsbpc.campaign.release import Attributing, Released
from adsbpc.campaign.run import Run
from adsbpc.engines import Engine, open_engine
from adsbpc.errors import AdsbpcError, EngineError
from adsbpc.events import SharedSources, SlotNeed
from adsbpc.model import CampaignSpec, Fit

_T = TypeVar("_T")


@dataclass(frozen=True)
class Asked:
    """A campaign, and what is to be released of it: everything that is over, one slot, or up to a
    date."""

    campaign: Campaign
    slot: int | None = None
    through: date | datetime | str | None = None

    @property
    def is_due(self) -> bool:
        if self.through is not None and self.campaign.starts_after(self.through):
            return False
        return bool(self.campaign.due(self.slot, self.through))


@dataclass(frozen=True)
class Outcome:
    """A slot of a campaign that was released, or why no more of it can be."""

    campaign: Campaign
    released: Released | None = None
    failure: Exception | None = None


class Member:
    """A campaign of those that are released in one go. It is over after its last slot, or once
    anything of it fails."""

    def __init__(self, asked: Asked, shown: Callable[[Campaign, Overview], None]) -> None:
        self._asked, self._shown = asked, shown
        self.is_over = False
        self._open = ExitStack()
        self._run: Run | None = None

    def start(self) -> Outcome | None:
        """What went wrong, if anything did."""
        asked, campaign = self._asked, self._asked.campaign

        def show(seen: Overview) -> None:
            self._shown(campaign, seen)

        def started() -> Run | None:
            if not asked.is_due:
                return None
            return self._open.enter_context(campaign.under_way(asked.slot, asked.through, show))

        found = self._tried(started)
        if isinstance(found, Outcome):
            return found
        self._run = found
        if found is None or not found.waiting:
            self.close()
        return None

    @property
    def run(self) -> Run:
        assert self._run is not None
        return self._run

    @property
    def spec(self) -> CampaignSpec:
        return self.run.running.spec

    @property
    def slot(self) -> int:
        """The one that comes next."""
        return self.run.waiting[0]

    @property
    def bounds(self) -> tuple[int, int]:
        edges = self.spec.grid.boundaries
        return edges[self.slot - 1], edges[self.slot]

    def release_next(
        self, engine: Callable[[], Engine], attributing: Attributing = attribute
    ) -> Outcome:
        found = self._tried(lambda: self.run.release_next(engine, attributing))
        if isinstance(found, Outcome):
            return found
        if not self.run.waiting:
            self.close()
        return Outcome(self._asked.campaign, found)

    def replay(self, engine: Callable[[], Engine]) -> Iterator[Outcome]:
        """Slots that were released before."""
        while not self.is_over:
            known = self._tried(lambda: self.run.is_released(self.slot))
            if isinstance(known, Outcome):
                yield known
            elif known:
                yield self.release_next(engine)
            else:
                return

    def _tried(self, act: Callable[[], _T]) -> _T | Outcome:
        try:
            # What is open of the campaign hears of it, and is closed.
            with ExitStack() as noticed:
                noticed.push(self._open)
                done = act()
                noticed.pop_all()
                return done
        # Whatever it was, it is this campaign's.
        except Exception as error:  # noqa: BLE001
            self.is_over = True
            return Outcome(self._asked.campaign, failure=error)

    def close(self) -> None:
        self.is_over = True
        self._open.close()


class Engines:
    """One for each kind of engine and its options, opened when it is first asked for."""

    def __init__(self) -> None:
        self._opened: dict[tuple[Any, ...], Engine] = {}

    def key(self, spec: CampaignSpec) -> tuple[Any, ...]:
        return spec.events.engine, *sorted(spec.engine_options.items())

    def of(self, spec: CampaignSpec) -> Engine:
        key = self.key(spec)
        if key not in self._opened:
            self._opened[key] = open_engine(spec.events.engine, spec.engine_options)
        return self._opened[key]

    def discard(self, spec: CampaignSpec) -> None:
        """One that failed is not trusted with others."""
        failed = self._opened.pop(self.key(spec), None)
        if failed is not None:
            failed.close()

    def close(self) -> None:
        for engine in self._opened.values():
            engine.close()
        self._opened.clear()


def releasing_together(
    asked: Iterable[Asked],
    shown: Callable[[Campaign, Overview], None] = lambda campaign, seen: None,
) -> Generator[Outcome, None, None]:
    """Release what is due of each campaign, as slots are committed, in the order of time. One that
    fails is named at once and left; the others go on. Slots released before are returned too."""
    with ExitStack() as stack:
        engines = Engines()
        stack.callback(engines.close)
        members = [Member(each, shown) for each in asked]
        for member in members:
            stack.callback(member.close)
            failed = member.start()
            if failed is not None:
                yield failed
            if not member.is_over:
                yield from member.replay(partial(engines.of, member.spec))
        while waiting := [member for member in members if not member.is_over]:
            yield from _batch(_next_together(waiting, engines), engines)


def _next_together(waiting: Sequence[Member], engines: Engines) -> list[Member]:
    """Those whose next slots overlap with the one that ends first, on one engine."""
    first = min(waiting, key=lambda member: member.bounds[1])
    ends_at, engine = first.bounds[1], engines.key(first.spec)
    return [
        member
        for member in waiting
        if member.bounds[0] < ends_at and engines.key(member.spec) == engine
    ]


def _batch(members: Sequence[Member], engines: Engines) -> Iterator[Outcome]:
    """One slot of each. It ends early if the engine fails: the others have another one then."""
    spec = members[0].spec
    try:
        engine = engines.of(spec)
    except (AdsbpcError, OSError):
        # Who asks for it says so.
        yield members[0].release_next(lambda: engines.of(spec))
        return
    try:
        with engine.scratch():
            sources = SharedSources(engine)
            needs = [_need(sources, member) for member in members]
            sources.scan([need for need in needs if need is not None])
            for group in _alike(members, needs):
                with engine.scratch():
                    shared = _attributed(engine, sources, group)
                    for member, need in group:
                        outcome = member.release_next(
                            lambda: engine, _attributing(sources, need, shared)
                        )
                        yield outcome
                        if isinstance(outcome.failure, EngineError):
                            engines.discard(spec)
                            return
    except EngineError:
        # It could not even forget what it had: whoever waits has another one.
        engines.discard(spec)


def _need(sources: SharedSources, member: Member) -> SlotNeed | None:
    """None for a campaign that will say itself why its events cannot be read."""
    try:
        return sources.need(member.spec, member.slot)
    except AdsbpcError:
        return None


_Group = list[tuple[Member, SlotNeed | None]]


def _alike(members: Sequence[Member], needs: Sequence[SlotNeed | None]) -> list[_Group]:
    """Members of which events and journeys are the same."""
    groups: dict[object, _Group] = {}
    for member, need in zip(members, needs, strict=True):
        # A fit is known when the slot is released, and not before.
        is_plain = need is not None and member.spec.attribution.fit is None
        key = need.journey_key() if need is not None and is_plain else member
        groups.setdefault(key, []).append((member, need))
    return list(groups.values())


def _attributed(engine: Engine, sources: SharedSources, group: _Group) -> Attributed | None:
    """Once for all of a group; None if there is one of them, or if it fails: each says so then."""
    need = group[0][1]
    if len(group) == 1 or need is None:
        return None
    try:
        opened = sources.opened(need)
        return attribute(need.spec, engine, need.slot, None, opened, kept=True)
    except AdsbpcError:
        return None


def _attributing(
    sources: SharedSources, need: SlotNeed | None, shared: Attributed | None
) -> Attributing:
    """How a member's slot is attributed: from what is shared, as far as anything is."""

    def attributing(spec: CampaignSpec, engine: Engine, slot: int, fit: Fit | None) -> Attributed:
        if shared is not None:
            return credited_for(spec, shared)
        opened = None if need is None else sources.opened(need)
        return attribute(spec, engine, slot, fit, opened)

    return attributing
