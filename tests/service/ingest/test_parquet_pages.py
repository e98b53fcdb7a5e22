"""Footers and pages that lie, made by hand: each of them is found out before anything is read."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc.service.http.problems import Problem
from adsbpc.service.ingest.bodies import PARQUET, check_body
from adsbpc.service.ingest.parquet_pages import (
    Footer,
    PageError,
    RowGroup,
    read_footer,
    unpacked_size,
)
from adsbpc.service.settings import IngestSection

# Kinds of the compact protocol. A field is (number, kind, value), a struct a list of fields.
INT, LONG, BYTES, LIST, STRUCT = 5, 6, 8, 9, 12
Field = tuple[int, int, Any]


def varint(value: int) -> bytes:
    head = value & 0x7F
    return bytes([head]) if value < 0x80 else bytes([head | 0x80]) + varint(value >> 7)


def encoded(kind: int, value: Any) -> bytes:
    if kind in (INT, LONG):
        return varint(2 * value if value >= 0 else -2 * value - 1)
    if kind == BYTES:
        return varint(len(value)) + bytes(value)
    if kind == STRUCT:
        return struct(value)
    element, values = value
    return (
        bytes([0xF0 | element])
        + varint(len(values))
        + b"".join(encoded(element, each) for each in values)
    )


def struct(fields: list[Field]) -> bytes:
    # The long form of a field's number, which any number fits.
    parts = [
        bytes([kind]) + encoded(INT, number) + encoded(kind, value)
        for number, kind, value in fields
    ]
    return b"".join(parts) + b"\0"


def page(unpacked: int, packed: int, values: int = 2, encoding: int = 0) -> list[Field]:
    """The header of a data page."""
    data: list[Field] = [(1, INT, values), (2, INT, encoding), (3, INT, 3), (4, INT, 3)]
    return [(1, INT, 0), (2, INT, unpacked), (3, INT, packed), (5, STRUCT, data)]


CONTENT = b"\x02\0\0\0u1" + b"\x02\0\0\0u2"
PAGE = struct(page(len(CONTENT), len(CONTENT))) + CONTENT
ELEMENT: list[Field] = [(1, INT, 6), (3, INT, 0), (4, BYTES, b"user_id"), (6, INT, 0)]


def made(
    pages: bytes = PAGE,
    *,
    rows: int = 2,
    group_rows: int = 2,
    root: list[Field] | None = None,
    elements: list[list[Field]] | None = None,
    column: list[Field] | None = None,
    more: list[Field] | None = None,
    chunks: int = 1,
) -> bytes:
    """A file of one column of texts that nobody may leave out; arguments say what is odd in it."""
    metadata: list[Field] = [
        (1, INT, 6), (2, LIST, (INT, [0, 3])), (3, LIST, (BYTES, [b"user_id"])), (4, INT, 0),
        (5, LONG, 2), (6, LONG, len(pages)), (7, LONG, len(pages)), (9, LONG, 4),
    ]  # fmt: skip
    changed = {field[0] for field in column or []}
    metadata = [field for field in metadata if field[0] not in changed] + (column or [])
    chunk: list[Field] = [(2, LONG, 4), (3, STRUCT, metadata)]
    group: list[Field] = [
        (1, LIST, (STRUCT, [chunk] * chunks)), (2, LONG, len(pages)), (3, LONG, group_rows),
    ]  # fmt: skip
    schema = [root or [(4, BYTES, b"schema"), (5, INT, 1)], *(elements or [ELEMENT])]
    footer = struct(
        [
            (1, INT, 1), (2, LIST, (STRUCT, schema)), (3, LONG, rows), (4, LIST, (STRUCT, [group])),
            *(more or []),
        ]
    )  # fmt: skip
    return b"PAR1" + pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def size(body: bytes) -> int:
    return unpacked_size(body, read_footer(body))


def test_what_is_made_by_hand_is_parquet() -> None:
    assert pq.read_table(io.BytesIO(made())).to_pylist() == [{"user_id": "u1"}, {"user_id": "u2"}]
    assert size(made()) == len(CONTENT)
    footer = read_footer(made())
    assert footer.rows == 2
    assert [column.name for column in footer.columns] == ["user_id"]


NESTED: list[Field] = [(4, BYTES, b"user_id"), (5, INT, 1), (3, INT, 0)]
REPEATED: list[Field] = [(1, INT, 6), (3, INT, 2), (4, BYTES, b"user_id")]
TWO_PAGES = struct(page(6, 6, 1)) + CONTENT[:6] + struct(page(6, 6, 1)) + CONTENT[6:]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (made(rows=3), "another number of rows than its row groups"),
        (made(rows=2**40, group_rows=2**40), "another number of values than rows"),
        (made(column=[(5, LONG, 2**40)]), "another number of values than rows"),
        (made(column=[(5, LONG, -2)]), "field 5 is -2, less than 0"),
        (made(group_rows=-2), "field 3 is -2, less than 0"),
        (made(chunks=2), "another number of columns"),
        (made(chunks=0), "another number of columns"),
        (made(column=[(7, LONG, 2**20)]), "outside of the file"),
        (made(column=[(9, LONG, 2**20)]), "outside of the file"),
        (made(column=[(7, LONG, -1)]), "less than 0"),
        # Readers pass over a field of another kind, and take the last of several.
        (made(column=[(9, INT, 4)]), "field 9 is missing, or of another kind"),
        (made(column=[(11, INT, 4)]), "field 11 is missing, or of another kind"),
        (made(column=[(9, LONG, 4), (9, LONG, 4)]), "field 9 is there twice"),
        (made(more=[(3, LONG, 2)]), "field 3 is there twice"),
        (made(elements=[NESTED, ELEMENT], root=[(4, BYTES, b"s"), (5, INT, 1)]), "nested"),
        (made(elements=[NESTED]), "column 'user_id' is nested"),
        (made(elements=[REPEATED]), "column 'user_id' is nested"),
        (made(PAGE[:10]), "cut off"),
        (made(struct(page(12, -12)) + CONTENT), "less than 0"),
        (made(struct(page(-12, 12)) + CONTENT), "less than 0"),
        (made(struct(page(12, 12, encoding=7)) + CONTENT), "DELTA_BYTE_ARRAY is not taken"),
        (made(struct([(1, INT, 0), (2, LONG, 12), (3, INT, 12)]) + CONTENT), "field 2 is missing"),
        (made(b"\x15\0"), "cut off"),
        (made(b"\x15" + b"\xff" * 20), "too long"),
        (made(b"\x0f" * 20), "a field of kind 15"),
        (b"PAR1", "does not start and end"),
        (b"", "does not start and end"),
        (b"PAR1" + b"\xff\xff\xff\xff" + b"PAR1", "its footer has 4294967295 bytes"),
        (b"PAR1" + bytes(100) + b"\x60\0\0\0" + b"PAR1", "field 2 is missing"),
    ],
)  # fmt: skip
def test_files_that_lie_are_refused(body: bytes, said: str) -> None:
    with pytest.raises(PageError, match=said):
        size(body)
    with pytest.raises(Problem) as caught:
        check_body(body, PARQUET, "impressions", "P-1", 0, IngestSection())
    assert caught.value.status == 400


def nested(depth: int) -> Any:
    return (LIST, [nested(depth - 1)] if depth else [])


def test_what_is_nested_without_end_is_refused() -> None:
    """Before Python's own limit, which would be a mistake of the server's."""
    assert size(made(more=[(20, LIST, nested(5))])) == len(CONTENT)
    deep: list[Field] = []
    for _ in range(300):
        deep = [(1, STRUCT, deep)]
    for more in ((20, LIST, nested(300)), (20, STRUCT, deep)):
        with pytest.raises(PageError, match="nested too deep"):
            size(made(more=[more]))


def test_a_list_longer_than_the_file_is_refused() -> None:
    body = made(more=[(20, BYTES, b"")])
    (at,) = [k for k in range(len(body)) if body[k : k + 3] == bytes([BYTES, 40, 0])]
    long = body[:at] + bytes([LIST, 40, 0xF0 | INT]) + varint(2**40) + b"\0"
    footer = long[4 + len(PAGE) :]
    with pytest.raises(PageError, match="a list is cut off"):
        read_footer(long + len(footer).to_bytes(4, "little") + b"PAR1")


def test_a_footer_is_bounded() -> None:
    with pytest.raises(PageError, match="its footer has"):
        read_footer(made(more=[(20, BYTES, bytes(2**19))]))


def test_what_pages_say_counts_whatever_the_footer_says() -> None:
    """The footer says a few bytes; the page a gigabyte."""
    body = made(struct(page(2**30, len(CONTENT))) + CONTENT)
    assert size(body) == 2**30
    with pytest.raises(Problem) as caught:
        check_body(body, PARQUET, "impressions", "P-1", 0, IngestSection())
    assert caught.value.status == 413
    assert size(made(TWO_PAGES)) == len(CONTENT)


def test_pages_are_bounded() -> None:
    """A page of nothing takes a few bytes."""
    empty = struct(page(0, 0))
    many = made(empty * 20_001)
    with pytest.raises(PageError, match="more than 20000 pages"):
        size(many)
    assert size(made(empty * 19_000 + PAGE)) == len(CONTENT)


def test_columns_without_values_are_not_looked_at() -> None:
    stream = io.BytesIO()
    pq.write_table(pa.table({"user_id": pa.array([], pa.string())}), stream)
    footer = read_footer(stream.getvalue())
    assert unpacked_size(stream.getvalue(), footer) == 0
    assert unpacked_size(b"", Footer(footer.columns, (RowGroup(0, ()),))) == 0
