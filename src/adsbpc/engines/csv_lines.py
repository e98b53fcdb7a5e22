"""CSV a line at a time: a line is a row, and whether it can be read depends on that line alone.

RFC 4180 with one thing less: a field holds no line break. With them, one open quote would swallow
the rows of everybody after it. Nothing is guessed from the data: delimiter and quote are declared,
the first line names the columns, every field is text. A line that cannot be read becomes a row of
nulls with its reason in the column UNREADABLE.

`spark_lines` says the same in SQL, for clusters; a test holds the two together.

Must never: let one line decide how another is read.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from io import BufferedIOBase

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from adsbpc.engines.csv_dialect import (
    CONTROL,
    LONGEST_LINE,
    NOT_UTF8,
    OPEN_QUOTE,
    OTHER_FIELDS,
    TOO_LONG,
    UNREADABLE,
    CsvDialect,
    Header,
)

_BLOCK = 16 * 2**20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def header_of(first_line: bytes, dialect: CsvDialect) -> Header:
    """Raises ValueError, with what is wrong, for a line that names no columns."""
    line = first_line.removeprefix(_BYTE_ORDER_MARK).removesuffix(b"\n").removesuffix(b"\r")
    if not line:
        return Header(line, ())
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("a first line that is not valid UTF-8") from None
    if "\r" in text or "\0" in text:
        raise ValueError("a first line with a NUL or a carriage return in it")
    try:
        (names,) = csv.reader(
            [text], delimiter=dialect.delimiter, quotechar=dialect.quote or None,
            quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE, strict=True,
        )  # fmt: skip
    except csv.Error as error:
        raise ValueError(f"a first line that cannot be read ({error})") from None
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"the column {twice[0]!r} more than once")
    return Header(line, tuple(names))


def rows_of(
    lines: pa.Array,
    header: Header,
    dialect: CsvDialect,
    wanted: Sequence[str],
) -> pa.Table:
    """The rows of a binary array of lines, cut at line feeds: the wanted columns as text, and
    UNREADABLE. Empty lines and repeats of the header are no rows."""
    returned = pc.ends_with(lines, b"\r")
    if returned.true_count:
        lines = pc.if_else(returned, pc.binary_slice(lines, 0, -1), lines)
    is_row = pc.and_(
        pc.greater(pc.binary_length(lines), 0), pc.not_equal(lines, pa.scalar(header.line))
    )
    if not _all(is_row):
        lines = lines.filter(is_row)
    reasons = _reasons(lines, header, dialect)
    is_good = reasons.is_null()
    good = lines if _all(is_good) else lines.filter(is_good)
    read = _read(good, header, dialect, wanted)
    bad = reasons.drop_null()
    unread = {name: pa.nulls(len(bad), pa.string()) for name in wanted}
    return pa.concat_tables(
        [
            pa.table({**read, UNREADABLE: pa.nulls(len(good), pa.string())}),
            pa.table({**unread, UNREADABLE: bad}),
        ]
    )


def tables_of(
    file: BufferedIOBase, header: Header, dialect: CsvDialect, wanted: Sequence[str]
) -> Iterator[pa.Table]:
    """The rows of a whole file, some megabytes at a time."""
    skipping, left = False, b""
    while True:
        block = file.read(_BLOCK)
        if not block and left:
            block, is_last = b"\n", True
        else:
            is_last = not block
        if skipping:
            # The rest of a line that was too long long ago.
            _, found, block = block.partition(b"\n")
            skipping = not found
        whole, found, left = (left + block).rpartition(b"\n")
        if found:
            yield rows_of(_lines_of(whole + b"\n"), header, dialect, wanted)
        if len(left) > LONGEST_LINE:
            # One more byte than is allowed is enough to refuse it.
            yield rows_of(pa.array([left[: LONGEST_LINE + 1]]), header, dialect, wanted)
            skipping, left = True, b""
        if is_last:
            return


def _lines_of(block: bytes) -> pa.Array:
    """The lines of a block that ends with one, without line feeds."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
    offsets = np.concatenate([[0], ends - np.arange(len(ends))]).astype(np.int64)
    data = pa.py_buffer(block.replace(b"\n", b""))
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(ends), [None, pa.py_buffer(offsets), data]
    )


