"""What personal budgets by rows keep from slot to slot. Part of it is secret."""

from __future__ import annotations

from dataclasses import dataclass, field


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


@dataclass(frozen=True)
class RowsState:
    """What one slot leaves to the next. `kept`, the exact totals that the filter let in of every
    slot as the newest row has them, must stay secret; the rest may be published."""

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
