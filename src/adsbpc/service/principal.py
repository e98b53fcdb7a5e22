"""Who asks: a role and, for most roles, the one publisher or advertiser that it speaks for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    OPERATOR = "operator"
    PUBLISHER = "publisher"
    ADVERTISER = "advertiser"
    READER = "reader"


@dataclass(frozen=True)
class Principal:
    """`subject` is a publisher's or advertiser's id. Operators have none; a reader without one
    reads every campaign."""

    key_id: str
    role: Role
    subject: str

    @property
    def owner(self) -> str:
        """Whose batches these are, whichever of its keys sent them."""
        return f"{self.role}:{self.subject}"
