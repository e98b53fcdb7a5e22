"""The form of a new campaign: what its fields mean in a campaign file, which one is wrong, and what
it says of a campaign that continues one that is over.

Values are checked where campaign files are, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, get_args
from zoneinfo import ZoneInfo

from adsbpc.errors import AdsbpcError, InputError, ReleaseError, SpecProblem
from adsbpc.model import PICO_RHO
from adsbpc.model.attribution_spec import FittedModelName, PlainModelName
from adsbpc.model.slots import starts_around, to_moment
from adsbpc.model.toml import place
from adsbpc.report.numbers import rounded_down
from adsbpc.service.backend import Backend
from adsbpc.service.dashboard import measure_form as measures
from adsbpc.service.dashboard.measure_form import Values, names_of, number_or_text, places_of
from adsbpc.service.logs import public_text
from adsbpc.service.releases.campaigns import Registered
from adsbpc.service.releases.course import Course

# Where each field stands in a campaign file, what people call it, and what it says at first.
_FIELDS = {
    "name": ("campaign", "name", "Name", ""),
    "scope": ("campaign", "scope", "Scope", ""),
    "advertiser": ("campaign", "advertiser", "Advertiser", ""),
    "start": ("campaign", "start", "First day", ""),
    "slot": ("campaign", "slot", "One release every", "1d"),
    "week_starts": ("campaign", "week_starts", "Weeks start on", "monday"),
    "slots": ("campaign", "slots", "How many", "31"),
    "timezone": ("campaign", "timezone", "Time zone", "UTC"),
    "publishers": ("campaign", "publishers", "Publishers", ""),
    "model": ("attribution", "model", "Attribution model", "last_touch"),
    "click_lookback": ("attribution", "click_lookback", "Clicks count for", "30d"),
    "view_lookback": ("attribution", "view_lookback", "Views count for", "1d"),
    "fit_rho": ("attribution.fit", "rho", "Budget of the fit (rho)", "0.05"),
    "fit_slots": ("attribution.fit", "slots", "Fit after slot", "7"),
    "mechanism": ("privacy", "mechanism", "Mechanism", "personal-budget"),
    "rho": ("privacy", "rho", "Privacy budget (rho)", "1"),
    "delta": ("privacy", "delta", "delta", "1e-6"),
    "scope_rho": ("privacy", "scope_rho", "Budget of the scope (rho)", ""),
    "heavy_user": ("privacy.personal_budget", "heavy_user", "Conversions of a heavy user", ""),
    "previous": ("privacy.personal_budget", "previous", "Continues", ""),
}
PLACES = {field: (section, key) for field, (section, key, _, _) in _FIELDS.items()}
LABELS = {field: label for field, (_, _, label, _) in _FIELDS.items()} | measures.labels()
# What the planner assumes and no campaign file has.
_ASSUMED = {"bound": "2", "count": "6"}
_NUMBERS = ("slots", "fit_rho", "fit_slots", "rho", "delta", "scope_rho", "heavy_user")
_MOST_PLANNED = 1_000


def defaults(today: date) -> dict[str, str]:
    first = {field: default for field, (_, _, _, default) in _FIELDS.items()}
    return {**first, **measures.defaults(), **_ASSUMED, "start": today.isoformat()}


def models() -> dict[str, tuple[str, ...]]:
    return {"From a journey alone": get_args(PlainModelName), "Fitted": get_args(FittedModelName)}


def content_of(values: Values) -> dict[str, Any]:
    """What a campaign file would say. Empty fields are left out of it."""
    left_out = {
        "week_starts": values["slot"] != "1w",
        "fit_rho": values["model"] not in get_args(FittedModelName),
        "fit_slots": values["model"] not in get_args(FittedModelName),
        "heavy_user": values["mechanism"] != "personal-budget",
        "previous": values["mechanism"] != "personal-budget",
    }
    content: dict[str, Any] = {"privacy": {}, **measures.content_of(values)}
    for field, (sections, key) in PLACES.items():
        text = values[field].strip()
        if left_out.get(field) or not text:
            continue
        section = content
        for part in sections.split("."):
            section = section.setdefault(part, {})
        section[key] = names_of(text) if field == "publishers" else _plain(field, text)
    return content


def values_of(content: Mapping[str, Any]) -> dict[str, str]:
    """The other way round: what a form says of a campaign, as far as it has fields for it."""
    found = measures.values_of(content)
    for field, (sections, key) in PLACES.items():
        section: Any = content
        for part in sections.split("."):
            section = section.get(part) or {}
        value = section.get(key)
        if value is not None:
            found[field] = "\n".join(value) if field == "publishers" else str(value)
    return found


def planned(values: Values) -> dict[str, Any]:
    """The same for a plan: what says nothing about errors may be missing, and as many publishers
    are made up as the planner is asked for."""
    wanted = values["count"].strip()[:6]
    count = min(int(wanted), _MOST_PLANNED) if wanted.isascii() and wanted.isdigit() else 0
    names = names_of(values["publishers"])[: count or None]
    taken = set(names)
    made_up = (f"publisher {number}" for number in range(1, _MOST_PLANNED + len(taken) + 1))
    fresh = (name for name in made_up if name not in taken)
    names += [next(fresh) for _ in range(max(count, 1) - len(names))]
    missing = {"name": "planned", "advertiser": "advertiser", "scope": "default"}
    filled = {field: values[field].strip() or other for field, other in missing.items()}
    return content_of({**values, **filled, "publishers": "\n".join(names)})


def bound_of(values: Values) -> float | None:
    """How much one user is assumed to have on a slot; personal budgets say it themselves."""
    try:
        bound = float(values["bound"])
    except ValueError:
        return None
    return bound if values["mechanism"] == "adsbpc" and 1 <= bound <= 1_000_000 else None


def _plain(field: str, text: str) -> str | int | float:
    return number_or_text(text) if field in _NUMBERS else text


@dataclass(frozen=True)
class Wrong:
    """A problem and the field that it is about, if it is about one."""

    field: str
    text: str


def wrongs_of(error: AdsbpcError, values: Values) -> list[Wrong]:
    """Why a campaign was refused, problem by problem."""
    if isinstance(error, InputError):
        fields = {place(*keys): field for field, keys in PLACES.items()} | places_of(values)
        return [_wrong(problem, fields.get(problem.path, "")) for problem in error.problems]
    return [Wrong("", line.strip()) for line in public_text(error).splitlines()]


def _wrong(problem: SpecProblem, field: str) -> Wrong:
    advice = problem.advice
    return Wrong(field, advice[:1].upper() + advice[1:] if field else str(problem))


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
    found = values_of(registered.content)
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
    # Without any, it is refused when it is created, with the reason.
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
