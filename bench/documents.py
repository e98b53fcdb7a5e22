"""Tables and pictures that benchmarks put into documents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adsbpc.lab.figures import lines_figure, write_figure

_DOCS = Path(__file__).parent.parent / "docs"


def put_into_page(page: str, mark: str, table: str, title: str, picture: str) -> None:
    """Between the two marks of the page, whose address in `docs` this is, as is the picture's."""
    start, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    path = _DOCS / page
    before, rest = path.read_text().split(start)
    shown = f"![{title}]({Path(picture).relative_to(Path(page).parent)}.svg)"
    path.write_text(f"{before}{start}\n{table}\n\n{shown}\n{end}{rest.split(end)[1]}")


def draw(title: str, rows: Sequence[dict[str, Any]], seconds: str, picture: str) -> None:
    """Seconds by million conversions, a line for each "mechanism" of the rows."""
    lines = list(dict.fromkeys(row["mechanism"] for row in rows))
    path = _DOCS / picture
    path.parent.mkdir(exist_ok=True)
    write_figure(lines_figure(title, list(rows), "million conversions", seconds, lines), path)
