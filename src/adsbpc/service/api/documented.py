"""What the OpenAPI document says of errors, and how keys are sent."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends
from fastapi.security import HTTPBearer
from pydantic import BaseModel

from adsbpc.service.access import principal_of
from adsbpc.service.principal import Principal
from adsbpc.service.problems import MEDIA_TYPE, phrase

# Only says in the document how a key is sent; `principal_of` is what checks it.
bearer = HTTPBearer(
    auto_error=False,
    scheme_name="key",
    description="A key made by an operator: adsbpc_...",
)

Caller = Annotated[Principal, Depends(principal_of)]


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Answers that are errors, besides those that every request may get."""
    schema = {"$ref": "#/components/schemas/ProblemDetails"}
    return {
        status: {"description": phrase(status), "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted({400, 401, 403, 408, 429, 500, 503, *statuses})
    }


def schemas_of(model: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """What the document says of a body that a route reads itself, by name."""
    described = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**described.pop("$defs", {}), model.__name__: described}
