"""What sections of the campaign file are made of: kinds of values that several of them have."""

from __future__ import annotations

import unicodedata
from fractions import Fraction
from typing import Annotated, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
)

from adsbpc.model.durations import duration_text, parse_duration
from adsbpc.model.guarantee import PICO_RHO


class Section(BaseModel):
    """Unknown keys are errors. A validator is built when it is first needed: most sections are only
    ever read as a part of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


# A section that may be left out. It is made of nothing by whoever reads the file: an instance here
# would need a validator of its own before there is any file.
DEFAULTS: Any = Field(default={}, validate_default=True)


def known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError('expected an IANA time zone, for example "Europe/Berlin"') from None
    return name


def _printable(name: str) -> str:
    if not name.isprintable():
        raise ValueError("expected no line breaks or other control characters")
    return name


def _one_spelling(name: str) -> str:
    """Names that look the same are the same: a scope must not come twice by a space or accent."""
    if name != name.strip():
        raise ValueError("expected no spaces at its ends")
    return unicodedata.normalize("NFC", name)


def _whole_pico_rho(budget: float) -> float:
    if (Fraction(str(budget)) * PICO_RHO).denominator != 1:
        raise ValueError("expected at most twelve decimals")
    return budget


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
Key = Annotated[Name, AfterValidator(_one_spelling)]
Zone = Annotated[str, AfterValidator(known_zone)]
Duration = Annotated[
    int, BeforeValidator(parse_duration), PlainSerializer(duration_text, when_used="json")
]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
# Wide enough for any use, and narrow enough that no product of them leaves floating point.
Moderate = Annotated[float, Field(ge=1e-6, le=1e6)]
Rho = Annotated[Moderate, AfterValidator(_whole_pico_rho)]
