"""Footers and pages that lie, made by hand: each is answered, and so is who comes next."""

from __future__ import annotations

import io
import resource
import zlib
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from adsbpc.service.http.problems import Problem
from adsbpc.service.ingest import bodies
from adsbpc.service.ingest.bodies import PARQUET, check_body
from adsbpc.service.ingest.rows import Checked
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


def checked(body: bytes) -> Checked:
    return check_body(body, PARQUET, "impressions", "P-1", 0, IngestSection())


def test_what_is_made_by_hand_is_parquet() -> None:
    assert pq.read_table(io.BytesIO(made())).to_pylist() == [{"user_id": "u1"}, {"user_id": "u2"}]
    assert checked(made()).rows == 2
    assert checked(made(TWO_PAGES)).rows == 2


NESTED: list[Field] = [(4, BYTES, b"user_id"), (5, INT, 1), (3, INT, 0)]
REPEATED: list[Field] = [(1, INT, 6), (3, INT, 2), (4, BYTES, b"user_id")]
TWO_PAGES = struct(page(6, 6, 1)) + CONTENT[:6] + struct(page(6, 6, 1)) + CONTENT[6:]


@pytest.mark.parametrize(
    "body",
    [
        made(rows=3),
        made(column=[(5, LONG, -2)]),
        made(group_rows=-2),
        made(chunks=0),
        made(column=[(7, LONG, 2**20)]),
        made(column=[(9, LONG, 2**20)]),
        made(column=[(7, LONG, -1)]),
        made(column=[(9, INT, 4)]),
        made(elements=[NESTED, ELEMENT], root=[(4, BYTES, b"s"), (5, INT, 1)]),
        made(elements=[NESTED]),
        made(elements=[REPEATED]),
        made(PAGE[:10]),
        made(struct(page(12, -12)) + CONTENT),
        made(struct(page(-12, 12)) + CONTENT),
        made(struct(page(12, 12, encoding=7)) + CONTENT),
        made(struct([(1, INT, 0), (2, LONG, 12), (3, INT, 12)]) + CONTENT),
        made(b"\x15\0"),
        made(b"\x15" + b"\xff" * 20),
        made(b"\x0f" * 20),
        b"PAR1",
        b"",
        b"PAR1" + b"\xff\xff\xff\xff" + b"PAR1",
        b"PAR1" + bytes(100) + b"\x60\0\0\0" + b"PAR1",
    ],
)
def test_files_that_lie_are_refused(body: bytes) -> None:
    with pytest.raises(Problem) as caught:
        checked(body)
    assert caught.value.status == 400
    assert checked(made()).rows == 2, "who comes next is not answered"


@pytest.mark.parametrize(
    "body",
    [
        made(column=[(5, LONG, 2**40)]),
        made(chunks=2),
        made(column=[(11, INT, 4)]),
        made(column=[(9, LONG, 4), (9, LONG, 4)]),
        made(more=[(3, LONG, 2)]),
    ],
)
def test_lies_that_the_reader_passes_over_change_nothing(body: bytes) -> None:
    table, reasons = bodies._decoder.table_of(body, "impressions", IngestSection())
    assert table["user_id"].to_pylist() == ["u1", "u2"]
    assert reasons == {}


def test_rows_that_are_not_there_are_counted() -> None:
    with pytest.raises(Problem) as caught:
        checked(made(rows=2**40, group_rows=2**40))
    assert caught.value.status == 413


def nested(depth: int) -> Any:
    return (LIST, [nested(depth - 1)] if depth else [])


def test_what_is_nested_without_end_is_answered() -> None:
    deep: list[Field] = []
    for _ in range(300):
        deep = [(1, STRUCT, deep)]
    for more in ((20, LIST, nested(300)), (20, STRUCT, deep)):
        answered(made(more=[more]))


def test_a_list_longer_than_the_file_is_answered() -> None:
    body = made(more=[(20, BYTES, b"")])
    (at,) = [k for k in range(len(body)) if body[k : k + 3] == bytes([BYTES, 40, 0])]
    long = body[:at] + bytes([LIST, 40, 0xF0 | INT]) + varint(2**40) + b"\0"
    footer = long[4 + len(PAGE) :]
    answered(long + len(footer).to_bytes(4, "little") + b"PAR1")


def answered(body: bytes) -> int:
    """The status, or 200; the next file is read in any case."""
    status = 200
    try:
        assert checked(body).rows <= IngestSection().max_rows
    except Problem as problem:
        status = problem.status
    assert status in (200, 400, 413)
    assert checked(made()).rows == 2
    return status


def test_a_page_that_unpacks_to_more_than_the_footer_says_finds_no_memory() -> None:
    """The footer says a few bytes, the page half a gigabyte, which zeros packed by gzip become."""
    unpacker = zlib.compressobj(level=1, wbits=16 + zlib.MAX_WBITS)
    packed = b"".join(unpacker.compress(bytes(2**24)) for _ in range(30)) + unpacker.flush()
    assert len(packed) < 4 * 2**20
    body = made(struct(page(30 * 2**24, len(packed))) + packed, column=[(4, INT, 2)])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(Problem) as caught:
        checked(body)
    assert caught.value.status == 413
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**16, "in kilobytes"
    assert largest_reader() < 2**19, "kilobytes: half a gigabyte"


def largest_reader() -> int:
    """What the reader had at most, in kilobytes."""
    process = bodies._decoder._process
    assert process is not None
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def test_many_pages_of_nothing_are_answered() -> None:
    """Each takes a few bytes."""
    answered(made(struct(page(0, 0)) * 200_000 + PAGE))
