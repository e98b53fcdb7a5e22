"""Keys: made, listed, revoked by operators; and who a key speaks for."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Security
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from adsbpc.model.slots import to_microseconds, to_moment
from adsbpc.service.auth.access import Caller, backend_of, bearer, note, require
from adsbpc.service.auth.keys import KeyRecord
from adsbpc.service.auth.permissions import Action, Role
from adsbpc.service.clock import SystemClock, now_us
from adsbpc.service.http.bodies import body_document, parsed_body
from adsbpc.service.http.problems import Problem, problems

router = APIRouter(prefix="/v1", tags=["keys"], dependencies=[Security(bearer)])


class WhoAmI(BaseModel):
    """`subject` is the publisher or advertiser that the key speaks for, if any."""

    key_id: str
    role: Role
    subject: str


class KeyRequest(BaseModel):
    """Publishers and advertisers need a subject, their id in the events; operators have none; a
    reader without one reads every campaign."""

    model_config = ConfigDict(extra="forbid", strict=True)

    role: Role
    subject: Annotated[str, Field(max_length=200)] = ""
    label: Annotated[str, Field(min_length=1, max_length=200, description="For people.")]
    expires_at: AwareDatetime | None = None


class KeyDescription(BaseModel):
    key_id: str
    role: Role
    subject: str
    label: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    state: str


class NewKey(KeyDescription):
    """`key` is shown only once: no more than a hash of it is stored."""

    key: str


class KeyList(BaseModel):
    keys: list[KeyDescription]


@router.get("/whoami", summary="Who am I", responses=problems())
def who_am_i(request: Request, caller: Caller) -> WhoAmI:
    """Role and subject of the key that asks."""
    require(request, caller, Action.WHO_AM_I)
    return WhoAmI(key_id=caller.key_id, role=caller.role, subject=caller.subject)


@router.get("/keys", summary="List keys", responses=problems())
def list_keys(request: Request, caller: Caller) -> KeyList:
    """All that were ever made, without their secrets."""
    require(request, caller, Action.MANAGE_KEYS)
    return KeyList.model_validate({"keys": map(_described, backend_of(request).keys.list())})


@router.post(
    "/keys", status_code=201, summary="Make a key", openapi_extra=body_document(KeyRequest),
    responses=problems(413, 415, 422),
)  # fmt: skip
async def create_key(request: Request, caller: Caller) -> NewKey:
    """The key is in the answer, and nowhere else."""
    await run_in_threadpool(require, request, caller, Action.MANAGE_KEYS)
    wanted = await parsed_body(request, KeyRequest)
    expires = None if wanted.expires_at is None else to_microseconds(wanted.expires_at)

    def created() -> NewKey:
        record, text = backend_of(request).keys.create(
            wanted.role, wanted.subject, wanted.label, expires
        )
        note(request, caller, "key made", record.key_id)
        return NewKey(**_described(record), key=text)

    return await run_in_threadpool(created)


@router.delete(
    "/keys/{key_id}", status_code=204, summary="Revoke a key", responses=problems(404, 422)
)
def revoke_key(
    request: Request,
    caller: Caller,
    key_id: Annotated[str, Path(pattern="^[0-9a-f]{16}$")],
) -> None:
    """It stops at once, on every server, and whoever is signed in with it is signed out."""
    require(request, caller, Action.MANAGE_KEYS, target=key_id)
    if not backend_of(request).keys.revoke(key_id):
        raise Problem(
            404, "Not found", f"There is no key {key_id} that is not revoked",
            "List the keys that there are: GET /v1/keys",
        )  # fmt: skip
    backend_of(request).sessions.close_all(key_id)


def _described(record: KeyRecord) -> dict[str, Any]:
    return {
        **asdict(record),
        "created_at": to_moment(record.created_us),
        "expires_at": record.expires_us and to_moment(record.expires_us),
        "revoked_at": record.revoked_us and to_moment(record.revoked_us),
        "state": record.state(now_us(SystemClock())),
    }
