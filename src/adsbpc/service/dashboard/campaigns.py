"""Campaigns at a glance, and the page of one campaign: made once, kept until more is visible.

Must never: make a page anew because something was released that is not visible yet. Who measures
how long a page takes would know when.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from types import SimpleNamespace
from typing import Annotated, Any, Generic, Literal, TypeVar

from fastapi import APIRouter, Query, Request, Response
from markupsafe import Markup

from adsbpc.errors import AdsbpcError
from adsbpc.model import ALL_PUBLISHERS
from adsbpc.model.durations import MICROSECONDS_PER_SECOND
from adsbpc.model.lift_spec import LiftSection
from adsbpc.report import Report
from adsbpc.report.model_words import attribution
from adsbpc.report.numbers import amount, budget_texts, interval
from adsbpc.report.page_parts import parts_of
from adsbpc.report.timeline import Timeline
from adsbpc.report.wording import decimals, metric_name
from adsbpc.service.auth.access import backend_of, campaign_for, require, signed_in
from adsbpc.service.auth.permissions import Action, allows
from adsbpc.service.backend import Backend
from adsbpc.service.dashboard.pages import fragment, page, span
from adsbpc.service.dashboard.steering import steering_of
from adsbpc.service.logs import log_failure, public_text
from adsbpc.service.releases.campaign_api import readable_campaigns
from adsbpc.service.releases.campaign_folder import spend_version
from adsbpc.service.releases.campaigns import Registered
from adsbpc.service.releases.course import Course
from adsbpc.service.releases.publication import spending_of

WIDTH, HEIGHT = 200, 40
_MOST_POINTS = 100


@dataclass(frozen=True)
class Spark:
    """Points of an SVG: the line, and the band around it."""

    line: str
    band: str


def spark_of(report: Report) -> Spark:
    newest, slots = report.newest.slot, report.spec.campaign.slots
    every = -(-newest // _MOST_POINTS)
    cells = [
        cell
        for cell in report.running_totals(sorted(range(newest, 0, -every)))
        if cell.publisher == ALL_PUBLISHERS
    ]
    # Nothing was counted before the first slot: that is known without noise.
    rows = [
        (0, 0.0, 0.0, 0.0),
        *((cell.slot, cell.estimate, cell.low, cell.high) for cell in cells),
    ]
    lowest = min(row[2] for row in rows)
    spread = max(row[3] for row in rows) - lowest or 1.0

    def point(slot: int, value: float) -> str:
        return f"{WIDTH * slot / slots:.1f},{HEIGHT * (1 - (value - lowest) / spread):.1f}"

    upper = [point(slot, high) for slot, _, _, high in rows]
    lower = [point(slot, low) for slot, _, low, _ in reversed(rows)]
    return Spark(
        line=" ".join(point(slot, value) for slot, value, _, _ in rows),
        band=" ".join(upper + lower),
    )


Version = tuple[str, int, int, bool, int]
Tone = Literal["good", "calm", "done", "bad"]


@dataclass(frozen=True)
class Progress:
    """`word` for a small mark, `next` is one sentence about the slot to come, if any is."""

    word: str
    tone: Tone
    next: str


def state_of(course: Course, visible: int, wait: int) -> Progress:
    """`wait` is how long after its end a slot is published, in microseconds."""
    spec, now = course.spec, course.now_us
    timeline = Timeline(spec.grid)
    if visible >= spec.campaign.slots:
        return Progress("Complete", "done", "")
    if course.state == "closed" and visible >= course.slots:
        return Progress("Closed", "done", "")
    if course.state == "paused":
        return Progress("Paused", "calm", "Nothing new is published until it is resumed.")
    slot = f"{timeline.word.capitalize()} {visible + 1}"
    each = span(wait / MICROSECONDS_PER_SECOND)
    if course.due(wait) > visible:
        due = spec.settled_at(visible + 1) + wait
        late = span((now - due) / MICROSECONDS_PER_SECOND)
        return Progress(
            "Late", "bad", f"{slot} has been due for {late}. New ones appear every {each}."
        )
    # With the zone: readers may be anywhere.
    ends = timeline.moment(visible + 1)
    when = f"{ends.day} {ends:%B, %H:%M} {ends.tzname()}"
    later = span((wait + spec.events.held_back) / MICROSECONDS_PER_SECOND)
    soon = f"{slot} is over on {when} and is published {later} later."
    if now < spec.grid.starts_at:
        return Progress("Not begun", "calm", soon)
    return Progress("Running" if visible else "Collecting", "good", soon)


@dataclass(frozen=True)
class Sight:
    """What is known of a campaign before anything is made for it: one look at the store, one at
    the ledger. `visible` is the newest visible slot of each campaign of its scope, by name."""

    registered: Registered
    visible: Mapping[str, int]
    course: Course
    paid: int

    @property
    def slot(self) -> int:
        return self.visible[self.registered.name]

    @property
    def version(self) -> Version:
        """All that a report depends on besides the campaign. Other campaigns of the scope, of this
        server or not, change what is left of its budget, and closing it returns some."""
        stage = self.course.stage
        return self.registered.campaign_id, self.slot, stage.scope_spent, stage.closed, self.paid

    def report(self) -> Report:
        return self.registered.campaign.report(through=self.visible)


def sight_of(backend: Backend, registered: Registered) -> Sight:
    visible, paid = backend.publication.visible(registered), 0
    # What was pushed after the campaign was read is not in its report.
    if registered.spec.spend is not None:
        paid = spend_version(backend.campaigns.folder_of(registered.campaign_id))
    return Sight(registered, visible, backend.campaigns.course(registered, visible), paid)


_MOST_GLANCES, _MOST_BODIES = 500, 32
_FORMATS = {"csv": "CSV", "parquet": "Parquet", "json": "JSON", "html": "HTML report"}
Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Body:
    """The report as HTML, ready to be sent, with downloads from the server. What depends on who
    looks, and when, stands between `masthead` and `rest` or around them."""

    masthead: Markup
    rest: Markup


class Shelf(Generic[Kept]):
    """Keeps what was asked for last; two who ask at once may both make it. Every worker has its
    own: what is kept of a version is the same in all of them."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._kept: OrderedDict[Version, Kept] = OrderedDict()

    def get(self, key: Version, make: Callable[[], Kept]) -> Kept:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made


