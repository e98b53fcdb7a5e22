"""What a campaign may say that is sent to a server, and how it is stored.

Where events are, which engine reads them and which ledger is charged is the server's to say, and
no key of a campaign may name a file of the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from fractions import Fraction
from typing import Any

from adsbpc.campaign import Campaign
from adsbpc.errors import BudgetError, SpecError
from adsbpc.ledger import Ledger
from adsbpc.model import PICO_RHO, CampaignSpec
from adsbpc.model.publisher_list import publisher_file
from adsbpc.model.release_spec import stored_privacy
from adsbpc.model.toml import place

_SECTIONS = (
    "campaign", "attribution", "privacy", "workload", "checks", "measure", "dimensions", "lift",
    "expected",
)  # fmt: skip
_SERVERS_OWN = ("engine", "ledger", "storage")
# What a campaign may say of events: how long it waits for late ones.
OF_EVENTS = {"settle", "wait"}
# Keys that would make the server read a file that somebody names.
_FILES = (
    ("attribution", "fit", "holdout"),
    ("attribution", "fit", "previous"),
    ("attribution", "fit", "parameters"),
)
# Who is in which arm follows from a key, which the server keeps.
_ARMS = {
    "key_file": "the server makes the key of a trial and keeps it. Remove it: who assigns arms "
    "reads the key at GET /v1/campaigns/{campaign}/assignment",
    "table": "the server has no tables of people. Remove it, and give [lift.shares]; or run the "
    "campaign with adsbpc release",
}
PREVIOUS = ("privacy", "personal_budget", "previous")
WHERE = "the campaign"


def check_capitals(key: str, name: str, known: Iterable[str]) -> None:
    """Refuse a second way to write a name: of the ledger's scopes only one could ever release."""
    for other in known:
        if other != name and other.casefold() == name.casefold():
            raise SpecError(
                f"there is a campaign with {key} = {other!r}, which differs in capitals only",
                place("campaign", key),
                repr(name),
                f"Write {other!r}, or take a name that nobody mistakes for it",
            )


def check_keys(content: dict[str, Any]) -> None:
    for section in _SERVERS_OWN:
        if section in content:
            raise SpecError(
                f"{WHERE}: [{section}] is decided by the server. Remove it: events come by "
                "POST /v1/impressions and /v1/conversions"
            )
    events = content.get("events", {})
    if not isinstance(events, dict) or not events.keys() <= OF_EVENTS:
        raise SpecError(
            f"{WHERE}: of [events] a campaign says settle and wait, and the rest is the server's. "
            "Remove it: events come by POST /v1/impressions and /v1/conversions"
        )
    if "spend" in content:
        raise SpecError(
            f"{WHERE}: [spend] names a file. Remove it: spend comes by PUT "
            "/v1/campaigns/{campaign}/spend"
        )
    for key, why in _ARMS.items():
        if given(content, ("lift", key)):
            raise SpecError(why, place("lift", key), repr(content["lift"][key]))
    named = [".".join(path) for path in _FILES if given(content, path)]
    if publisher_file(content) is not None:
        named.append("campaign.publishers")
    workload = content.get("workload")
    for section in workload if isinstance(workload, list) else []:
        if given(section, ("matrix",)):
            named.append("workload.matrix")
    if named:
        raise SpecError(
            f"{WHERE}: {named[0]} names a file, and the server reads no file that a campaign "
            "names. Remove it, or run the campaign with adsbpc release"
        )


def given(content: Any, path: tuple[str, ...]) -> bool:
    for part in path:
        if not isinstance(content, dict) or part not in content:
            return False
        content = content[part]
    return content is not None


def completed(content: dict[str, Any]) -> dict[str, Any]:
    """With dates, which JSON has as texts, and the scope of its advertiser where it names none."""
    section = content.get("campaign")
    if not isinstance(section, dict):
        return content
    section = dict(section)
    for key in ("start", "end"):
        if isinstance(section.get(key), str):
            try:
                section[key] = date.fromisoformat(section[key])
            except ValueError:
                raise SpecError(
                    "expected a day such as 2026-03-01", place("campaign", key), repr(section[key])
                ) from None
    if "advertiser" in section:
        section.setdefault("scope", section["advertiser"])
    return {**content, "campaign": section}


def content_of(spec: CampaignSpec) -> dict[str, Any]:
    """What was understood of a campaign, which reads the same for ever."""
    content = spec.model_dump(mode="json", include=set(_SECTIONS), exclude_unset=True)
    if spec.lift is not None:
        # Where the key is, is the server's.
        del content["lift"]["key_file"]
    if spec.events.settle is not None:
        content["events"] = spec.events.model_dump(mode="json", include=OF_EVENTS)
    return content if spec.privacy is None else content | {"privacy": stored_privacy(spec.privacy)}


def check_scope(ledger: Ledger, spec: CampaignSpec, waiting: Sequence[CampaignSpec]) -> None:
    """Refuse a campaign that would not be let in after those of its scope that wait to start, the
    oldest first, or that would keep one of them out.

    A campaign reserves its budget in the ledger with its first slot. Two that wait for theirs must
    not both be let in where there is room for one: the second would fail days later.
    """
    if not waiting:
        return
    own, first, *others = (Campaign(each).promise for each in (spec, *waiting))
    scope, limit = spec.campaign.scope, first.scope_rho
    reserved = sum((each.guarantee.rho for each in others), first.guarantee.rho)
    if ledger.exists():
        reserved += Fraction(ledger.reserved(scope), PICO_RHO)
    if reserved + own.guarantee.rho > limit:
        raise BudgetError(
            f"scope {scope!r} has no room for campaign {spec.campaign.name!r} beside those that "
            "have reserved or will",
            float(own.guarantee.rho), float(reserved), float(limit - reserved),
            "Lower [privacy] rho. Another scope is another promise to the same people",
        )  # fmt: skip
    # Whichever starts first opens the scope, with its own terms for all.
    if own.scope_rho != limit:
        raise SpecError(
            f"scope {scope!r} is to have a limit of {float(limit):.12g}, as campaign "
            f"{waiting[0].campaign.name!r} says, and not of {float(own.scope_rho):.12g}",
            place("privacy", "scope_rho"),
            to_do=f"Say scope_rho = {float(limit):.12g}",
        )
    if own.guarantee.adjacency != first.guarantee.adjacency:
        raise SpecError(
            f"[privacy] adjacency = {own.guarantee.adjacency.value!r}: campaign "
            f"{waiting[0].campaign.name!r} of scope {scope!r} has "
            f"{first.guarantee.adjacency.value!r}, and the two do not add up. Say that one, or "
            "take another scope"
        )
