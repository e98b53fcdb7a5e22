"""The form of a new campaign: what its fields mean in a campaign file, and which one is wrong.

Values are checked where campaign files are, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, get_args

from adsbpc.errors import AdsbpcError, InputError, SpecProblem
from adsbpc.model.attribution_spec import FittedModelName, PlainModelName
from adsbpc.model.toml import place
from adsbpc.service.dashboard import measure_form as measures
from adsbpc.service.dashboard.measure_form import Values, names_of, number_or_text, places_of
from adsbpc.service.logs import public_text

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