_glances: Shelf[SimpleNamespace] = Shelf(_MOST_GLANCES)
_bodies: Shelf[Body] = Shelf(_MOST_BODIES)


def glance_at(sight: Sight) -> SimpleNamespace | None:
    """A campaign on a card; None before anything is visible."""
    if not sight.slot:
        return None
    return _glances.get(sight.version, lambda: _glance(sight.report()))


def body_of(sight: Sight) -> Body | None:
    """None before anything is visible."""
    if not sight.slot:
        return None
    campaign_id = sight.registered.campaign_id
    return _bodies.get(sight.version, lambda: _body(sight.report(), campaign_id))


def _glance(report: Report) -> SimpleNamespace:
    total, shown = report.standings.everything, decimals(report)
    if report.estimates_cut:
        # The estimate need not be in the middle of its interval.
        spread = interval(total.low, total.high, shown)
    else:
        spread = f"± {amount(report.lens.reach * total.standard_error, shown)}"
    _, limit, left = budget_texts(report.campaign_budget)
    return SimpleNamespace(
        released=report.newest.slot,
        total=amount(total.estimate, shown),
        spread=spread,
        metric=metric_name(report),
        noisy=total.noisy,
        left=left,
        limit=limit,
        spark=spark_of(report),
    )


def _body(report: Report, campaign_id: str) -> Body:
    address = f"/v1/campaigns/{campaign_id}/report?format="
    links = {title: address + format for format, title in _FORMATS.items()}
    parts = parts_of(report, links=links)
    # The figures of the charts are most of the page, and most of the work of writing it.
    rest = fragment("campaign-report.html", cards=parts.cards, data=parts.data)
    return Body(parts.masthead, rest)


router = APIRouter()

_ORDER: dict[Tone, int] = {"bad": 0, "good": 1, "calm": 2, "done": 3}


@dataclass(frozen=True)
class Card:
    registered: Registered
    word: str
    glance: SimpleNamespace | None
    state: Progress


@router.get("/campaigns")
def list_campaigns(
    request: Request, q: Annotated[str, Query(max_length=200)] = "", sort: str = "attention"
) -> Response:
    backend, principal = backend_of(request), signed_in(request)
    require(request, principal, Action.LIST_CAMPAIGNS)
    readable = readable_campaigns(request, principal)
    wanted = [each for each in readable if q.casefold() in _searched(each)]
    cards = [_card(backend, each) for each in wanted]
    cards.sort(key=_SORTS.get(sort, _SORTS["attention"])[1])
    return page(
        request,
        "campaigns.html",
        principal,
        cards=cards,
        any_readable=bool(readable),
        q=q,
        sort=sort if sort in _SORTS else "attention",
        sorts={name: title for name, (title, _) in _SORTS.items()},
        together=_together(backend, readable),
        counts=Counter(card.state.word.lower() for card in cards),
        may_create=allows(principal, Action.CREATE_CAMPAIGN),
    )


