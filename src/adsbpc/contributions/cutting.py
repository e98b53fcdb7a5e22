"""What is cut of a slot's people on an engine, and how much of that is counted.

Mostly nobody is close to what users may spend, or all of theirs fits after all. Then no other step
is taken: an engine plans these longer than all others, however few rows there are.
"""

from __future__ import annotations

from collections.abc import Callable

from adsbpc.contributions.account_books import CUT, REST
from adsbpc.contributions.admission_sql import AdmissionSql
from adsbpc.engines import Engine, Relation

_SHORT = ("cell", "number", "asked", "kept", "moved")
_CHARGED = ("number", "cut", "charge")
_COUNTED = ("number", "counted", "left_over", "moved", "spent", "charge")
_WIDE = ("spent", "charge")

# From a file of the books and what is left, what earlier slots add to a column that counts.
EarlierCut = Callable[[AdmissionSql, str, str], str]


def cut_where_close(
    engine: Engine, rows: dict[str, Relation], text: AdmissionSql, earlier: EarlierCut
) -> None:
    """Add to `rows` the cells that are cut short, whose they are, and what columns count of it."""
    files = (CUT, REST)[: len(text.terms.cuts)]
    counted = [f"counted_{number}" for number, _ in enumerate(files, start=1)]
    rows |= {"short": _nobody(_SHORT), "charged": _nobody(_CHARGED)}
    rows |= {name: _nobody(_COUNTED) for name in counted}
    if not _count(engine, rows, "close"):
        return
    rows["short"] = engine.table("short", text.short())
    if not _count(engine, rows, "short"):
        return
    rows["charged"] = engine.table("charged", text.charged())
    left = f"SELECT number, cut AS left_over FROM {rows['charged']} AS charged"
    for number, (name, file) in enumerate(zip(counted, files, strict=True), start=1):
        rows[name] = engine.table(name, text.counted(number, earlier(text, file, left), left))
        left = f"SELECT number, left_over FROM {rows[name]} AS counted"


def _nobody(columns: tuple[str, ...]) -> Relation:
    types = {name: "wide(0)" if name in _WIDE else "CAST(0 AS BIGINT)" for name in columns}
    listed = ", ".join(f"{nothing} AS {name}" for name, nothing in types.items())
    return Relation.of(f"SELECT {listed} WHERE 1 = 0")


def _count(engine: Engine, rows: dict[str, Relation], what: str) -> int:
    ((count,),) = engine.rows(f"count of {what}", f"SELECT count(*) FROM {rows[what]} AS counted")
    return int(count)
