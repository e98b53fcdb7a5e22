"""The operator's page of keys: made, listed, revoked. A key's text is on the page that answers its
making, and on no other."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from adsbpc.errors import SpecError
from adsbpc.model.durations import MICROSECONDS_PER_DAY
from adsbpc.service.access import backend_of, note, require, signed_in
from adsbpc.service.clock import SystemClock, now_us
from adsbpc.service.dashboard.forms import SentForm, check_token
from adsbpc.service.dashboard.rendering import page
from adsbpc.service.permissions import Action
from adsbpc.service.principal import Principal, Role
from adsbpc.service.problems import Problem

router = APIRouter()

# Days that a key may live, and what the form calls that.
LIFETIMES = {"30": "30 days", "90": "90 days", "365": "1 year", "": "until it is revoked"}
_EMPTY = {"role": "publisher", "subject": "", "label": "", "days": "365"}


@router.get("/operations/keys")
def show(request: Request) -> Response:
    principal = signed_in(request)
    require(request, principal, Action.MANAGE_KEYS)
    return _page(request, principal, _EMPTY)


@router.post("/operations/keys")
def create(request: Request, form: SentForm) -> Response:
    backend, principal = backend_of(request), signed_in(request)
    check_token(request, principal, form)
    values = {field: form.get(field, "").strip() for field in _EMPTY}
    require(request, principal, Action.MANAGE_KEYS, target=f"{values['role']}:{values['subject']}")
    if values["role"] not in set(Role) or values["days"] not in LIFETIMES:
        raise Problem(
            422, "Unprocessable content", "The form has a role or lifetime that there is not",
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
    note(request, principal, "key made", record.key_id, "allowed", "")
    return _page(request, principal, _EMPTY, made=text, made_label=record.label, status=201)


@router.post("/operations/keys/{key_id}/revocation")
def revoke(request: Request, form: SentForm, key_id: str) -> Response:
    backend, principal = backend_of(request), signed_in(request)
    check_token(request, principal, form)
    require(request, principal, Action.MANAGE_KEYS, target=key_id)
    if not backend.keys.revoke(key_id):
        raise Problem(
            404, "Not found", "There is no such key, or it was revoked before",
            "Look at the list of keys",
        )  # fmt: skip
    backend.sessions.close_all(key_id)
    note(request, principal, "key revoked", key_id, "allowed", "")
    return RedirectResponse("/operations/keys", 303)


def _page(
    request: Request,
    principal: Principal,
    values: dict[str, str],
    wrong: str = "",
    made: str = "",
    made_label: str = "",
    status: int = 200,
) -> Response:
    now = now_us(SystemClock())
    known = reversed(backend_of(request).keys.list())
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
        made=made,
        made_label=made_label,
        records=records,
        roles=list(Role),
        lifetimes=LIFETIMES,
    )
