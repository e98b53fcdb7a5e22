"""Claims of the audit: what was checked, whether it held, and the figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from adsbpc.errors import AdsbpcError

# What was found where something else was expected: a claim that fails, never a traceback.
_UNREADABLE = (AdsbpcError, OSError, LookupError, TypeError, ValueError, AttributeError,
               ArithmeticError)  # fmt: skip
_LONGEST_CAUSE = 300

T = TypeVar("T")


class BrokenClaimError(Exception):
    """A claim does not hold; the text says why."""


@dataclass(frozen=True)
class Claim:
    """One line of the audit. `checked` says what was looked at, `detail` what was found."""

    name: str
    held: bool
    checked: str
    detail: str


@dataclass(frozen=True)
class Findings:
    claims: tuple[Claim, ...]

    @property
    def held(self) -> bool:
        return all(claim.held for claim in self.claims)

    @property
    def broken(self) -> tuple[Claim, ...]:
        return tuple(claim for claim in self.claims if not claim.held)

    def to_object(self) -> dict[str, Any]:
        """For machines."""
        return {"claims": [asdict(claim) for claim in self.claims], "held": self.held}


def claim(name: str, checked: str, check: Callable[[], str]) -> Claim:
    """The claim that `check` goes through: it returns the figures, or raises."""
    found = result_or_claim(name, checked, check)
    return found if isinstance(found, Claim) else Claim(name, True, checked, found)


def claims(
    checked: dict[str, str], check: Callable[[], dict[str, str | BrokenClaimError]]
) -> list[Claim]:
    """The same for several claims that one pass goes through: it returns the figures of each, or
    what is broken. If it cannot be finished, none of them holds."""
    found = result_or_claim("", "", check)
    if isinstance(found, Claim):
        return [Claim(name, False, what, found.detail) for name, what in checked.items()]
    return [
        Claim(name, isinstance(found[name], str), what, str(found[name]))
        for name, what in checked.items()
    ]


def result_or_claim(name: str, checked: str, make: Callable[[], T]) -> T | Claim:
    """What `make` returns, or a claim that does not hold."""
    try:
        return make()
    except BrokenClaimError as error:
        return Claim(name, False, checked, str(error))
    except _UNREADABLE as error:
        told = str(error) if isinstance(error, AdsbpcError | OSError) else repr(error)
        line = " ".join(told.split())
        shown = line if len(line) <= _LONGEST_CAUSE else f"{line[:_LONGEST_CAUSE]} ..."
        return Claim(name, False, checked, f"cannot be checked: {shown}")


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BrokenClaimError(otherwise)


def listed(problems: Sequence[str], most: int = 3) -> str:
    """The first few of many problems, on one line."""
    more = len(problems) - most
    return "; ".join(problems[:most]) + (f"; and {more:,} more" if more > 0 else "")
