"""HTML from templates: the environment of reports and of every page that shows one.

Must never: turn off escaping. Names of campaigns and publishers may hold anything.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import (
    BaseLoader,
    ChoiceLoader,
    Environment,
    PackageLoader,
    PrefixLoader,
    StrictUndefined,
)

from adsbpc.model import ALL_PUBLISHERS
from adsbpc.report import model_words, notes, wording
from adsbpc.report.numbers import amount, budget_texts, interval, percent
from adsbpc.report.palette import variable


def environment(*own: BaseLoader) -> Environment:
    """The report's templates, whose names begin with "report/", and those of one's own."""
    shared = PrefixLoader({"report": PackageLoader("adsbpc.report")})
    made = Environment(
        loader=ChoiceLoader([*own, shared]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    made.globals |= {"model_words": model_words, "notes": notes, "wording": wording}
    made.filters |= {
        "amount": amount,
        "budget_texts": budget_texts,
        "interval": interval,
        "percent": percent,
        "publisher_name": _publisher_name,
        "variable": variable,
    }
    return made


def render(template: str, **context: Any) -> str:
    return _environment().get_template(f"report/{template}").render(context)


@cache
def _environment() -> Environment:
    return environment()


def _publisher_name(publisher: str) -> str:
    return "All publishers" if publisher == ALL_PUBLISHERS else publisher
