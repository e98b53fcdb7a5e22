"""What personal budgets by rows keep from slot to slot, in the ledger. Part of it is secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from adsbpc.model.release import Measured
from adsbpc.workloads.queries import Reals


@dataclass(frozen=True)
class Row:
    """What was released at a slot. `multipliers` are those of cells alike, and of the columns of
    what was cut; `sizes` has a number for each cell where they are not alike. `is_renewal`: rows
    from here on hold earlier slots as they were let in again."""

    multipliers: tuple[int, ...]
    sizes: tuple[int, ...]
    is_renewal: bool
    allowance: float
    values: tuple[int, ...]
    histogram: tuple[int, ...]

    @cached_property
    def reals(self) -> Reals:
        """The values, as estimates take them: again at every later slot."""
        return np.array(self.values, dtype=np.float64)

    @classmethod
    def of(cls, released: Measured) -> Row:
        assert released.allowance is not None
        return cls(
            released.multipliers,
            released.sizes,
            released.is_renewal,
            released.allowance,
            released.values,
            released.histogram,
        )


@dataclass(frozen=True)
class RowsState:
    """What one slot leaves to the next. `kept`, the exact totals that the filter let in of every
    slot as the newest row has them, must stay secret; the rest may be published."""

    plan: str = ""
    spent: int = 0
    rows: tuple[Row, ...] = ()
    kept: tuple[tuple[int, ...], ...] = field(default=(), repr=False)

    @property
    def next_slot(self) -> int:
        return len(self.rows) + 1

    @property
    def begun(self) -> int:
        """The slot from which on rows hold what they hold now."""
        renewals = [slot for slot, row in enumerate(self.rows, start=1) if row.is_renewal]
        return renewals[-1] if renewals else 1

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.rows[-1].sizes if self.rows else ()

    def last_step(self) -> dict[str, Any]:
        row = self.rows[-1]
        return {
            "plan": self.plan,
            "spent": self.spent,
            "multipliers": row.multipliers,
            "sizes": row.sizes,
            "renewal": row.is_renewal,
            "allowance": row.allowance.hex(),
            "values": row.values,
            "histogram": row.histogram,
            "kept": self.kept if row.is_renewal else self.kept[-1:],
        }

    @property
    def last_secret(self) -> list[Any]:
        return [self.plan, self.last_step()["kept"]]

    @classmethod
    def from_steps(cls, steps: Sequence[Mapping[str, Any]]) -> RowsState:
        rows, kept = list[Row](), list[tuple[int, ...]]()
        for step in steps:
            rows.append(
                Row(
                    tuple(step["multipliers"]),
                    tuple(step["sizes"]),
                    step["renewal"],
                    float.fromhex(step["allowance"]),
                    tuple(step["values"]),
                    tuple(step["histogram"]),
                )
            )
            kept = ([] if step["renewal"] else kept) + [tuple(each) for each in step["kept"]]
        if not steps:
            return cls()
        return cls(steps[-1]["plan"], steps[-1]["spent"], tuple(rows), tuple(kept))
