"""Results that are tables: as Arrow, pandas or polars, and as HTML where a notebook shows them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import polars

_MOST_ROWS = 60


class Tabular(ABC):
    """Whoever has `columns` has the rest; pandas and polars are imported when asked for."""

    @abstractmethod
    def columns(self) -> dict[str, list[Any]]:
        """The table, column by column."""

    def to_arrow(self) -> Any:
        """A pyarrow Table."""
        import pyarrow

        return pyarrow.table(self.columns())

    def to_pandas(self) -> pandas.DataFrame:
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        import polars

        return polars.DataFrame(self.to_arrow())

    def caption(self) -> str:
        """One line to read above the table in a notebook."""
        return ""

    def _repr_html_(self) -> str:
        from adsbpc.report.rendering import render

        columns = self.columns()
        rows = list(zip(*columns.values(), strict=True))
        return render(
            "tabular.html",
            caption=self.caption(),
            names=columns,
            rows=rows[:_MOST_ROWS],
            left_out=max(len(rows) - _MOST_ROWS, 0),
        )
