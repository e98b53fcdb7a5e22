"""What pydantic finds wrong, in our own words: the rule that a value breaks and the next step."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError

# By pydantic's name of the rule, or by the kind of value that it is about (`int_parsing`: `int`).
_RULES = {
    "greater_than_equal": "expected {ge} or more",
    "greater_than": "expected more than {gt}",
    "less_than_equal": "expected at most {le}",
    "less_than": "expected less than {lt}",
    "finite_number": "expected a finite number",
    "string_too_short": "expected a length of {min_length} or more",
    "string_too_long": "expected a length of at most {max_length}",
    "string_pattern_mismatch": "expected text of the form {pattern}",
    "too_short": "expected a list of {min_length} or more, found {actual_length}",
    "too_long": "expected a list of at most {max_length}, found {actual_length}",
    "enum": "expected one of {expected}",
    "literal_error": "expected one of {expected}",
    "extra_forbidden": "unknown key",
    "missing": "is missing",
    "json_invalid": "is not valid JSON: {error}",
    "string": "expected text",
    "int": "expected a whole number",
    "float": "expected a number",
    "bool": "expected true or false",
    "date": "expected a day such as 2026-03-01",
    "tuple": "expected a list",
    "list": "expected a list",
    "dict": "expected a section with keys of its own",
    "model": "expected a section with keys of its own",
    "dataclass": "expected an object",
}
_NEXT_STEPS = {
    "greater_than_equal": "Raise it",
    "greater_than": "Raise it",
    "less_than_equal": "Lower it",
    "less_than": "Lower it",
    "string_too_long": "Shorten it",
    "extra_forbidden": "Remove it",
    "missing": "Add it",
    "string_type": "Put it in quotes",
    "literal_error": "",
}
# What pydantic adds to the place of a value that may be of several kinds.
_KIND_OF_UNION = re.compile(r"str|int|bool|float|constrained-\w+|(literal|tuple|function-\w+)\[.*")


def rule_of(problem: Any) -> str:
    """The rule that is broken, of one of pydantic's errors."""
    rule = _form_of(problem["type"])
    if rule is None:
        return str(problem["msg"]).removeprefix("Value error, ")
    given = problem.get("ctx", {}).items()
    return rule.format_map({k: f"{v:g}" if isinstance(v, float) else v for k, v in given})


def next_step_of(problem: Any) -> str:
    """Empty for rules of our own, which say it themselves."""
    kind = problem["type"]
    return _NEXT_STEPS.get(kind, "" if _form_of(kind) is None else "Correct it")


def _form_of(kind: str) -> str | None:
    return _RULES.get(kind) or _RULES.get(kind.split("_")[0])


def location_of(problem: Any) -> list[str]:
    """The keys that lead to the value."""
    location = [str(part) for part in problem["loc"]]
    while len(location) > 1 and _KIND_OF_UNION.fullmatch(location[-1]):
        location.pop()
    return location


def brief(problem: Any) -> str:
    """One of pydantic's errors without the value."""
    place = ".".join(location_of(problem))
    return f"{place}: {rule_of(problem)}" if place else rule_of(problem)


def cause_of(error: Exception) -> str:
    """Why something could not be read, on one line."""
    if isinstance(error, ValidationError):
        return brief(error.errors()[0])
    return next(iter(str(error).splitlines()), type(error).__name__)
