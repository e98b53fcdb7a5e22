"""A campaign that is over goes on as a new one: which ones can, and what the form says of it."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

from adsbpc.errors import ReleaseError
from adsbpc.model import PICO_RHO
from adsbpc.model.slots import starts_around, to_moment
from adsbpc.report.numbers import rounded_down
from adsbpc.service.backend import Backend
from adsbpc.service.dashboard import campaign_form
from adsbpc.service.releases.campaigns import Registered
from adsbpc.service.releases.course import Course


def continuable(backend: Backend) -> dict[str, str]:
    """Campaigns whose releases say where personal budgets may start: what to call each, by id."""
    return {
        each.campaign_id: f"{each.name} ({each.advertiser})"
        for each in backend.campaigns.all()
        if _has_learned(each) and _is_over(backend.campaigns.course(each))
    }


def continued(backend: Backend, registered: Registered) -> dict[str, str]:
    """What the form says of the campaign that continues one: the same, from where that one ended,
    with what is left of its budget and its slots."""
    course, section = backend.campaigns.course(registered), registered.spec.campaign
    if not _is_over(course):
        raise ReleaseError(
            f"campaign {registered.name!r}: still runs, and a new one continues what is over. "
            "Close it first"
        )
    found = campaign_form.values_of(registered.content)
    left = section.slots - course.stage.last_slot
    found |= {
        "name": _next_name(section.name),
        "scope": section.scope,
        "start": _start(registered, course, backend.clock.now().date()).isoformat(),
        "slots": str(left or section.slots),
        "count": str(len(section.publishers)),
        "previous": registered.campaign_id if _has_learned(registered) else "",
        # That of the one before is in what it has learned.
        "heavy_user": "",
    }
    own, limit = int(registered.campaign.promise.guarantee.rho * PICO_RHO), course.stage.scope_limit
    room = limit - backend.campaigns.ledger.reserved(registered.scope)
    # Without any, it is refused when it is created, and why is told there.
    proposed = rounded_down(Fraction(room, PICO_RHO), 4) if 0 < room < own else _rho(own)
    return {**found, "scope_rho": _rho(limit), "rho": proposed}


def _is_over(course: Course) -> bool:
    return course.stage.started and course.stage.last_slot >= course.slots


def _has_learned(registered: Registered) -> bool:
    privacy = registered.spec.privacy
    return privacy is not None and privacy.mechanism == "personal-budget"


def _start(registered: Registered, course: Course, today: date) -> date:
    """The first day on which a slot may start, from the end of the last one on."""
    section = registered.spec.campaign
    ended = to_moment(registered.spec.grid.boundaries[course.slots])
    day = max(today, ended.astimezone(ZoneInfo(section.timezone)).date())
    first, following = starts_around(day, section.slot, section.week_starts)
    return first if first >= day else following


def _next_name(name: str) -> str:
    """
    >>> _next_name("spring"), _next_name("spring-9")
    ('spring-2', 'spring-10')
    """
    numbered = re.fullmatch(r"(.*)-(\d{1,6})", name, re.DOTALL)
    return f"{numbered[1]}-{int(numbered[2]) + 1}" if numbered else f"{name}-2"


def _rho(pico_rho: int) -> str:
    """As somebody wrote it."""
    return f"{Decimal(pico_rho).scaleb(-12).normalize():f}"
