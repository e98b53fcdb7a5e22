"""How far a campaign is, and what it has spent."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from adsbpc.model import Budget
from adsbpc.report.tabular import Tabular


@dataclass(frozen=True)
class Status(Tabular):
    """How far a campaign is. `over` is the last slot that has ended; `bound` is the one in force,
    in conversions per user and slot, and `allowance` that of personal budgets: as much as so many
    conversions with one publisher on one slot need. `scope_free` is what no campaign has reserved,
    None for those who may not know which have started. A `closed` one releases nothing more."""

    released: int
    slots: int
    over: int
    campaign_budget: Budget
    scope_budget: Budget
    bound: int | None
    allowance: float | None
    ledger: str
    scope_free: Fraction | None = None
    closed: bool = False

    def columns(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for name, value in {**self.to_object(), "ledger": self.ledger}.items():
            parts = value.items() if isinstance(value, dict) else [("", value)]
            found |= {f"{name}_{part}".rstrip("_"): [figure] for part, figure in parts}
        return found

    def to_object(self) -> dict[str, Any]:
        """For machines, wherever the ledger is."""
        return {
            "released": self.released,
            "slots": self.slots,
            "over": self.over,
            "closed": self.closed,
            "spent": float(self.campaign_budget.spent),
            "left": float(self.campaign_budget.left),
            "scope": {
                **self.scope_budget.to_object(),
                **({} if self.scope_free is None else {"free": float(self.scope_free)}),
            },
            "bound": self.bound,
            "allowance": self.allowance,
        }