def _reasons(lines: pa.Array, header: Header, dialect: CsvDialect) -> pa.Array:
    """Why each line cannot be read; null for those that can."""
    too_long = pc.greater(pc.binary_length(lines), LONGEST_LINE)
    texts, broken = valid_texts(pc.if_else(too_long, pa.scalar(b"", lines.type), lines))
    control = pc.or_(pc.match_substring(texts, "\0"), pc.match_substring(texts, "\r"))
    # Delimiters inside quotes are none.
    outside = texts
    open_quote = pa.scalar(False)
    if dialect.quote and pc.any(pc.match_substring(texts, dialect.quote)).as_py():
        field, delimiter = dialect.field(), re.escape(dialect.delimiter)
        open_quote = pc.invert(pc.match_substring_regex(texts, f"^{field}(?:{delimiter}{field})*$"))
        outside = pc.replace_substring_regex(texts, dialect.quoted(), "")
    delimiters = pc.count_substring(outside, dialect.delimiter)
    reasons = pa.nulls(len(lines), pa.string())
    # The first that holds is told.
    for holds, reason in (
        (pc.not_equal(delimiters, len(header.names) - 1), OTHER_FIELDS),
        (open_quote, OPEN_QUOTE),
        (control, CONTROL),
        (broken, NOT_UTF8),
        (too_long, TOO_LONG),
    ):
        reasons = pc.if_else(holds, reason, reasons)
    return reasons


def valid_texts(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Binary values as texts, empty where they are not valid UTF-8, and where that is."""
    text = pa.large_string() if pa.types.is_large_binary(values.type) else pa.string()
    try:
        return values.cast(text), pa.array(np.zeros(len(values), dtype=bool))
    except pa.ArrowInvalid:
        pass
    broken = pa.array([value is not None and not _is_utf8(value) for value in values.to_pylist()])
    return pc.if_else(broken, pa.scalar(b"", values.type), values).cast(text), broken


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _read(
    lines: pa.Array, header: Header, dialect: CsvDialect, wanted: Sequence[str]
) -> dict[str, pa.Array]:
    """Fields of lines that were found to be whole and to have as many as the header."""
    if len(lines) == 0:
        return {name: pa.array([], pa.string()) for name in wanted}
    offsets = np.array([0, len(lines)], dtype=np.int64)
    together = pa.LargeListArray.from_arrays(pa.array(offsets), lines)
    joined = pc.binary_join(together, pa.scalar(b"\n", lines.type))[0].as_buffer()
    # By place, because a header may hold names that nobody asked for, and no name at all.
    places = [str(place) for place in range(len(header.names))]
    table = arrow_csv.read_csv(
        pa.BufferReader(joined),
        arrow_csv.ReadOptions(column_names=places, block_size=max(len(joined), 1)),
        arrow_csv.ParseOptions(
            delimiter=dialect.delimiter,
            quote_char=dialect.quote or False,
            double_quote=True,
            escape_char=False,
            newlines_in_values=False,
            ignore_empty_lines=False,
        ),
        arrow_csv.ConvertOptions(
            column_types={place: pa.string() for place in places},
            include_columns=[places[header.names.index(name)] for name in wanted],
            strings_can_be_null=False,
        ),
    )
    if table.num_rows != len(lines):
        raise AssertionError(f"{len(lines)} lines gave {table.num_rows} rows")
    return {
        name: column.combine_chunks() for name, column in zip(wanted, table.columns, strict=True)
    }


def _all(mask: pa.Array) -> bool:
    return bool(mask.true_count == len(mask))
