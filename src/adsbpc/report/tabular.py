"""Results that are tables: as Arrow, pandas or polars, and as HTML where a notebook shows them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
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
        columns = self.columns()
        rows = list(zip(*columns.values(), strict=True))
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_shown(value))}</td>" for value in row) + "</tr>"
            for row in rows[:_MOST_ROWS]
        )
        more = f"<p>{len(rows) - _MOST_ROWS} rows more</p>" if len(rows) > _MOST_ROWS else ""
        return (
            f"<p>{escape(self.caption())}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
        )


def _shown(value: object) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else str(value)
