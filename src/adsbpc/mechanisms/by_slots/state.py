"""What personal budgets keep from slot to slot, in the ledger. Part of it is secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class SlotsState:
    """What one slot leaves to the next, in lists with an entry per slot. `kept`, the exact totals
    that the filter let in, must stay secret; the rest may be published."""

    plan: str = ""
    spent: int = 0
    multipliers: list[int] = field(default_factory=list)
    cut_multipliers: list[int] = field(default_factory=list)
    allowances: list[float] = field(default_factory=list)
    values: list[list[int]] = field(default_factory=list)
    histograms: list[list[int]] = field(default_factory=list)
    kept: list[list[int]] = field(default_factory=list)

    @property
    def next_slot(self) -> int:
        return len(self.values) + 1

    def last_step(self) -> dict[str, Any]:
        return {
            "plan": self.plan,
            "spent": self.spent,
            "multiplier": self.multipliers[-1],
            "cut_multiplier": self.cut_multipliers[-1],
            "allowance": self.allowances[-1].hex(),
            "values": self.values[-1],
            "histogram": self.histograms[-1],
            "kept": self.kept[-1],
        }

    @property
    def last_secret(self) -> list[Any]:
        return [self.plan, self.kept[-1]]

    @classmethod
    def from_steps(cls, steps: Sequence[Mapping[str, Any]]) -> SlotsState:
        if not steps:
            return cls()
        return cls(
            steps[-1]["plan"],
            steps[-1]["spent"],
            [step["multiplier"] for step in steps],
            [step["cut_multiplier"] for step in steps],
            [float.fromhex(step["allowance"]) for step in steps],
            [step["values"] for step in steps],
            [step["histogram"] for step in steps],
            [step["kept"] for step in steps],
        )
