"""Pages from templates, how they write things, and the forms that they send.

Must never: turn off escaping, because names of campaigns, publishers and keys may hold anything; or
let a form act that another site could have made the browser send.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from adsbpc import __version__
from adsbpc.model.slots import to_moment
from adsbpc.report.rendering import environment
from adsbpc.service.auth.access import check_same_origin, request_id_of, session_of
from adsbpc.service.auth.permissions import Action, Principal, Role, allows
from adsbpc.service.dashboard import assets
from adsbpc.service.http.bodies import media_type_of
from adsbpc.service.http.problems import Problem

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def moment(value: int | str | datetime) -> Markup:
    """In UTC, for people and for programs.

    >>> moment(0)
    Markup('<time datetime="1970-01-01T00:00:00+00:00">1 Jan 1970, 00:00 UTC</time>')
    """
    if isinstance(value, int):
        value = to_moment(value)
    elif isinstance(value, str):
        value = datetime.fromisoformat(value)
    found = value.astimezone(UTC)
    shown = f"{found.day} {found:%b %Y, %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(
        found.isoformat(timespec="seconds"), shown
    )


def span(seconds: float) -> str:
    """Roughly, in one unit.

    >>> span(5400), span(90_000), span(1), span(0)
    ('2 hours', '1 day', '1 second', '0 seconds')
    """
    size, unit = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    count = int(seconds / size + 0.5)
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def in_bytes(number: int) -> str:
    """Roughly, in one unit.

    >>> in_bytes(512), in_bytes(3 * 2**20), in_bytes(5 * 2**40)
    ('512 bytes', '3.0 MiB', '5.0 TiB')
    """
    size, unit = float(number), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{number} bytes" if unit == "bytes" else f"{size:.1f} {unit}"


def coded(text: str) -> Markup:
    """What stands between backticks as code.

    >>> coded("send `a<b`, then wait")
    Markup('send <code>a&lt;b</code>, then wait')
    """
    parts = enumerate(text.split("`"))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part for place, part in parts
    )


@dataclass(frozen=True)
class Link:
    title: str
    path: str
    action: Action


_LINKS = (
    Link("Campaigns", "/campaigns", Action.LIST_CAMPAIGNS),
    Link("Deliveries", "/deliveries", Action.READ_DELIVERIES),
    Link("Operations", "/operations", Action.OPERATE),
    Link("Keys", "/operations/keys", Action.MANAGE_KEYS),
    Link("API", "/docs", Action.WHO_AM_I),
)


@cache
def _environment() -> Environment:
    made = environment(PackageLoader(__package__))
    made.globals |= {"asset": assets.url, "version": __version__}
    made.filters |= {
        "moment": moment,
        "span": span,
        "bytes": in_bytes,
        "number": "{:,}".format,
        "coded": coded,
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
    found = _environment().get_template(template)
    text = found.render(
        principal=principal,
        links=[link for link in _LINKS if principal and allows(principal, link.action)],
        path=_current(request.url.path),
        **context,
    )
    return HTMLResponse(text, status)


def fragment(template: str, **context: Any) -> Markup:
    """A part of a page that is the same for everybody who may see it."""
    return Markup(_environment().get_template(template).render(context))


def home_of(principal: Principal) -> str:
    """Publishers look at what they sent, all others at what was measured."""
    return "/deliveries" if principal.role is Role.PUBLISHER else "/campaigns"


def _current(path: str) -> str:
    """Which link of the bar a page belongs to."""
    known = [link.path for link in _LINKS if f"{path}/".startswith(f"{link.path}/")]
    return max(known, key=len, default="")


# What the API says of paths that lead nowhere is for programs.
_WRONG_ADDRESS = "Check the address, or start again from the first page"


def error_page(request: Request, problem: Problem) -> HTMLResponse:
    """The same problem as the API tells, for a person."""
    # What failed may be the store that knows who is signed in.
    principal = None if problem.status >= 500 else session_of(request)
    answer = page(
        request,
        "error.html",
        principal,
        problem.status,
        problem=problem,
        to_do=_WRONG_ADDRESS if problem.status == 404 else problem.to_do,
        request_id=request_id_of(request),
        home=home_of(principal) if principal else "/sign-in",
    )
    answer.headers.update(problem.headers)
    return answer


_MOST_BYTES = 256 * 1024
_MOST_FIELDS = 100
_MEDIA_TYPE = "application/x-www-form-urlencoded"


async def _read(request: Request) -> dict[str, str]:
    check_same_origin(request)
    if media_type_of(request) != _MEDIA_TYPE:
        raise Problem(
            415, "Unsupported media type", f"A form comes as {_MEDIA_TYPE}",
            "Send it from the page, or use the API",
        )  # fmt: skip
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise Problem(
                413, "Content too large", f"A form has at most {_MOST_BYTES:,} bytes",
                "Send less, for example fewer publishers",
            )  # fmt: skip
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            max_num_fields=_MOST_FIELDS,
            errors="strict",
        )
    except ValueError:
        raise Problem(
            400, "Bad request", "The form cannot be read", "Reload the page and send it again"
        ) from None
    return dict(pairs)


SentForm = Annotated[dict[str, str], Depends(_read)]
