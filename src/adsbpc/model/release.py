"""A slot's release as it is stored, published and read again: nothing in it is secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True)
class Estimate:
    """A query's noisy answer for one publisher, in the campaign's metric.

    `span` is (first, last) where the query is the sum over those slots.
    """

    publisher: str
    query: str
    value: float
    standard_error: float
    span: tuple[int, int] | None = None


@dataclass(frozen=True)
class ChargeLine:
    """What one part of a release was charged; `pico_rho` is exact, `rho` is for people."""

    part: str
    rho: float
    pico_rho: int


class Release(BaseModel):
    """Everything that a slot gives out. `to_text` is what the ledger stores and files hold.

    `values` are noisy totals in grid units, of which `scale` is the noise. `estimates` answer the
    campaign's workload; `slot_totals` and `running_totals` are there whatever the workload, one
    for each publisher: this slot alone, and everything from the first slot to this one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    scope: str
    campaign: str
    slot: int
    starts_at: str
    ends_at: str
    metric: Literal["conversions", "value"]
    bound: int
    scale: float
    values: tuple[int, ...]
    randomness: str
    charges: tuple[ChargeLine, ...]
    estimates: tuple[Estimate, ...]
    slot_totals: tuple[Estimate, ...]
    running_totals: tuple[Estimate, ...]

    def to_text(self) -> str:
        return self.model_dump_json()

    @classmethod
    def from_text(cls, text: str) -> Release:
        return cls.model_validate_json(text)
