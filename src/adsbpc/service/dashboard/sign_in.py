"""Signing in with a key, and out again."""

from __future__ import annotations

import re
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from adsbpc.service.access import (
    address_of,
    backend_of,
    check_throttle,
    note,
    session_of,
    signed_in,
    token_of,
)
from adsbpc.service.dashboard.forms import SentForm, check_token
from adsbpc.service.dashboard.rendering import home_of, page
from adsbpc.service.problems import Problem

router = APIRouter()

# A path of this server and nothing else: no other host can be the next page.
_PATH = re.compile(r"/(?!/)[A-Za-z0-9/_-]*")
_WRONG = "This key is wrong, expired or revoked."


def to_sign_in(request: Request) -> Response:
    """Where pages send who is not signed in; afterwards the page that was asked for opens."""
    path = request.url.path
    asked = f"?next={quote(path)}" if request.method == "GET" and _is_page(path) else ""
    return RedirectResponse(f"/sign-in{asked}", 303)


@router.get("/sign-in")
def show(request: Request, next: str = "") -> Response:
    principal = session_of(request)
    if principal is not None:
        return RedirectResponse(next if _is_page(next) else home_of(principal), 303)
    return page(request, "sign-in.html", None, wrong="", next=next if _is_page(next) else "")


@router.post("/sign-in")
def sign_in(request: Request, form: SentForm) -> Response:
    backend = backend_of(request)
    asked = form.get("next", "")
    if not _is_page(asked):
        asked = ""
    try:
        check_throttle(request)
    except Problem as problem:
        wrong = f"{problem.detail}. {problem.to_do}."
        refusal = page(request, "sign-in.html", None, problem.status, wrong=wrong, next=asked)
        refusal.headers.update(problem.headers)
        return refusal
    principal = backend.keys.authenticate(form.get("key", "").strip())
    if principal is None:
        backend.throttle.failed(address_of(request))
        note(request, None, "sign in", "", "refused", "the key is wrong, expired or revoked")
        return page(request, "sign-in.html", None, 401, wrong=_WRONG, next=asked)
    backend.throttle.succeeded(address_of(request))
    note(request, principal, "sign in", "", "allowed", "")
    answer = RedirectResponse(asked or home_of(principal), 303)
    cookie = backend.sessions.cookie(
        backend.sessions.open(principal.key_id), backend.settings.over_tls
    )
    answer.headers.append("Set-Cookie", cookie)
    return answer


@router.post("/sign-out")
def sign_out(request: Request, form: SentForm) -> Response:
    backend, principal = backend_of(request), signed_in(request)
    check_token(request, principal, form)
    backend.sessions.close(token_of(request))
    note(request, principal, "sign out", "", "allowed", "")
    answer = RedirectResponse("/sign-in", 303)
    answer.headers.append("Set-Cookie", backend.sessions.expired_cookie(backend.settings.over_tls))
    return answer


def _is_page(path: str) -> bool:
    return _PATH.fullmatch(path) is not None and path not in ("/", "/sign-in", "/sign-out")
