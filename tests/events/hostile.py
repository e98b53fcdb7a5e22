"""Rows that somebody writes to change how the rows of others are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from adsbpc.campaign import attribute
from adsbpc.contributions import contributions_sql
from adsbpc.engines import Engine
from adsbpc.model import CampaignSpec

MALLORY = "mallory"
OTHERS = ("u1", "u2", "#3", "it's", "ü4", "x y")
_HOUR = "2026-03-02T{:02d}:00:00Z"
HEADERS = {
    "impressions": b"user_id,publisher_id,advertiser_id,timestamp,kind,event_id,note",
    "conversions": b"user_id,advertiser_id,timestamp,value,event_id,note",
}
# What a row of each table looks like; the first field is the user.
TEMPLATES = {
    "impressions": (MALLORY, "P-1", "Ad-1", _HOUR.format(9), "click", "e1", "n"),
    "conversions": (MALLORY, "Ad-1", _HOUR.format(12), "5", "e1", "n"),
}


def rows_of_others(table: str) -> list[tuple[str, ...]]:
    """Several of each, some with the event ids that everybody uses."""
    if table == "impressions":
        return [
            (user, f"P-{k % 3}", "Ad-1", _HOUR.format(8 + k), "click" if k else "view", f"e{k}", "")
            for user in OTHERS
            for k in range(3)
        ]
    return [
        (user, "Ad-1", _HOUR.format(12 + k), str(10 * k + 5), f"e{k}", 'said "hi"')
        for user in OTHERS
        for k in range(2)
    ]


def csv_line(row: tuple[str, ...]) -> bytes:
    quoted = ['"' + field.replace('"', '""') + '"' if '"' in field else field for field in row]
    return ",".join(quoted).encode()


# Pieces that parsers stumble over.
PIECES = (
    b'"', b'""', b"'", b",", b"#", b"\\", b"\0", b"\r", b"\t", b";", b"|", b"\xff", b"\xc3(",
    b"\xef\xbb\xbf", b"\xed\xa0\x80", b"NULL", b"\\N", b" ", b"//", b"\x1a", b"\x0b", b"\x85",
    "\u2028".encode(), b"user_id", b"nan", b"-inf", b"9" * 400, b"0x1p3", b"2026-03-02T09:00:00",
    b"2026-03-02T09:00:00+99:99", b"9999999-01-01T00:00:00Z", b"1e999", b"x" * 70_000,
    b'"' * 40_001, b'""' * 20_000, b"," * 5_000, b"x" * 1_100_000,
)  # fmt: skip


def csv_lines(table: str) -> st.SearchStrategy[bytes]:
    """A row with hostile fields, pieces in any order, or any bytes at all; never a line feed."""
    pieces = st.sampled_from(PIECES)
    mixed = st.lists(pieces, min_size=1, max_size=6).map(b"".join)

    def replaced(places: dict[int, bytes]) -> bytes:
        fields = [field.encode() for field in TEMPLATES[table]]
        return b",".join(places.get(place, field) for place, field in enumerate(fields))

    count = len(TEMPLATES[table])
    fields = st.dictionaries(st.integers(0, count - 1), mixed, min_size=1, max_size=3).map(replaced)
    anything = st.binary(max_size=60).map(lambda raw: raw.replace(b"\n", b""))
    return st.one_of(fields, fields, mixed, anything)


def all_csv_lines(table: str) -> list[bytes]:
    """Every piece in every field, and alone."""
    fields = [field.encode() for field in TEMPLATES[table]]
    lines = list(PIECES)
    for place in range(len(fields)):
        for piece in PIECES:
            lines.append(b",".join([*fields[:place], piece, *fields[place + 1 :]]))
    return lines


def write_csv(directory: Path, hostile: dict[str, list[tuple[int, bytes]]]) -> None:
    """The rows of others, with hostile lines before the rows of these numbers."""
    for table, header in HEADERS.items():
        lines = [csv_line(row) for row in rows_of_others(table)]
        for place, line in sorted(hostile.get(table, []), key=lambda each: -each[0]):
            lines.insert(place % (len(lines) + 1), line)
        (directory / f"{table}.csv").write_bytes(b"\n".join([header, *lines]) + b"\n")


def binary_texts(values: list[bytes | None]) -> pa.Array:
    """A column that says it is text, whatever bytes it holds."""
    binary = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(values), binary.buffers())


# Bytes, and moments as they stand in a file.
HOSTILE_TEXTS = st.one_of(
    st.sampled_from([*PIECES, b"", b"e0", b"e1", b"P-1", b"Ad-1"]), st.binary(max_size=12)
)
HOSTILE_MOMENTS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([2**63 - 1, -(2**63), -(2**63) + 1, 2**62, -(2**62), 0, -1]),
)
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}


def write_parquet(
    directory: Path, unit: str, zone: str | None, hostile: dict[str, list[tuple[int, Any]]]
) -> None:
    """The same with rows of Parquet, whose timestamps are of one unit; a hostile row is a list of
    bytes for its texts and an integer for its moment."""
    for table, header in HEADERS.items():
        names = header.decode().split(",")
        rows: list[list[Any]] = []
        for row in rows_of_others(table):
            named = dict(zip(names, row, strict=True))
            seconds = np.datetime64(named["timestamp"][:-1], "s").astype(int)
            texts = [named[name].encode() for name in names]
            rows.append([texts, int(seconds) * _PER_SECOND[unit]])
        for place, (texts, moment) in sorted(hostile.get(table, []), key=lambda each: -each[0]):
            rows.insert(place % (len(rows) + 1), [list(texts), moment])
        columns: dict[str, pa.Array] = {}
        for place, name in enumerate(names):
            if name == "timestamp":
                moments = np.array([moment for _, moment in rows], dtype=np.int64)
                columns[name] = pa.array(moments).view(pa.timestamp(unit, zone))
            elif name == "value":
                columns[name] = pa.array([float(row[0][place] or b"nan") for row in rows])
            else:
                columns[name] = binary_texts([row[0][place] for row in rows])
        pq.write_table(pa.table(columns), directory / f"{table}.parquet", version="2.6")


def contributions_of_others(engine: Engine, spec: CampaignSpec) -> list[tuple[Any, ...]]:
    """What the mechanism will see of everybody but one."""
    credits = attribute(spec, engine).credits
    sql = contributions_sql(spec.measures[0], spec.index_columns, credits)
    found = engine.rows("contributions", sql)
    return sorted(row for row in found if row[0] in OTHERS)
