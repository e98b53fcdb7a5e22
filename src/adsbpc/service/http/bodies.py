"""Bodies of requests: read within limits, unpacked; and small ones of JSON as models.

Must never: hold more in memory than the limits allow, whatever a sender claims, or read a body
before it is known that its sender may send it.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from adsbpc.service.http.problems import Problem, phrase, unfit
from adsbpc.service.settings import IngestSection

JSON: Final = "application/json"
LIMITS = IngestSection(max_body_bytes=1_000_000, max_unpacked_bytes=1_000_000)

_LONGEST_SECONDS = 60
_GZIP = 16 + zlib.MAX_WBITS

Sent = TypeVar("Sent", bound=BaseModel)


def body_document(model: type[BaseModel], required: bool = True) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": required, "content": {JSON: {"schema": schema}}}}


def media_type_of(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def schemas_of(model: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """What the document says of a body that a route reads itself, by name."""
    described = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**described.pop("$defs", {}), model.__name__: described}


async def parsed_body(request: Request, model: type[Sent], required: bool = True) -> Sent:
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


@dataclass(frozen=True)
class Received:
    """A body as it came."""

    content: bytes
    is_packed: bool


async def read_body(request: Request, limits: IngestSection) -> bytes:
    """The whole body, unpacked: for those who send little."""
    received = await receive_body(request, limits)
    return await run_in_threadpool(unpacked, received, limits)


async def receive_body(
    request: Request, limits: IngestSection, take: Callable[[int], None] = lambda size: None
) -> Received:
    """The whole body. Nothing is read of one that says itself that it is too large; `take` is told
    of the bytes that came, and may end it."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise Problem(
            415, "Unsupported encoding", f"Content-Encoding is {encoding[:40]!r}",
            "Send the body as it is, or packed with gzip.", {"Accept-Encoding": "gzip"},
        )  # fmt: skip
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > limits.max_body_bytes:
        raise _too_large("the body", limits.max_body_bytes, "max_body_bytes")
    received, parts = 0, []
    try:
        async with asyncio.timeout(_LONGEST_SECONDS):
            async for chunk in request.stream():
                received += len(chunk)
                if received > limits.max_body_bytes:
                    raise _too_large("the body", limits.max_body_bytes, "max_body_bytes")
                take(len(chunk))
                parts.append(chunk)
    except TimeoutError:
        raise Problem(
            408, "Too slow", f"the body did not come within {_LONGEST_SECONDS} seconds",
            "Send smaller batches, or over a faster connection.",
        ) from None  # fmt: skip
    return Received(b"".join(parts), encoding == "gzip")


def unpacked(received: Received, limits: IngestSection) -> bytes:
    if not received.is_packed:
        return received.content
    limit, stream = limits.max_unpacked_bytes, zlib.decompressobj(_GZIP)
    try:
        # No more than is allowed: a small body may unpack to anything.
        content = stream.decompress(received.content, limit + 1)
    except zlib.error as error:
        raise _broken(str(error)) from None
    if len(content) > limit:
        raise _too_large("the unpacked body", limit, "max_unpacked_bytes")
    if not stream.eof:
        raise _broken("the packed body ends too early")
    if stream.unused_data:
        raise _broken("bytes follow after the end of the packed body")
    return content


def _too_large(what: str, limit: int, key: str) -> Problem:
    return Problem(
        413, "Too large", f"{what} has more than {limit} bytes, which is [ingest] {key}",
        "Send smaller batches.",
    )  # fmt: skip


def _broken(why: str) -> Problem:
    return Problem(400, "Broken gzip", why, "Pack the body again, whole, and send it again.")
