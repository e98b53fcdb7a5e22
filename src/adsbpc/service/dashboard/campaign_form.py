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
from adsbpc.service.logs import public_text

# Where each field stands in a campaign file.
PLACES = {
    "name": ("campaign", "name"),
    "scope": ("campaign", "scope"),
    "advertiser": ("campaign", "advertiser"),
    "start": ("campaign", "start"),
    "slot": ("campaign", "slot"),
    "slots": ("campaign", "slots"),
    "timezone": ("campaign", "timezone"),
    "publishers": ("campaign", "publishers"),
    "metric": ("campaign", "metric"),
    "value_cap": ("campaign", "value_cap"),
    "model": ("attribution", "model"),
    "click_lookback": ("attribution", "click_lookback"),
    "view_lookback": ("attribution", "view_lookback"),
    "fit_rho": ("attribution.fit", "rho"),
    "fit_slots": ("attribution.fit", "slots"),
    "mechanism": ("privacy", "mechanism"),
    "rho": ("privacy", "rho"),
    "delta": ("privacy", "delta"),
    "scope_rho": ("privacy", "scope_rho"),
    "heavy_user": ("privacy.personal_budget", "heavy_user"),
}
# What the planner assumes and no campaign file has.
ASSUMED = {"bound": "2", "count": "6"}
LABELS = {
    "name": "Name",
    "scope": "Scope",
    "advertiser": "Advertiser",
    "start": "First day",
    "slot": "One release every",
    "slots": "How many",
    "timezone": "Time zone",
    "publishers": "Publishers",
    "metric": "Metric",
    "value_cap": "Most that one conversion counts",
    "model": "Attribution model",
    "click_lookback": "Clicks count for",
    "view_lookback": "Views count for",
    "fit_rho": "Budget of the fit (rho)",
    "fit_slots": "Fit after slot",
    "mechanism": "Mechanism",
    "rho": "Privacy budget (rho)",
    "delta": "delta",
    "scope_rho": "Budget of the scope (rho)",
    "heavy_user": "Conversions of a heavy user",
}
_FITTED_ONLY, _VALUE_ONLY = ("fit_rho", "fit_slots"), ("value_cap",)
_PERSONAL_ONLY = ("heavy_user",)
_MOST_PLANNED = 1_000

Values = Mapping[str, str]


def defaults(today: date) -> dict[str, str]:
    return {
        **dict.fromkeys(PLACES, ""),
        **ASSUMED,
        "start": today.isoformat(),
        "slot": "1d",
        "slots": "31",
        "timezone": "UTC",
        "metric": "conversions",
        "model": "last_touch",
        "click_lookback": "30d",
        "view_lookback": "1d",
        "fit_rho": "0.05",
        "fit_slots": "7",
        "mechanism": "personal-budget",
        "rho": "1",
        "delta": "1e-6",
        "heavy_user": "30",
    }


def models() -> dict[str, tuple[str, ...]]:
    return {"From a journey alone": get_args(PlainModelName), "Fitted": get_args(FittedModelName)}


def content_of(values: Values) -> dict[str, Any]:
    """What a campaign file would say. Empty fields are left out of it."""
    left_out = set(_FITTED_ONLY) if values["model"] not in get_args(FittedModelName) else set()
    if values["metric"] != "value":
        left_out.update(_VALUE_ONLY)
    if values["mechanism"] != "personal-budget":
        left_out.update(_PERSONAL_ONLY)
    content: dict[str, Any] = {"campaign": {}, "privacy": {}}
    for field, (sections, key) in PLACES.items():
        text = values[field].strip()
        if field in left_out or not text:
            continue
        section = content
        for part in sections.split("."):
            section = section.setdefault(part, {})
        section[key] = names_of(text) if field == "publishers" else _plain(field, text)
    return content


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


def names_of(text: str) -> list[str]:
    """One a line."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _plain(field: str, text: str) -> str | int | float:
    """Numbers as numbers; what is none is refused where campaign files are checked."""
    if field in (
        "slots",
        "value_cap",
        "fit_rho",
        "fit_slots",
        "rho",
        "delta",
        "scope_rho",
        "heavy_user",
    ):
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
    return text


@dataclass(frozen=True)
class Wrong:
    """A problem and the field that it is about, if it is about one."""

    field: str
    text: str


def wrongs_of(error: AdsbpcError) -> list[Wrong]:
    """Why a campaign was refused, problem by problem."""
    if isinstance(error, InputError):
        return [_wrong(problem) for problem in error.problems]
    return [Wrong("", line.strip()) for line in public_text(error).splitlines()]


def _wrong(problem: SpecProblem) -> Wrong:
    found = (field for field, keys in PLACES.items() if place(*keys) == problem.path)
    field, advice = next(found, ""), problem.advice
    return Wrong(field, advice[:1].upper() + advice[1:] if field else str(problem))
