"""Which arm of a trial somebody is in: a public function of the user id and a secret key.

The place of a person is the first 13 hexadecimal digits of SHA-256 of `key:user_id`, where the key
is 64 hexadecimal digits and the user id is in UTF-8. Arms are ranges of places, and digits sort as
numbers do, so that comparing texts decides: every engine and every browser can do that. The key has
one length, so that no two pairs of key and id are the same text; and what becomes known of a hash
is an arm, which tells nobody the arm of another id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

from adsbpc.errors import SpecError
from adsbpc.model.grid import OTHER_PUBLISHER

DIGITS = 13
KEY = re.compile(r"[0-9a-f]{64}")
# Behind every place: letters after f are no digits.
_END = "g"


@dataclass(frozen=True)
class KeyedArms:
    """`limits` are arms in order, each with the first place that is not its own."""

    key: str
    limits: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, key: str, shares: Mapping[str, float]) -> KeyedArms:
        if not KEY.fullmatch(key):
            raise SpecError(
                "the key of [lift] is not 64 hexadecimal digits in lower case. Write one with: "
                "adsbpc lift key"
            )
        return cls(key, limits_of(shares))

    def arm_of(self, user_id: str | int) -> str:
        """The arm, or "other" for whoever is in none.

        >>> KeyedArms.of(64 * "0", {"treatment": 0.5, "control": 0.5}).arm_of("ada")
        'control'
        """
        place = place_of(self.key, user_id)
        return next((arm for arm, end in self.limits if place < end), OTHER_PUBLISHER)


def place_of(key: str, user_id: str | int) -> str:
    return sha256(f"{key}:{user_id}".encode()).hexdigest()[:DIGITS]


def limits_of(shares: Mapping[str, float]) -> tuple[tuple[str, str], ...]:
    """
    >>> limits_of({"treatment": 0.75, "control": 0.25})
    (('treatment', 'c000000000000'), ('control', 'g'))
    """
    ends = accumulate(Fraction(str(share)) for share in shares.values())
    return tuple(
        (arm, _END if end == 1 else f"{int(end * 16**DIGITS):0{DIGITS}x}")
        for arm, end in zip(shares, ends, strict=True)
    )


def read_key(path: Path) -> str:
    """The key in a file, without what is around it."""
    try:
        found = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        raise SpecError(
            f"[lift] key_file: {path} is not there. Put the trial's key back; for a new trial, "
            "write one with: adsbpc lift key"
        ) from None
    except (OSError, ValueError) as error:
        raise SpecError(
            f"[lift] key_file: {path} cannot be read ({error}). Expected a text file with 64 "
            "hexadecimal digits"
        ) from None
    if not KEY.fullmatch(found):
        raise SpecError(
            f"[lift] key_file: {path} holds something else than 64 hexadecimal digits in lower "
            "case. Put the trial's key back; for a new trial, write one with: adsbpc lift key"
        )
    return found


def key_mark(key: str) -> str:
    """What may be kept beside a promise: it tells another key, and nothing about this one."""
    return sha256(f"adsbpc arms {key}".encode()).hexdigest()[:32]
