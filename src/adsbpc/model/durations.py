"""Durations as they stand in the campaign file ("30d", "1h"), held as whole microseconds."""

from __future__ import annotations

import re

MICROSECONDS_PER_SECOND = 1_000_000
MICROSECONDS_PER_HOUR = 3_600 * MICROSECONDS_PER_SECOND
MICROSECONDS_PER_DAY = 24 * MICROSECONDS_PER_HOUR

LONGEST_DURATION = 3_660 * MICROSECONDS_PER_DAY

_UNITS = {
    "d": MICROSECONDS_PER_DAY,
    "h": MICROSECONDS_PER_HOUR,
    "m": 60 * MICROSECONDS_PER_SECOND,
    "s": MICROSECONDS_PER_SECOND,
}


def parse_duration(text: object) -> int:
    """Microseconds of a duration like "30d", "12h", "90m" or "45s".

    >>> parse_duration("2h") == 2 * MICROSECONDS_PER_HOUR
    True
    """
    match = re.fullmatch(r"(\d{1,6})([dhms])", text) if isinstance(text, str) else None
    if match is None:
        raise ValueError(
            'expected a whole number and a unit d, h, m or s, for example "30d" or "12h"'
        )
    duration = int(match[1]) * _UNITS[match[2]]
    if duration > LONGEST_DURATION:
        raise ValueError(f"expected at most {LONGEST_DURATION // MICROSECONDS_PER_DAY}d")
    return duration


def duration_text(microseconds: int) -> str:
    """A duration as the campaign file would have it, in the largest unit that divides it.

    >>> duration_text(parse_duration("48h"))
    '2d'
    """
    unit = next(u for u, length in _UNITS.items() if microseconds % length == 0)
    return f"{microseconds // _UNITS[unit]}{unit}"
