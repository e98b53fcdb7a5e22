"""The door of every request: who asks, and whether they may.

Must never: let a request pass without a decision in the audit log, or tell who may not read a
campaign that it exists. Only of those who have no key some refusals are counted together.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPBearer

from adsbpc.service.auth.audit import Decision
from adsbpc.service.auth.permissions import Action, Principal, allows
from adsbpc.service.auth.sessions import cookie_name
from adsbpc.service.backend import Backend
from adsbpc.service.http.problems import Problem
from adsbpc.service.releases.campaigns import Registered

WRONG_KEY = "the key is wrong, expired or revoked"
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


# Only says in the OpenAPI document how a key is sent; `principal_of` is what checks it.
bearer = HTTPBearer(
    auto_error=False,
    scheme_name="key",
    description="A key made by an operator: adsbpc_...",
)


class SignInNeeded(Exception):  # noqa: N818 (not an error: pages answer it with the way to sign in)
    """Nobody is signed in to the dashboard."""


def backend_of(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


def address_of(request: Request) -> str:
    """Of the client; behind a proxy, as the nearest one saw it."""
    if backend_of(request).settings.service.trust_proxy:
        # Of several the last is the proxy's own; a client may have sent the others.
        forwarded = ",".join(request.headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
        if forwarded:
            return forwarded
    return request.client.host if request.client else ""


def request_id_of(request: Request) -> str:
    return str(getattr(request.state, "request_id", ""))


def principal_of(request: Request) -> Principal:
    """Whose key, or whose session, the request carries."""
    headers = request.headers.getlist("authorization")
    if len(headers) > 1:
        # Whoever stands in between might have looked at the other one.
        raise _unknown(request, "there are two keys")
    if headers:
        return _by_key(request, headers[0])
    principal = session_of(request)
    if principal is None:
        raise _unknown(request, "no key")
    if request.method not in _SAFE_METHODS:
        check_same_origin(request)
    return principal


Caller = Annotated[Principal, Depends(principal_of)]


def _by_key(request: Request, header: str) -> Principal:
    scheme, _, text = header.partition(" ")
    principal = holder_of(request, text if scheme.lower() == "bearer" else "")
    if principal is None:
        raise _unknown(request, WRONG_KEY)
    return principal


def holder_of(request: Request, key: str) -> Principal | None:
    """Who holds this key. One that is not valid counts as a failure of its sender, and ends the
    request if there were too many; one that is valid passes, whatever others sent from there:
    nobody guesses 256 bits."""
    backend, address = backend_of(request), address_of(request)
    principal = backend.keys.authenticate(key.strip())
    if principal is None:
        _check_throttle(request)
        backend.throttle.record_failure(address)
    else:
        backend.throttle.record_success(address)
        _recognise(request)
    return principal


def _recognise(request: Request) -> None:
    """For the log of requests: this one is no stranger's."""
    request.state.is_known = True


def _check_throttle(request: Request) -> None:
    seconds = backend_of(request).throttle.refused_for(address_of(request))
    if seconds is not None:
        # The wrong keys before are in the audit log.
        raise Problem(
            429, "Too many requests", "Too many wrong keys came from this address",
            f"Try again in {seconds} seconds, with the right key", {"Retry-After": str(seconds)},
        )  # fmt: skip


def _unknown(request: Request, reason: str) -> Problem:
    note(request, None, "authenticate", refused=reason)
    return Problem(
        401, "Unauthorized", f"The request is not authenticated: {reason}",
        "Send the header Authorization: Bearer adsbpc_..., with a key that is valid",
        {"WWW-Authenticate": "Bearer"},
    )  # fmt: skip


def token_of(request: Request) -> str:
    name = cookie_name(backend_of(request).settings.over_tls)
    return request.cookies.get(name, "")


def session_of(request: Request) -> Principal | None:
    token = token_of(request)
    principal = backend_of(request).sessions.principal(token) if token else None
    if principal is not None:
        _recognise(request)
    return principal


def check_same_origin(request: Request) -> None:
    """Refuse what a page of another site may have made a browser send with its cookie."""
    if _is_same_origin(request):
        return
    note(request, session_of(request), "send", request.url.path, "not of this origin")
    raise Problem(
        403, "Forbidden",
        "This was sent by a page of another site, or by a browser that is too old",
        "Open the page on this server and send it from there, or send a key instead of a cookie",
    )  # fmt: skip


def _is_same_origin(request: Request) -> bool:
    sites = request.headers.getlist("sec-fetch-site")
    if sites:
        return sites == ["same-origin"]
    # Older browsers, and all of them over plain HTTP, say only which origin they are at.
    origins = request.headers.getlist("origin")
    own = backend_of(request).settings.service.public_url
    if own is None:
        return [origin.partition("://")[2] for origin in origins] == request.headers.getlist("host")
    return origins == [own.lower()]


def signed_in(request: Request) -> Principal:
    """For pages."""
    principal = session_of(request)
    if principal is None:
        raise SignInNeeded
    return principal


def require(
    request: Request, principal: Principal, action: Action, advertiser: str | None = None,
    target: str = "",
) -> None:  # fmt: skip
    """Let the request pass, or end it."""
    if allows(principal, action, advertiser):
        note(request, principal, action, target)
        return
    note(request, principal, action, target, "not this role's")
    raise Problem(
        403, "Forbidden", f"A key with the role {principal.role} may not do this",
        "Ask the operator for a key with another role",
    )  # fmt: skip


def campaign_for(
    request: Request, principal: Principal, campaign_id: str, action: Action
) -> Registered:
    found = backend_of(request).campaigns.get(campaign_id)
    readable = found is not None and allows(principal, Action.READ_CAMPAIGN, found.advertiser)
    if found is None or not readable:
        reason = "no such campaign" if found is None else "of another advertiser"
        note(request, principal, action, campaign_id, reason)
        raise Problem(
            404, "Not found", f"There is no campaign {campaign_id!r} for this key",
            "List the campaigns that there are: GET /v1/campaigns",
        )  # fmt: skip
    require(request, principal, action, found.advertiser, campaign_id)
    return found


def note(
    request: Request, principal: Principal | None, action: str, target: str = "", refused: str = ""
) -> None:
    """Write a decision to the audit log; `refused` says why, and is empty for what is allowed."""
    backend, address = backend_of(request), address_of(request)
    if principal is None and not backend.refused_strangers.may_write(address):
        return
    decision: Decision = "refused" if refused else "allowed"
    backend.audit.note(
        principal, action, target, decision, refused, request_id_of(request), address
    )
