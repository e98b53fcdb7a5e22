"""What pages show of a campaign's visible releases: made once, and kept until more is visible.

Must never: be made anew because something was released that is not visible yet. Who measures how
long a page takes would know when.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from adsbpc.report import Report
from adsbpc.report.numbers import amount, budget_texts, interval
from adsbpc.report.parts import Parts, parts_of
from adsbpc.report.wording import decimals, metric_name
from adsbpc.service.backend import Backend
from adsbpc.service.campaigns import Registered
from adsbpc.service.dashboard.sparks import Spark, spark_of

_MOST_GLANCES, _MOST_BODIES = 500, 32
_FORMATS = {"csv": "CSV", "parquet": "Parquet", "json": "JSON", "html": "HTML report"}
Key = tuple[str, int, int]
Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Glance:
    """A campaign on a card. `spread` is the total's interval, in short."""

    released: int
    total: str
    spread: str
    metric: str
    noisy: bool
    left: str
    limit: str
    spark: Spark


@dataclass(frozen=True)
class Body:
    """The report's own parts, with downloads from the server."""

    parts: Parts
    released: int


class Shelf(Generic[Kept]):
    """Keeps what was asked for last; two who ask at once may both make it."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, Lock()
        self._kept: OrderedDict[Key, Kept] = OrderedDict()

    def get(self, key: Key, make: Callable[[], Kept]) -> Kept:
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


_glances: Shelf[Glance] = Shelf(_MOST_GLANCES)
_bodies: Shelf[Body] = Shelf(_MOST_BODIES)


def glance_at(backend: Backend, registered: Registered) -> Glance | None:
    """None before anything is visible."""
    return _kept(_glances, backend, registered, _glance)


def body_of(backend: Backend, registered: Registered) -> Body | None:
    """None before anything is visible."""
    return _kept(_bodies, backend, registered, lambda report: _body(report, registered.campaign_id))


def _kept(
    shelf: Shelf[Kept], backend: Backend, registered: Registered, make: Callable[[Report], Kept]
) -> Kept | None:
    visible = backend.publication.visible(registered)
    slot = visible[registered.name]
    if slot == 0:
        return None
    # Other campaigns of the scope, of this server or not, change what is left of its budget.
    spent = backend.campaigns.ledger.spent(registered.scope, visible)
    key = registered.campaign_id, slot, spent
    return shelf.get(key, lambda: make(registered.campaign.report(through=visible)))


def _glance(report: Report) -> Glance:
    total, shown = report.standings.everything, decimals(report)
    if report.has_personal_budgets:
        # The estimate need not be in the middle of its interval.
        spread = interval(total.low, total.high, shown)
    else:
        spread = f"± {amount(report.lens.reach * total.standard_error, shown)}"
    _, limit, left = budget_texts(report.campaign_budget)
    return Glance(
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
    return Body(parts_of(report, links=links), report.newest.slot)
