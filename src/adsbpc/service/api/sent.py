"""What is sent to the API besides events: small JSON bodies, read within a limit.

Must never: read a body before it is known that its sender may send it.
"""

from __future__ import annotations

from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError

from adsbpc.model.toml import brief
from adsbpc.service.bodies import JSON, read_body
from adsbpc.service.problems import Problem, phrase
from adsbpc.service.settings import IngestSection

LIMITS = IngestSection(max_body_bytes=1_000_000, max_unpacked_bytes=1_000_000)

Sent = TypeVar("Sent", bound=BaseModel)


def described(model: type[BaseModel], required: bool = True) -> dict[str, Any]:
    """What the OpenAPI document says of the body."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": required, "content": {JSON: {"schema": schema}}}}


def media_type_of(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def sent(request: Request, model: type[Sent], required: bool = True) -> Sent:
    """The body as a model; its defaults if there is none, and none is required."""
    body = await read_body(request, LIMITS)
    if not body and not required:
        return model()
    kind = media_type_of(request)
    if kind != JSON:
        raise Problem(
            415, phrase(415), f"The body comes as {kind[:80] or 'nothing'!r}",
            f"Send Content-Type: {JSON}",
        )  # fmt: skip
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise unfit(error.errors(include_url=False, include_input=False)) from None


def unfit(errors: Any) -> Problem:
    """Names and rules only: what was sent is not repeated."""
    told = "; ".join(map(brief, errors[:10]))
    return Problem(
        422, phrase(422), f"The request does not fit its description: {told[:1000]}",
        "Compare it with /docs",
    )  # fmt: skip
