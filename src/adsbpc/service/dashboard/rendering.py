"""Pages from templates, and what all of them have in common.

Must never: turn off escaping. Names of campaigns, publishers and keys may hold anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader

from adsbpc import __version__
from adsbpc.report.rendering import environment
from adsbpc.service.access import backend_of, token_of
from adsbpc.service.dashboard import assets, writing
from adsbpc.service.permissions import Action, allows
from adsbpc.service.principal import Principal, Role


@dataclass(frozen=True)
class Link:
    title: str
    path: str
    action: Action


_LINKS = (
    Link("Campaigns", "/campaigns", Action.LIST_CAMPAIGNS),
    Link("Operations", "/operations", Action.OPERATE),
    Link("Keys", "/operations/keys", Action.MANAGE_KEYS),
    Link("API", "/docs", Action.WHO_AM_I),
)


@cache
def _environment() -> Environment:
    made = environment(PackageLoader(__package__))
    made.globals |= {"asset": assets.url, "version": __version__}
    made.filters |= {
        "moment": writing.moment,
        "span": writing.span,
        "number": writing.number,
        "coded": writing.coded,
    }
    return made


def page(
    request: Request,
    template: str,
    principal: Principal | None,
    status: int = 200,
    **context: Any,
) -> HTMLResponse:
    """A page for whoever is signed in, or for nobody."""
    token = token_of(request) if principal else ""
    text = (
        _environment()
        .get_template(template)
        .render(
            principal=principal,
            links=[link for link in _LINKS if principal and allows(principal, link.action)],
            path=_current(request.url.path),
            csrf=backend_of(request).sessions.csrf(token) if token else "",
            **context,
        )
    )
    return HTMLResponse(text, status)


def home_of(principal: Principal) -> str:
    """Publishers have nothing to look at: they send impressions."""
    return "/docs" if principal.role is Role.PUBLISHER else "/campaigns"


def _current(path: str) -> str:
    """Which link of the bar a page belongs to."""
    known = [link.path for link in _LINKS if f"{path}/".startswith(f"{link.path}/")]
    return max(known, key=len, default="")
