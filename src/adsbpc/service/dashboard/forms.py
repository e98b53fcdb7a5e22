"""Forms that pages send: small, of one encoding, and made by a page of this server.

Must never: let a form act that another site could have made the browser send.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from adsbpc.service.access import backend_of, note, token_of
from adsbpc.service.principal import Principal
from adsbpc.service.problems import Problem

_MOST_BYTES = 256 * 1024
_MOST_FIELDS = 100
_MEDIA_TYPE = "application/x-www-form-urlencoded"
# What browsers say about where a request comes from, if it is a page of this server.
_OWN_SITE = ("", "same-origin", "none")


async def _read(request: Request) -> dict[str, str]:
    if request.headers.get("sec-fetch-site", "") not in _OWN_SITE:
        note(request, None, "form", request.url.path, "refused", "sent by another site")
        raise Problem(
            403, "Forbidden", "This form was sent by a page of another site",
            "Open the page on this server and send it from there",
        )  # fmt: skip
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != _MEDIA_TYPE:
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


def check_token(request: Request, principal: Principal, form: dict[str, str]) -> None:
    """Refuse a form that was not made for this session."""
    holds = backend_of(request).sessions.csrf_holds(token_of(request), form.get("csrf", ""))
    if not holds:
        note(request, principal, "csrf", request.url.path, "refused", "no valid token")
        raise Problem(
            403, "Forbidden", "This form was not made for your session, or the session is new",
            "Go back, reload the page and send it again",
        )  # fmt: skip
