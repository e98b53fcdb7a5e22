"""The API reference, from the OpenAPI document of the server that answers.

By hand and not by Swagger UI or Redoc, whose files (as fastapi-offline ships them) are 1.7 and 1.1
megabytes, name other hosts for a validator and a logo, and show nothing without their scripts. This
page has the bar, the style and the policy of the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request, Response

from adsbpc.service.auth.access import session_of
from adsbpc.service.dashboard.pages import page

router = APIRouter()

_METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True)
class Field:
    """A parameter, or a key of a schema."""

    name: str
    kind: str
    required: bool
    text: str
    links: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    status: str
    text: str
    kind: str
    link: str


@dataclass(frozen=True)
class Operation:
    anchor: str
    method: str
    path: str
    title: str
    text: str
    parameters: tuple[Field, ...]
    bodies: tuple[Field, ...]
    answers: tuple[Answer, ...]
    errors: tuple[str, ...]


@dataclass(frozen=True)
class Shape:
    """A schema with a name; `kind` says what it is if it has no keys."""

    name: str
    text: str
    kind: str
    fields: tuple[Field, ...]


@router.get("/docs")
def show(request: Request) -> Response:
    document = request.app.openapi()
    groups: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method in _METHODS:
            if method in methods:
                operation = methods[method]
                tag = next(iter(operation.get("tags", ())), "other")
                groups.setdefault(tag, []).append(_operation(path, method, operation))
    shapes = [
        _shape(name, schema)
        for name, schema in sorted(document.get("components", {}).get("schemas", {}).items())
    ]
    return page(
        request,
        "reference.html",
        session_of(request),
        title=document["info"]["title"],
        text=_paragraphs(document["info"].get("description", "")),
        groups=groups,
        shapes=shapes,
    )


def _operation(path: str, method: str, found: dict[str, Any]) -> Operation:
    answers, errors = [], []
    for status, answer in found.get("responses", {}).items():
        if status.startswith(("4", "5")):
            errors.append(f"{status} {answer.get('description', '')}")
            continue
        for kind, media in (answer.get("content") or {"": {}}).items():
            schema = media.get("schema", {})
            answers.append(Answer(status, answer.get("description", ""), kind, _named(schema)))
    body = found.get("requestBody", {})
    return Operation(
        anchor=f"{method}{re.sub(r'[^a-z0-9]+', '-', path.lower())}".strip("-"),
        method=method.upper(),
        path=path,
        title=found.get("summary", ""),
        text=" ".join(found.get("description", "").split()),
        parameters=tuple(
            Field(
                each["name"],
                f"{each['in']}, {_kind(each.get('schema', {}))}",
                each.get("required", False),
                each.get("description", ""),
            )
            for each in found.get("parameters", ())
        ),
        bodies=tuple(
            Field(
                media,
                _kind(each.get("schema", {})),
                body.get("required", False),
                body.get("description", ""),
                _links(each.get("schema", {})),
            )
            for media, each in body.get("content", {}).items()
        ),
        answers=tuple(answers),
        errors=tuple(errors),
    )


def _shape(name: str, schema: dict[str, Any]) -> Shape:
    required = schema.get("required", ())
    return Shape(
        name,
        " ".join(schema.get("description", "").split()),
        "" if "properties" in schema else _kind(schema),
        tuple(
            Field(key, _kind(each), key in required, each.get("description", ""), _links(each))
            for key, each in schema.get("properties", {}).items()
        ),
    )


def _kind(schema: dict[str, Any]) -> str:
    """A schema in a few words.

    >>> _kind({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]})
    'integer from 1, or nothing'
    >>> _kind({"type": "array", "items": {"$ref": "#/components/schemas/Row"}})
    'list of Row'
    """
    if "$ref" in schema:
        return _named(schema)
    for either in ("anyOf", "oneOf"):
        if either in schema:
            return ", or ".join(_kind(each) for each in schema[either])
    if "enum" in schema:
        return "one of " + ", ".join(str(value) for value in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    kind = str(schema.get("format") or schema.get("type", "anything"))
    if kind == "array":
        items: dict[str, Any] = schema.get("items") or next(iter(schema.get("prefixItems", ())), {})
        return f"list of {_kind(items)}"
    return {"null": "nothing", "string": "text"}.get(kind, kind) + _limits(schema)


def _limits(schema: dict[str, Any]) -> str:
    lowest, highest = schema.get("minimum"), schema.get("maximum")
    limits = "" if lowest is None else f" from {lowest:,}"
    return limits if highest is None else f"{limits} to {highest:,}"


def _named(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _links(schema: dict[str, Any]) -> tuple[str, ...]:
    """The schemas with a name that one mentions."""
    nested = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), schema.get("items") or {}]
    own = (_named(schema),) if "$ref" in schema else ()
    return own + tuple(_named(each) for each in nested if isinstance(each, dict) and "$ref" in each)


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]
