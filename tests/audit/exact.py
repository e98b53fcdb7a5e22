"""What follows from the rows of books by rows, by the definition of costs in the privacy room: for
forgeries that agree with themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from adsbpc.model import Layout
from adsbpc.privacy import Strategy, cost

PLACES = 4096

Row = dict[str, Any]
Moves = dict[tuple[int, int], int]


def multipliers(step: Row) -> list[int]:
    """By place: cells, then what was cut."""
    alike, *cuts = step["multipliers"]
    cells = len(step["kept"][-1]) - len(cuts)
    return [*(max(1, alike * size // 64) for size in step["sizes"] or [64] * cells), *cuts]


class Exact:
    """`kept` by released slot, as its step has them; `sums` of every row by column; of everybody,
    by number, what was `fixed` and the `cost` of what was let in; `charges` for what was cut, by
    released slot, tier, slot and number. For layouts in which no view sums cells."""

    def __init__(
        self,
        strategy: Sequence[Sequence[int]],
        steps: Sequence[Row],
        files: Callable[[int], Sequence[Sequence[Row]]],
    ) -> None:
        self._strategy = Strategy(tuple(map(tuple, strategy)))
        self._cuts = len(steps[0]["multipliers"]) - 1
        self._cells = len(steps[0]["kept"][-1]) - self._cuts
        self._layout = Layout.of_publishers([str(place) for place in range(self._cells)])
        self.kept: dict[int, list[list[int]]] = {}
        self.sums: dict[int, list[int]] = {}
        self.charges: dict[tuple[int, int, int, int], int] = {}
        # By number and tier.
        self._moves: dict[tuple[int, int], Moves] = {}
        self._fixed: dict[tuple[int, int], int] = {}
        self._begun = 1
        held: list[list[int]] = []
        for slot, step in enumerate(steps, start=1):
            if step["renewal"]:
                self._renew(slot)
                held = []
            own = self._take(slot, step, files(slot))
            self.kept[slot] = own
            held += [
                [each * total for each, total in zip(multipliers(step), totals, strict=True)]
                for totals in own
            ]
            row = strategy[slot - 1]
            self.sums[slot] = [
                sum(entry * moved for entry, moved in zip(row, column, strict=True))
                for column in zip(*held, strict=True)
            ]

    def _cost(self, moves: Moves, first: int, end: int | None = None) -> int:
        return cost(self._strategy, self._layout, moves, slice(first - 1, end))

    def _renew(self, slot: int) -> None:
        for key, moves in self._moves.items():
            ended = self._cost(moves, self._begun, slot - 1)
            self._fixed[key] = self._fixed.get(key, 0) + ended
        self._moves, self._begun = {}, slot

    def _take(self, slot: int, step: Row, files: Sequence[Sequence[Row]]) -> list[list[int]]:
        cells, *cuts = files
        first = 1 if step["renewal"] else slot
        kept = [[0] * (self._cells + self._cuts) for _ in range(first, slot + 1)]
        own = multipliers(step)
        for row in cells:
            number, place = divmod(row["cell"], PLACES)
            if place < self._cells and first <= row["slot"] <= slot:
                kept[row["slot"] - first][place] += row["moved"] // own[place]
            self._add(number, 0, row["slot"], place, row["moved"])
        for tier, rows in enumerate(cuts[: self._cuts], start=1):
            place = self._cells + tier - 1
            # Rows that were counted first, then what a renewal says of them together.
            for row in sorted(rows, key=lambda row: (row["slot"] < 1, row["slot"])):
                key, at = (row["number"], tier), row["slot"]
                moves = self._moves.setdefault(key, {})
                if at > 0:
                    kept[at - first][place] += row["moved"] // own[place]
                before = self._cost(moves, self._begun)
                if at > 0:
                    self._add(row["number"], tier, at, place, row["moved"])
                charge = self._cost(moves, self._begun) - before
                if at == 0:
                    charge = self._fixed.get(key, 0)
                elif at == -1:
                    past = {key: moved for key, moved in moves.items() if key[0] < slot}
                    charge = self._cost(past, self._begun)
                elif at < slot:
                    charge = 0
                self.charges[slot, tier, at, row["number"]] = charge
        return kept

    def _add(self, number: int, tier: int, slot: int, place: int, moved: int) -> None:
        """Rows that stand there twice move twice."""
        moves = self._moves.setdefault((number, tier), {})
        moves[slot, place] = moves.get((slot, place), 0) + moved

    @property
    def fixed(self) -> dict[int, int]:
        return {number: found for (number, tier), found in self._fixed.items() if tier == 0}

    @property
    def cost(self) -> dict[int, int]:
        """Of what was let in, with all rows to come."""
        return {
            number: self._fixed.get((number, 0), 0) + self._cost(moves, self._begun)
            for (number, tier), moves in self._moves.items()
            if tier == 0
        }
