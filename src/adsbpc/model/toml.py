"""TOML that people write: read, checked against a model, and told problem by problem."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from adsbpc.errors import SpecError, SpecProblem, did_you_mean
from adsbpc.model.rules import location_of, next_step_of, rule_of

Checked = TypeVar("Checked", bound=BaseModel)


class MisfitError(ValueError):
    """A value that does not go with others; `path` leads to it from where that is found out."""

    def __init__(self, rule: str, *path: str, value: str = "") -> None:
        super().__init__(rule)
        self.path, self.value = path, value


def read_toml(file: Path, missing: SpecError | None = None) -> dict[str, Any]:
    """`missing` is raised if there is no such file."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        if missing is not None and isinstance(error, FileNotFoundError):
            raise missing from None
        raise SpecError(
            f"cannot be read ({error})", path=str(file), to_do="Check the path and rights"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise SpecError(
            f"is not valid TOML: {error}", path=str(file), to_do="Correct that line"
        ) from None


def checked(
    model: type[Checked],
    content: Mapping[str, Any],
    directory: Path,
    where: str,
    name: str,
    shown: Callable[[Any], str] = repr,
) -> Checked:
    """What `content` says, or a SpecError with every problem on a line of its own.

    `where` it was written, and by which `name` people call it. `shown` writes a value.
    """
    if "directory" in content:
        raise SpecError("unknown key [directory]", path=where, to_do="Remove it")
    try:
        return model.model_validate({**content, "directory": directory})
    except ValidationError as error:
        problems = tuple(_problem(each, model, name, shown) for each in error.errors())
        verb = "are" if name.endswith("s") else "is"
        raise SpecError(f"the {name} {verb} not valid", path=where, problems=problems) from None


def place(*parts: str) -> str:
    """A key as people write it.

    >>> place("privacy", "adsbpc", "bound"), place("campaign")
    ('[privacy.adsbpc] bound', '[campaign]')
    """
    *sections, key = parts
    return f"[{'.'.join(sections)}] {key}" if sections else f"[{key}]"


def _problem(
    problem: Any, model: type[BaseModel], name: str, shown: Callable[[Any], str]
) -> SpecProblem:
    location = location_of(problem)
    path, kind, value = place(*location or [name]), problem["type"], problem["input"]
    rule, to_do = rule_of(problem), next_step_of(problem)
    cause = problem.get("ctx", {}).get("error")
    if isinstance(cause, MisfitError):
        return SpecProblem(str(cause), place(*location, *cause.path), cause.value)
    if kind == "extra_forbidden":
        hint = did_you_mean(location[-1], _siblings(model, location))
        return SpecProblem(rule, path, to_do=f"{hint} {to_do}".lstrip())
    if kind == "literal_error":
        known = problem["ctx"]["expected"].replace(" or ", ", ").replace("'", "").split(", ")
        to_do = did_you_mean(str(value), known).lstrip()
    told = "" if kind == "missing" or isinstance(value, dict) else shown(value)
    return SpecProblem(rule, path, told, to_do)


def _siblings(model: type[BaseModel], location: list[str]) -> list[str]:
    """Keys that are allowed where an unknown one was found."""
    for part in location[:-1]:
        if part.isdigit():
            continue
        annotation = model.model_fields[part].annotation
        candidates = [annotation, *get_args(annotation)]
        model = next(c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel))
    return [name for name in model.model_fields if name != "directory"]
