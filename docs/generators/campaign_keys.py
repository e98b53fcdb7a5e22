"""The reference of the campaign file: keys, kinds, defaults and rules from the models that read it,
meanings from meanings.toml, which is laid out as a campaign file is.

A key without a meaning, or a meaning without a key, stops the build.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from datetime import date
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from adsbpc.model.durations import duration_text, parse_duration
from adsbpc.model.section import known_zone
from adsbpc.model.spec import CampaignSpec
from generators.tables import table

MEANINGS = Path(__file__).parent / "meanings.toml"
# Of sections whose names the campaign chooses.
_ANY = "NAME"
_PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false", date: "day"}


class Key(NamedTuple):
    section: str
    name: str
    kind: str
    default: str


def page() -> str:
    meanings = tomllib.loads(MEANINGS.read_text(encoding="utf-8"))
    sections: dict[str, list[Key]] = {}
    for key in keys():
        sections.setdefault(key.section, []).append(key)
    parts = []
    for section, found in sections.items():
        told = _told(meanings, section)
        own = {name: text for name, text in told.items() if isinstance(text, str)}
        about = own.pop("about", "")
        _check(section, {key.name for key in found}, set(own))
        rows = [(f"`{key.name}`", key.kind, key.default, own[key.name]) for key in found]
        title = f"[[{section}]]" if section in ("workload", "measure") else f"[{section}]"
        parts += [f"## `{title}`", about, table(["key", "kind", "default", "meaning"], rows)]
    return "\n\n".join(filter(None, parts))


def keys(model: type[BaseModel] = CampaignSpec, path: tuple[str, ...] = ()) -> Iterator[Key]:
    """Every key of the campaign file, those of a section before those of sections within it."""
    fields = {name: each for name, each in model.model_fields.items() if name != "directory"}
    for name, field in fields.items():
        if not _is_section(field.annotation):
            yield Key(".".join(path), name, _kind_of(field), _default(field))
    for name, field in fields.items():
        inner, is_dict = _section_in(field.annotation), get_origin(field.annotation) is dict
        if inner is not None:
            yield from keys(inner, (*path, name, *([_ANY] if is_dict else [])))
        elif is_dict:
            kind = _kind(get_args(field.annotation)[1])
            yield Key(".".join((*path, name)), _ANY, kind, "")


def _is_section(annotation: Any) -> bool:
    return get_origin(annotation) is dict or _section_in(annotation) is not None


def _section_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_section_in(each) for each in get_args(annotation))
    return next((each for each in found if each is not None), None)


def _told(meanings: dict[str, Any], section: str) -> dict[str, Any]:
    found: Any = meanings
    for part in section.split("."):
        found = found.get(part, {})
    return dict(found)


def _check(section: str, keys: set[str], told: set[str]) -> None:
    for name in sorted(keys ^ told):
        what = "has no meaning" if name in keys else "is no key of the campaign file"
        raise ValueError(f"{MEANINGS.name}: [{section}] {name} {what}. Correct that file")


def _kind_of(field: FieldInfo) -> str:
    return _kind(
        Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    )


def _kind(annotation: Any) -> str:
    """A kind of value in a few words.

    >>> _kind(Annotated[int, Ge(1), Le(50)])
    'whole number from 1 to 50'
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _limited(*arguments)
    if origin in (Union, UnionType):
        return " or ".join(_kind(each) for each in arguments if each is not NoneType)
    if origin is Literal:
        return "one of " + ", ".join(f"`{json.dumps(each)}`" for each in _flat(annotation))
    if origin is tuple:
        each = _kind(arguments[0])
        return "list of texts" if each == "text" else f"list, each a {each}"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "one of " + ", ".join(f"`{json.dumps(each.value)}`" for each in annotation)
    return _PLAIN[annotation]


def _flat(annotation: Any) -> Iterator[Any]:
    for each in get_args(annotation):
        yield from _flat(each) if get_origin(each) is Literal else [each]


def _limited(annotation: Any, *metadata: Any) -> str:
    functions = {getattr(each, "func", None) for each in metadata}
    if parse_duration in functions:
        return 'duration, such as `"30d"` or `"12h"`'
    if known_zone in functions:
        return "IANA time zone"
    if any(isinstance(each, FieldInfo) for each in metadata):
        inner = [part for each in metadata for part in getattr(each, "metadata", [each])]
        return _limited(annotation, *inner)
    return _kind(annotation) + "".join(_limits(metadata))


def _limits(metadata: tuple[Any, ...]) -> Iterator[str]:
    for each in metadata:
        match each:
            case Ge(ge=limit):
                yield f" from {_amount(limit)}"
            case Gt(gt=limit):
                yield f" above {_amount(limit)}"
            case Le(le=limit):
                yield f" to {_amount(limit)}"
            case Lt(lt=limit):
                yield f" below {_amount(limit)}"
            case _ if getattr(each, "pattern", None):
                yield f" of the form `{each.pattern}`"


def _amount(limit: Any) -> str:
    if isinstance(limit, int | float):
        return f"{limit:g}" if limit < 1 or limit >= 1e9 else f"{limit:,.12g}"
    return str(limit)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value is None:
        return ""
    if any(getattr(each, "func", None) is parse_duration for each in field.metadata):
        value = duration_text(value)
    if isinstance(value, Enum):
        value = value.value
    return f"`{json.dumps(value)}`"
