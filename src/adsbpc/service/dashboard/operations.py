"""The operator's page: arrivals, the scheduler, the ledger, the audit log, the settings.

Arrivals are counts of rows without noise. Must never: be shown to anybody but the operator.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from adsbpc.ledger import Verification
from adsbpc.model.durations import MICROSECONDS_PER_HOUR
from adsbpc.model.slots import to_moment
from adsbpc.report import charts
from adsbpc.report.palette import variable
from adsbpc.service.auth.access import backend_of, require, signed_in
from adsbpc.service.auth.permissions import Action, Principal
from adsbpc.service.clock import now_us
from adsbpc.service.dashboard.pages import SentForm, page
from adsbpc.service.ingest.batches import HourlyCount
from adsbpc.service.ingest.deliveries import last_seen
from adsbpc.service.releases.campaigns import Registered

HOURS = 48
_COLOURS = {"accepted": "series-1", "duplicate": "series-other", "quarantined": "series-6"}


def arrivals_of(
    counted: Sequence[HourlyCount], now_us: int, seen: Mapping[str, datetime]
) -> SimpleNamespace:
    """What the page shows of arrivals: in all, by sender, by reason, by hour. A sender is a role
    and whom it speaks for; those who were `seen` before that sent nothing lately."""
    kinds, reasons = Counter[str](), Counter[tuple[str, str, str]]()
    hours = Counter[tuple[int, str]]()
    senders = defaultdict[tuple[str, str], Counter[str]](Counter)
    for each in counted:
        kind = each.kind
        senders[each.owner, each.source][kind] += each.number
        if kind not in _COLOURS:
            continue
        kinds[kind] += each.number
        hours[each.hour_us, kind] += each.number
        if kind == "quarantined":
            reasons[each.verdict, each.owner, each.source] += each.number
    for owner in seen.keys() - {owner for owner, _ in senders}:
        senders[owner, ""] = Counter()
    return SimpleNamespace(
        **{kind: kinds[kind] for kind in _COLOURS},
        senders=[
            SimpleNamespace(
                owner=owner,
                source=source,
                seen=seen.get(owner),
                **{
                    kind: numbers[kind]
                    for kind in ("batches", *_COLOURS, "after_release", "after_count")
                },
            )
            for (owner, source), numbers in sorted(senders.items())
        ],
        reasons=[
            SimpleNamespace(reason=reason, owner=owner, source=source, rows=rows)
            for (reason, owner, source), rows in reasons.most_common()
        ],
        chart={"config": charts.config(variable), "spec": _chart(hours, now_us)},
    )


def _chart(hours: Counter[tuple[int, str]], now_us: int) -> dict[str, Any]:
    """Stacked bars, one an hour, up to the hour that runs."""
    newest = now_us // MICROSECONDS_PER_HOUR
    first = newest - HOURS + 1
    rows: list[dict[str, Any]] = []
    for hour in range(first, newest + 1):
        bottom, starts = 0, to_moment(hour * MICROSECONDS_PER_HOUR)
        for kind in _COLOURS:
            number = hours[hour * MICROSECONDS_PER_HOUR, kind]
            rows.append(
                {
                    "left": hour - first + 0.1,
                    "right": hour - first + 0.9,
                    "bottom": bottom,
                    "top": bottom + number,
                    "rows": f"{number:,}",
                    "kind": kind,
                    "hour": f"{starts.day} {starts:%b, %H:%M} UTC",
                }
            )
            bottom += number
    ticks = {
        str(hour - first): f"{moment.day} {moment:%b}" if moment.hour == 0 else f"{moment:%H:%M}"
        for hour in range(first, newest + 1)
        if (moment := to_moment(hour * MICROSECONDS_PER_HOUR)).hour % 6 == 0
    }
    return {
        "description": f"Rows that arrived in each of the last {HOURS} hours",
        "width": "container",
        "height": "container",
        "data": {"values": rows},
        "params": [{"name": "labels", "value": ticks}],
        "mark": {"type": "rect"},
        "encoding": {
            "x": {
                "field": "left",
                "type": "quantitative",
                "scale": {"domain": [0, HOURS], "nice": False},
                "axis": {
                    "title": None,
                    "values": [int(tick) for tick in ticks],
                    "labelExpr": "labels[datum.value]",
                    "labelOverlap": "greedy",
                    "grid": False,
                },
            },
            "x2": {"field": "right"},
            "y": {
                "field": "bottom",
                "type": "quantitative",
                "scale": {"domainMin": 0, "domainMax": max(row["top"] for row in rows) or 1},
                "axis": {
                    "title": None,
                    "tickCount": 4,
                    "tickMinStep": 1,
                    "format": "~s",
                    "labelExpr": "datum.value === 0 ? '0' : datum.label",
                    "domain": False,
                    "ticks": False,
                },
            },
            "y2": {"field": "top"},
            "color": {
                "field": "kind",
                "type": "nominal",
                "scale": {
                    "domain": list(_COLOURS),
                    "range": [variable(colour) for colour in _COLOURS.values()],
                },
                "legend": {"title": None, "orient": "top", "symbolType": "square"},
            },
            "tooltip": [
                {"field": "hour", "type": "nominal", "title": "hour"},
                {"field": "kind", "type": "nominal", "title": "rows"},
                {"field": "rows", "type": "nominal", "title": "number"},
            ],
        },
    }


router = APIRouter()

_AUDIT_LINES = 25
Filter = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True)
class AuditFilter:
    """Which decisions are shown: `who` is part of a role, subject, key or address, `what` of an
    action or its target, `decision` a whole one. Empty ones let all pass."""

    who: str = ""
    what: str = ""
    decision: str = ""

    def __bool__(self) -> bool:
        return bool(self.who or self.what or self.decision)

    def wants(self, line: dict[str, Any]) -> bool:
        def has(part: str, *names: str) -> bool:
            return part.casefold() in " ".join(str(line.get(name, "")) for name in names).casefold()

        return (
            has(self.who, "role", "subject", "key_id", "address")
            and has(self.what, "action", "target")
            and self.decision in ("", line.get("decision"))
        )


_ALL = AuditFilter()
# What the ledger said of a campaign when it was asked.
Verified = tuple[Registered, Verification]


@router.get("/operations")
def show(request: Request, who: Filter = "", what: Filter = "", decision: Filter = "") -> Response:
    principal = signed_in(request)
    require(request, principal, Action.OPERATE)
    return _page(request, principal, None, AuditFilter(who, what, decision))


@router.post("/operations/verification")
def verify(request: Request, form: SentForm) -> Response:
    """Reads every entry of every scope again; takes a while for large ledgers."""
    backend, principal = backend_of(request), signed_in(request)
    require(request, principal, Action.VERIFY)
    campaigns = backend.campaigns.all()
    return _page(request, principal, [(each, each.campaign.verify()) for each in campaigns])


def _page(
    request: Request,
    principal: Principal,
    verified: list[Verified] | None,
    asked: AuditFilter = _ALL,
) -> Response:
    backend = backend_of(request)
    seen = last_seen(backend.store)
    arrivals = arrivals_of(backend.counts.by_hour(HOURS), now_us(backend.clock), seen)
    standings = backend.scheduler.standings()
    return page(
        request,
        "operations.html",
        principal,
        hours=HOURS,
        arrivals=arrivals,
        standings=standings,
        behind=sum(each.due > each.released for each in standings),
        verified=verified,
        disks=backend.disks(),
        asked=asked,
        audit=backend.audit.newest(_AUDIT_LINES, asked.wants),
        settings=_flat(backend.settings.without_secrets()),
    )


def _flat(settings: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {
        section: {
            key: "not set" if value in (None, {}) else str(value) for key, value in keys.items()
        }
        for section, keys in settings.items()
    }