def _searched(registered: Registered) -> str:
    """What is looked through for a text."""
    section = registered.spec.campaign
    return f"{section.name} {section.advertiser} {section.scope}".casefold()


# What needs a look comes first, unless somebody wants another order.
_SORTS: dict[str, tuple[str, Callable[[Card], Any]]] = {
    "attention": ("what needs a look", lambda card: _ORDER[card.state.tone]),
    "name": ("name", lambda card: card.registered.name.casefold()),
    "newest": ("newest first", lambda card: -card.registered.created_us),
    "start": ("first day", lambda card: card.registered.spec.campaign.start),
}


def _together(backend: Backend, readable: list[Registered]) -> SimpleNamespace | None:
    """The budgets of all scopes together; None for one campaign, whose card says it."""
    if len(readable) < 2:
        return None
    found = spending_of(backend.campaigns, backend.publication, readable)
    spent, limit, left = budget_texts(found.budget)
    return SimpleNamespace(
        campaigns=len(readable), scopes=found.scopes, spent=spent, limit=limit, left=left
    )


def _card(backend: Backend, registered: Registered) -> Card:
    word = Timeline(registered.spec.grid).word
    try:
        sight = sight_of(backend, registered)
        glance = glance_at(sight)
    except AdsbpcError as error:
        # One campaign that cannot be read must not hide the others.
        log_failure(
            "card failed", error, campaign=registered.campaign_id, problem=public_text(error)
        )
        return Card(registered, word, None, Progress("Cannot be read", "bad", ""))
    state = state_of(sight.course, sight.slot, backend.publication.publish_after_us)
    return Card(registered, word, glance, state)


@router.get("/campaigns/{campaign}")
def show_campaign(request: Request, campaign: str) -> Response:
    backend, principal = backend_of(request), signed_in(request)
    registered = campaign_for(request, principal, campaign, Action.READ_RELEASES)
    sight = sight_of(backend, registered)
    body, released, course = body_of(sight), sight.slot, sight.course
    state = state_of(course, released, backend.publication.publish_after_us)
    may_operate = allows(principal, Action.OPERATE)
    common: dict[str, Any] = {
        "registered": registered,
        # That a release failed follows from events.
        "problem": registered.problem if may_operate else "",
        "state": state,
        "released": released,
        "is_over": released >= course.slots,
        "steering": steering_of(principal, course),
        "may_continue": released >= course.slots and allows(principal, Action.CREATE_CAMPAIGN),
        "signs": backend.signer is not None,
        "may_assign": registered.spec.lift is not None
        and allows(principal, Action.ASSIGN_ARMS, registered.advertiser),
    }
    if body is None:
        expected = _expected(registered, sight.visible)
        return page(request, "campaign-waiting.html", principal, **common, **expected)
    return page(request, "campaign.html", principal, **common, body=body)


def _arms(lift: LiftSection) -> str:
    return ", ".join(f"{arm} {100 * share:g}%" for arm, share in lift.shares.items())


def _expected(registered: Registered, visible: Mapping[str, int]) -> dict[str, Any]:
    """What is known before anything of it is visible."""
    spec, campaign = registered.spec, registered.campaign
    status, timeline = campaign.status(visible), Timeline(spec.grid)
    attributed = dict.fromkeys(each.metric for each in spec.measures if not each.by_arm)
    facts = {
        **({"Metric": f"attributed {' and '.join(attributed)}"} if attributed else {}),
        **({"Arms": _arms(spec.lift)} if spec.lift is not None else {}),
        "Period": f"{timeline.period(spec.campaign.slots)} ({spec.campaign.timezone})",
        "Published": f"no {timeline.word} yet, of {spec.campaign.slots}",
        "Attribution": attribution(spec.attribution),
        "Advertiser": spec.campaign.advertiser,
    }
    return {
        "facts": facts,
        "publishers": spec.campaign.publishers,
        "campaign_budget": status.campaign_budget,
        "scope_budget": status.scope_budget,
        "promise": campaign.promise,
    }
