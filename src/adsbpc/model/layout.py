"""What is counted, as everything after attribution sees it: cells, and nothing about ads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """Public: the dimensions that are told apart, and the names of the cells, in order."""

    dimensions: tuple[str, ...]
    cells: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.cells)
