"""The reference of the HTTP API, from the OpenAPI document that the service hands out."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

from adsbpc.service.backend import open_backend
from adsbpc.service.dashboard.reference import Operation, groups_of, kind_of, named_in
from adsbpc.service.http.app import create_app
from adsbpc.service.settings import Settings
from generators.tables import table


def page() -> str:
    document = openapi()
    parts = [document["info"]["description"]]
    for group, operations in groups_of(document).items():
        parts.append(f"## {group.capitalize()}")
        for operation in operations:
            parts += _operation(operation)
    parts.append("## Shapes")
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts += _shape(name, schema)
    return "\n\n".join(parts)


def openapi() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.model_validate({"service": {"data": folder}})
        backend = open_backend(settings)
        try:
            return create_app(backend).openapi()
        finally:
            backend.stop()


def _operation(operation: Operation) -> Iterator[str]:
    _, method, path, told = operation
    yield f"### {told['summary']}"
    yield f"`{method.upper()} {path}`"
    if "description" in told:
        yield str(told["description"])
    rows = [
        (f"`{each['name']}`", f"{each['in']}, {kind_of(each['schema'])}", _note(each))
        for each in told.get("parameters", ())
    ]
    body = told.get("requestBody", {"content": {}})["content"]
    rows += [("body", media, _see(each["schema"])) for media, each in body.items()]
    if rows:
        yield table(["sent", "as", "meaning"], rows)
    answers = told["responses"].items()
    good = [
        (f"`{status}`", media, f"{answer['description']} {_see(each.get('schema', {}))}")
        for status, answer in answers
        if status < "4"
        for media, each in answer.get("content", {"": {}}).items()
    ]
    bad = ", ".join(f"{s} {answer['description']}" for s, answer in answers if s >= "4")
    yield table(["answer", "as", "meaning"], [*good, *([("errors", "", bad)] if bad else [])])


def _note(parameter: dict[str, Any]) -> str:
    must = "Required. " if parameter.get("required") else ""
    return must + str(parameter.get("description", ""))


def _see(schema: dict[str, Any]) -> str:
    found = [f"[{name}](#{name.lower()})" for name in named_in(schema)]
    return ", ".join(found) or (kind_of(schema) if schema else "")


def _shape(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f"### {name}"
    if "description" in schema:
        yield str(schema["description"])
    properties = schema.get("properties", {})
    if not properties:
        yield kind_of(schema).capitalize() + "."
        return
    required = schema.get("required", ())
    rows = [
        (
            f"`{key}`" + (" (required)" if key in required else ""),
            _see(each) if named_in(each) else kind_of(each),
            str(each.get("description", "")),
        )
        for key, each in properties.items()
    ]
    yield table(["key", "kind", "meaning"], rows)
