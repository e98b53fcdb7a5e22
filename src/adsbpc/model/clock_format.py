"""A declared way to write moments, in the signs of strftime: `[events] timestamp_format`.

A format is cut into literal signs and parts. What is read is decided by it alone, never by rows.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

_ZONE = "Z|[+-](?:0[0-9]|1[0-4])(?::?[0-5][0-9])?"
# Patterns without backslashes or groups of their own: every engine reads them alike.
_PARTS = {
    "Y": "[0-9]{4}",
    "y": "[0-9]{2}",
    "m": "0[1-9]|1[0-2]|[1-9]",
    "b": "[A-Za-z]{3}",
    "d": "0[1-9]|[12][0-9]|3[01]|[1-9]",
    "H": "[01][0-9]|2[0-3]|[0-9]",
    "I": "0[1-9]|1[0-2]|[1-9]",
    "p": "[AaPp][Mm]",
    "M": "[0-5][0-9]",
    "S": "[0-5][0-9]",
    "f": "[0-9]{1,9}",
    "z": _ZONE,
}
_TOKEN = re.compile(r"%(.)|([^%])", re.DOTALL)
_LITERAL = re.compile(r"[A-Za-z0-9 ,./:;_()+-]")
# Of each of these exactly one is there; of the others at most one.
_NEEDED = (("Y", "y"), ("m", "b"), ("d",))


@dataclass(frozen=True)
class ClockFormat:
    """`ValueError` for one that does not say which moment is meant.

    >>> ClockFormat("%d.%m.%Y").parts
    ('d', 'm', 'Y')
    """

    text: str

    def __post_init__(self) -> None:
        unknown = [f"%{part}" for part in self.parts if part not in _PARTS]
        known = ", ".join(f"%{part}" for part in _PARTS)
        if unknown or self.text.endswith("%"):
            raise ValueError(f"{unknown[0] if unknown else '%'} is none of {known}")
        odd = [sign for part, sign in self._tokens if not part and not _LITERAL.fullmatch(sign)]
        if odd:
            raise ValueError(f"the sign {odd[0]!r} cannot stand between parts")
        counts = Counter(self.parts)
        for choice in _NEEDED:
            if sum(counts[part] for part in choice) != 1:
                raise ValueError(f"expected {' or '.join(f'%{part}' for part in choice)} once")
        twice = [part for part, count in counts.items() if count > 1]
        if twice:
            raise ValueError(f"%{twice[0]} stands there twice")
        if (counts["H"] and counts["I"]) or counts["I"] != counts["p"]:
            raise ValueError("expected %H for the hour, or %I together with %p")
        for later, earlier in (("M", "HI"), ("S", "M"), ("f", "S")):
            if counts[later] and not any(counts[part] for part in earlier):
                raise ValueError(f"%{later} needs %{' or %'.join(earlier)}")

    @property
    def _tokens(self) -> list[tuple[str, str]]:
        return _TOKEN.findall(self.text)

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """In the order of their groups in the pattern, which are counted from 1."""
        return tuple(part for part, _ in self._tokens if part)

    @cached_property
    def pattern(self) -> str:
        """What a text of this form matches from end to end, with a group for each part."""
        pieces = [
            f"({_PARTS[part]})" if part else sign if sign.isalnum() else f"[{sign}]"
            for part, sign in self._tokens
        ]
        return f"^{''.join(pieces)}$"
