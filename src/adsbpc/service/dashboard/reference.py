"""The API reference, from the OpenAPI document of the server that answers.

By hand and not by Swagger UI or Redoc, whose files (as fastapi-offline ships them) are 1.7 and 1.1
megabytes, name other hosts for a validator and a logo, and show nothing without their scripts. This
page has the bar, the style and the policy of the others.
"""

from __future__ import annotations

import re
from typing import Any

from fastapi import APIRouter, Request, Response

from adsbpc.service.auth.access import session_of
from adsbpc.service.dashboard.pages import page

router = APIRouter()


# What a reader finds it by, its method, its path, and what the document says of it.
Operation = tuple[str, str, str, dict[str, Any]]


@router.get("/docs")
def show(request: Request) -> Response:
    document = request.app.openapi()
    return page(
        request,
        "reference.html",
        session_of(request),
        text=document["info"]["description"],
        groups=groups_of(document),
        shapes=document["components"]["schemas"],
        kind=kind_of,
        named_in=named_in,
    )


def groups_of(document: dict[str, Any]) -> dict[str, list[Operation]]:
    """Operations by what they are about."""
    groups: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method in ("get", "post", "put", "patch", "delete"):
            if method in methods:
                anchor = re.sub("[^a-z0-9]+", "-", f"{method}{path}".lower()).strip("-")
                tag = methods[method]["tags"][0]
                groups.setdefault(tag, []).append((anchor, method, path, methods[method]))
    return groups


def kind_of(schema: dict[str, Any]) -> str:
    """A schema in a few words.

    >>> kind_of({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]})
    'integer from 1, or nothing'
    >>> kind_of({"type": "array", "items": {"$ref": "#/components/schemas/Row"}})
    'list of Row'
    """
    if "$ref" in schema:
        return _named(schema)
    for either in ("anyOf", "oneOf"):
        if either in schema:
            return ", or ".join(kind_of(each) for each in schema[either])
    if "enum" in schema:
        return "one of " + ", ".join(str(value) for value in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    kind = str(schema.get("format") or schema.get("type", "anything"))
    if kind == "array":
        items: dict[str, Any] = schema.get("items") or next(iter(schema.get("prefixItems", ())), {})
        return f"list of {kind_of(items)}"
    return {"null": "nothing", "string": "text"}.get(kind, kind) + _limits(schema)


def _limits(schema: dict[str, Any]) -> str:
    lowest, highest = schema.get("minimum"), schema.get("maximum")
    limits = "" if lowest is None else f" from {lowest:,}"
    return limits if highest is None else f"{limits} to {highest:,}"


def _named(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def named_in(schema: dict[str, Any]) -> tuple[str, ...]:
    nested = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), schema.get("items") or {}]
    own = (_named(schema),) if "$ref" in schema else ()
    return own + tuple(_named(each) for each in nested if isinstance(each, dict) and "$ref" in each)
