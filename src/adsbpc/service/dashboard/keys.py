"""Signing in with a key, and out again; and the operator's page of keys.

A key's text is shown once, on the page after its making. Until then the browser that made it holds
it in a cookie, so that the page can be loaded again without making another; the server keeps none.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from adsbpc.errors import SpecError
from adsbpc.model.durations import MICROSECONDS_PER_DAY
from adsbpc.service.auth.access import (
    WRONG_KEY,
    backend_of,
    holder_of,
    note,
    require,
    session_of,
    signed_in,
    token_of,
)
from adsbpc.service.auth.permissions import Action, Principal, Role
from adsbpc.service.auth.sessions import set_cookie
from adsbpc.service.clock import SystemClock, now_us
from adsbpc.service.dashboard.pages import SentForm, home_of, page
from adsbpc.service.http.problems import Problem

router = APIRouter()

# A path of this server and nothing else: no other host can be the next page.
_PATH = re.compile(r"/(?!/)[A-Za-z0-9/_-]*")
_WRONG = "This key is wrong, expired or revoked."


def to_sign_in(request: Request) -> Response:
    """Where pages send who is not signed in; afterwards the page that was asked for opens."""
    path = request.url.path
    asked = f"?next={quote(path)}" if request.method == "GET" and _is_page(path) else ""
    return RedirectResponse(f"/sign-in{asked}", 303)


@router.get("/")
def home(request: Request) -> Response:
    return RedirectResponse(home_of(signed_in(request)), 303)


@router.get("/sign-in")
def show_sign_in(request: Request, next: str = "") -> Response:
    principal = session_of(request)
    if principal is not None:
        return RedirectResponse(next if _is_page(next) else home_of(principal), 303)
    return page(request, "sign-in.html", None, wrong="", next=next if _is_page(next) else "")


@router.post("/sign-in")
def sign_in(request: Request, form: SentForm) -> Response:
    backend = backend_of(request)
    asked = form.get("next", "") if _is_page(form.get("next", "")) else ""
    try:
        principal = holder_of(request, form.get("key", ""))
    except Problem as problem:
        wrong = f"{problem.detail}. {problem.to_do}."
        refusal = page(request, "sign-in.html", None, problem.status, wrong=wrong, next=asked)
        refusal.headers.update(problem.headers)
        return refusal
    if principal is None:
        note(request, None, "sign in", refused=WRONG_KEY)
        return page(request, "sign-in.html", None, 401, wrong=_WRONG, next=asked)
    note(request, principal, "sign in")
    answer = RedirectResponse(asked or home_of(principal), 303)
    cookie = backend.sessions.cookie(
        backend.sessions.open(principal.key_id), backend.settings.over_tls
    )
    answer.headers.append("Set-Cookie", cookie)
    return answer


@router.post("/sign-out")
def sign_out(request: Request, form: SentForm) -> Response:
    backend, principal = backend_of(request), signed_in(request)
    backend.sessions.close(token_of(request))
    note(request, principal, "sign out")
    answer = RedirectResponse("/sign-in", 303)
    answer.headers.append("Set-Cookie", backend.sessions.expired_cookie(backend.settings.over_tls))
    return answer


def _is_page(path: str) -> bool:
    return _PATH.fullmatch(path) is not None and path not in ("/", "/sign-in", "/sign-out")


# Days that a key may live, and what the form calls that.
LIFETIMES = {"30": "30 days", "90": "90 days", "365": "1 year", "": "until it is revoked"}
_PLACE = "/operations/keys"
_MADE, _SHOWN_WITHIN_SECONDS = "adsbpc-made", 60
_EMPTY = {"role": "publisher", "subject": "", "label": "", "days": "365"}


@router.get("/operations/keys")
def show(request: Request) -> Response:
    principal = signed_in(request)
    require(request, principal, Action.MANAGE_KEYS)
    made = request.cookies.get(_MADE, "")
    answer = _page(request, principal, _EMPTY, made=made)
    if made:
        answer.headers.append("Set-Cookie", _made_cookie(request, "", 0))
    return answer


@router.post("/operations/keys")
def create(request: Request, form: SentForm) -> Response:
    backend, principal = backend_of(request), signed_in(request)
    values = {field: form.get(field, "").strip() for field in _EMPTY}
    require(request, principal, Action.MANAGE_KEYS, target=f"{values['role']}:{values['subject']}")
    if values["role"] not in set(Role) or values["days"] not in LIFETIMES:
        raise Problem(
            422, "Unprocessable content", "The form has a role or lifetime that does not exist",
            "Reload the page and choose again",
        )  # fmt: skip
    days = values["days"]
    expires_us = now_us(SystemClock()) + int(days) * MICROSECONDS_PER_DAY if days else None
    try:
        record, text = backend.keys.create(
            Role(values["role"]), values["subject"], values["label"], expires_us
        )
    except SpecError as error:
        return _page(request, principal, values, str(error), status=422)
    note(request, principal, "key made", record.key_id)
    answer = RedirectResponse(_PLACE, 303)
    answer.headers.append("Set-Cookie", _made_cookie(request, text, _SHOWN_WITHIN_SECONDS))
    return answer


def _made_cookie(request: Request, text: str, seconds: int) -> str:
    return set_cookie(_MADE, text, seconds, backend_of(request).settings.over_tls, _PLACE)


@router.post("/operations/keys/{key_id}/revocation")
def revoke(request: Request, form: SentForm, key_id: str) -> Response:
    backend, principal = backend_of(request), signed_in(request)
    require(request, principal, Action.MANAGE_KEYS, target=key_id)
    if not backend.keys.revoke(key_id):
        raise Problem(
            404, "Not found", "There is no such key, or it was revoked before",
            "Look at the list of keys",
        )  # fmt: skip
    backend.sessions.close_all(key_id)
    note(request, principal, "key revoked", key_id)
    return RedirectResponse(_PLACE, 303)


def _page(
    request: Request,
    principal: Principal,
    values: dict[str, str],
    wrong: str = "",
    made: str = "",
    status: int = 200,
) -> Response:
    now = now_us(SystemClock())
    keys = backend_of(request).keys
    known = keys.list()[::-1]
    # Whatever else a cookie holds is no key.
    holder = keys.authenticate(made)
    labels = [each.label for each in known if holder and each.key_id == holder.key_id]
    records = [(record, record.state(now)) for record in known]
    # Keys that work come first.
    records.sort(key=lambda pair: pair[1] != "valid")
    return page(
        request,
        "keys.html",
        principal,
        status,
        values=values,
        wrong=wrong,
        made=made if holder else "",
        made_label="".join(labels),
        records=records,
        roles=list(Role),
        lifetimes=LIFETIMES,
    )
