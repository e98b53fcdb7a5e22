"""Decodes Parquet bodies in a process of its own, which knows Arrow and nothing of the service.

The usual reader makes room for whatever a page says, and some damaged files end its process. So it
runs here, on Linux with a limit on memory; whoever started it has a limit on time, and starts it
again.

    in     what is asked, as JSON; the body
    out    the reasons of rows that are known to be bad, or a refusal, as JSON; a table, as Arrow's
"""

from __future__ import annotations

import json
import resource
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

# Besides what is unpacked, columns are held a second time while they are converted, and read from
# a body. A file whose footer tells less than its pages unpack to ends at this.
_TIMES_UNPACKED, _MORE_BYTES = 4, 64 * 2**20
_MOMENT = pa.timestamp("us", "UTC")
# Where a value may repeat the start of the one before, a small page can become anything; the reader
# cannot make dictionaries of the other.
_REFUSED_ENCODINGS = {"DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"}

Asked = dict[str, Any]


class Refusal(Exception):  # noqa: N818 (an answer, not a failure)
    def __init__(self, detail: str, title: str = "Unusable Parquet", status: int = 400) -> None:
        self.answer = {"status": status, "title": title, "detail": detail}


def serve(connection: Connection) -> None:
    """Until whoever asks is gone."""
    # Memory that is dumped would hold events.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    own_bytes = _own_bytes()
    connection.send_bytes(b"up")
    while True:
        try:
            asked, body = json.loads(connection.recv_bytes()), connection.recv_bytes()
        except EOFError:
            return
        if own_bytes:
            _, most = resource.getrlimit(resource.RLIMIT_AS)
            room = _TIMES_UNPACKED * asked["max_bytes"] + len(body) + _MORE_BYTES
            resource.setrlimit(resource.RLIMIT_AS, (own_bytes + room, most))
        answer, table = _answer(asked, body)
        connection.send_bytes(json.dumps(answer).encode())
        connection.send_bytes(table)


def _own_bytes() -> int:
    """What this process has before any body; 0 where that cannot be known, and no limit holds."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[0]
    except FileNotFoundError:
        return 0
    return int(pages) * resource.getpagesize()


def _answer(asked: Asked, body: bytes) -> tuple[dict[str, Any], bytes | pa.Buffer]:
    try:
        table, reasons = decoded(asked, body)
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, table.schema) as writer:
            writer.write_table(table)
        return {"reasons": reasons}, stream.getvalue()
    except Refusal as refusal:
        return refusal.answer, b""
    except MemoryError:
        limit = asked["max_bytes"]
        detail = f"it takes more memory than [ingest] max_unpacked_bytes, {limit}, allows"
        return Refusal(detail, "Too large", 413).answer, b""
    except (pa.ArrowException, OSError, ValueError) as error:
        return Refusal(" ".join(str(error).split())[:200]).answer, b""


def decoded(asked: Asked, body: bytes) -> tuple[pa.Table, dict[int, str]]:
    """The columns that are known, and the reasons of rows whose texts cannot be decoded."""
    metadata = pq.read_metadata(pa.BufferReader(body))
    texts = _check_footer(metadata, asked)
    # Dictionaries first: a value that is repeated ten thousand times is held once.
    file = pq.ParquetFile(pa.BufferReader(body), pre_buffer=False, read_dictionary=texts)
    table = file.read(use_threads=False)
    if table.num_rows != metadata.num_rows:
        raise Refusal("it has another number of rows than its footer says")
    reasons: dict[int, str] = {}
    columns = {
        name: _column(table, name, kind, asked["longest_text"], reasons)
        for name, kind in asked["fields"].items()
    }
    return pa.table(columns), reasons


def _check_footer(metadata: Any, asked: Asked) -> list[str]:
    """Refuse what is too large, and columns that are unknown, repeated or nested; returns the names
    of those that may be text."""
    if metadata.num_rows > asked["max_rows"]:
        raise Refusal(
            f"the batch has {metadata.num_rows} rows, and [ingest] max_rows is {asked['max_rows']}",
            "Too many rows",
            413,
        )
    known, size = asked["fields"], 0
    columns = [metadata.schema.column(place) for place in range(metadata.num_columns)]
    names = [column.path.partition(".")[0] for column in columns]
    for column, name in zip(columns, names, strict=True):
        if name not in known:
            raise Refusal(f"unknown column {name[:80]!r}; known are {', '.join(known)}")
        if column.path != name or column.max_repetition_level:
            raise Refusal(f"column {name!r} is nested")
        if names.count(name) > 1:
            raise Refusal(f"column {name!r} is there twice")
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for chunk in map(group.column, range(metadata.num_columns)):
            size += chunk.total_uncompressed_size
            for encoding in _REFUSED_ENCODINGS.intersection(chunk.encodings):
                raise Refusal(f"encoding {encoding} is not taken. Use PLAIN, or dictionaries")
    if size > asked["max_bytes"]:
        raise Refusal(
            f"it unpacks to {size} bytes, and [ingest] max_unpacked_bytes is {asked['max_bytes']}",
            "Too large",
            413,
        )
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]


def _column(
    table: pa.Table, name: str, kind: str, longest: int, reasons: dict[int, str]
) -> pa.ChunkedArray | pa.Array:
    """One of the kinds "text", "moment", which may come as text, and "number"."""
    none = pa.nulls(
        table.num_rows, {"text": pa.string(), "moment": _MOMENT, "number": pa.float64()}[kind]
    )
    if name not in table.column_names:
        return none
    column = table.column(name)
    if pa.types.is_null(column.type):
        return none
    if kind == "number":
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            raise Refusal(f"column {name!r} is {column.type}, not a number")
        return column.cast(pa.float64(), safe=False)
    if kind == "moment" and pa.types.is_timestamp(column.type):
        if column.type.tz is None:
            raise Refusal(f"column {name!r} has no zone")
        return column.cast(_MOMENT, safe=False)
    return _texts(column, name, longest, reasons)


def _texts(
    column: pa.ChunkedArray, name: str, longest: int, reasons: dict[int, str]
) -> pa.ChunkedArray:
    """Texts, each at most one character longer than any may be."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise Refusal(f"column {name!r} is {column.type}, not text")
    chunks = []
    start = 0
    for chunk in column.chunks:
        values = _valid(chunk.dictionary)
        broken = values.is_null()
        if broken.true_count:
            bad = pc.and_(broken.take(chunk.indices), chunk.indices.is_valid())
            for number in pc.indices_nonzero(bad).to_pylist():
                reasons.setdefault(start + number, f"{name} is not valid UTF-8")
        chunks.append(pc.utf8_slice_codeunits(values, 0, longest + 1).take(chunk.indices))
        start += len(chunk)
    return pa.chunked_array(chunks, pa.string())


def _valid(values: pa.Array) -> pa.Array:
    """The same texts; null where bytes are no UTF-8."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array(
            [_text(value) for value in values.cast(pa.binary()).to_pylist()], pa.string()
        )
    return values


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
