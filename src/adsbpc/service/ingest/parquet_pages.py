"""What a Parquet file holds and what its pages unpack to, before anything of it is unpacked.

Must never: trust a file. The usual reader makes room for whatever a page says, and some damaged
footers end its process; so footers and headers of pages are read here first. They are structs of
Thrift's compact protocol, whose fields have numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from adsbpc.errors import ServiceError

_MAGIC = b"PAR1"
_LONGEST_FOOTER = 2**19
_LONGEST_HEADER = 2**16
_MOST_PAGES = 20_000
_DEEPEST = 12

# Kinds of fields, by their number on the wire.
_TRUE, _FALSE, _BYTE, _SHORT, _INT, _LONG, _DOUBLE, _BYTES, _LIST, _SET = range(1, 11)
_STRUCT = 12
_INTEGERS = (_SHORT, _INT, _LONG)

BYTE_ARRAY: Final = 6
_REPEATED = 2
# Where a value may repeat the start of the one before, a small page can become anything; readers
# cannot make dictionaries of the other.
_REFUSED = {6: "DELTA_LENGTH_BYTE_ARRAY", 7: "DELTA_BYTE_ARRAY"}
# The parts of a page's header that tell an encoding, and its field there.
_ENCODINGS = ((5, 2), (7, 2), (8, 4))


class PageError(ServiceError):
    pass


@dataclass(frozen=True)
class Chunk:
    """Where the pages of a column are, and how many values they have."""

    start: int
    end: int
    values: int


@dataclass(frozen=True)
class RowGroup:
    rows: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True)
class FlatColumn:
    name: str
    physical_type: int


@dataclass(frozen=True)
class Footer:
    columns: tuple[FlatColumn, ...]
    groups: tuple[RowGroup, ...]

    @property
    def rows(self) -> int:
        return sum(group.rows for group in self.groups)


def read_footer(body: bytes) -> Footer:
    """The columns and row groups of a file of flat columns; every number in it fits the file."""
    if len(body) < 12 or body[:4] != _MAGIC or body[-4:] != _MAGIC:
        raise PageError("it does not start and end as Parquet does")
    length = int.from_bytes(body[-8:-4], "little")
    if length > min(_LONGEST_FOOTER, len(body) - 12):
        raise PageError(f"its footer has {length} bytes, more than the file or {_LONGEST_FOOTER}")
    footer = _Reader(memoryview(body)[len(body) - 8 - length : -8]).struct()
    root, elements = footer.list(2)[:1], footer.list(2)[1:]
    if not root or root[0].number(5, _INT) != len(elements):
        raise PageError("a column is nested")
    columns = tuple(_column(element) for element in elements)
    groups = tuple(_group(group, len(columns), len(body)) for group in footer.list(4))
    if footer.number(3, _LONG) != sum(group.rows for group in groups):
        raise PageError("it has another number of rows than its row groups")
    return Footer(columns, groups)


def unpacked_size(body: bytes, footer: Footer) -> int:
    """The bytes of all pages after unpacking, as their own headers say."""
    size = pages = 0
    for group in footer.groups:
        for chunk in group.chunks:
            for unpacked in _pages(body, chunk):
                pages += 1
                if pages > _MOST_PAGES:
                    raise PageError(f"it has more than {_MOST_PAGES} pages")
                size += unpacked
    return size


def _column(element: _Struct) -> FlatColumn:
    name = element.text(4)
    if element.has(5) or not element.has(1) or element.number(3, _INT) >= _REPEATED:
        raise PageError(f"column {name[:80]!r} is nested")
    return FlatColumn(name, element.number(1, _INT))


def _group(group: _Struct, columns: int, size: int) -> RowGroup:
    rows, chunks = group.number(3, _LONG), group.list(1)
    if len(chunks) != columns:
        raise PageError("a row group has another number of columns")
    found = []
    for chunk in chunks:
        column = chunk.struct(3)
        start = column.number(9, _LONG)
        if column.has(11) and 0 < column.number(11, _LONG) < start:
            start = column.number(11, _LONG)
        end = start + column.number(7, _LONG)
        # Readers make room for as many values as it says.
        if column.number(5, _LONG) != rows:
            raise PageError("a column has another number of values than rows")
        if not 0 <= start <= end <= size:
            raise PageError("a column is outside of the file")
        found.append(Chunk(start, end, rows))
    return RowGroup(rows, tuple(found))


def _pages(body: bytes, chunk: Chunk) -> Iterator[int]:
    # Without values it may point anywhere, and nothing of it is read.
    start = chunk.start if chunk.values else chunk.end
    while start < chunk.end:
        reader = _Reader(memoryview(body)[start : min(chunk.end, start + _LONGEST_HEADER)])
        header = reader.struct()
        for part, encoding in _ENCODINGS:
            if header.has(part):
                found = header.struct(part).number(encoding, _INT)
                if found in _REFUSED:
                    raise PageError(
                        f"encoding {_REFUSED[found]} is not taken. Use PLAIN, or dictionaries"
                    )
        yield header.number(2, _INT)
        start += reader.position + header.number(3, _INT)


class _Struct:
    """Fields by their number, each with the kind that it has on the wire: readers pass over one
    of another kind than they expect."""

    def __init__(self) -> None:
        self._fields: dict[int, tuple[int, Any]] = {}

    def put(self, number: int, kind: int, value: Any) -> None:
        if number in self._fields:
            raise PageError(f"field {number} is there twice")
        self._fields[number] = kind, value

    def has(self, number: int) -> bool:
        return number in self._fields

    def _get(self, number: int, kind: int) -> Any:
        found, value = self._fields.get(number, (None, None))
        if found != kind:
            raise PageError(f"field {number} is missing, or of another kind")
        return value

    def number(self, number: int, kind: int) -> int:
        value = int(self._get(number, kind))
        if value < 0:
            raise PageError(f"field {number} is {value}, less than 0")
        return value

    def text(self, number: int) -> str:
        return bytes(self._get(number, _BYTES)).decode(errors="replace")

    def struct(self, number: int) -> _Struct:
        found: _Struct = self._get(number, _STRUCT)
        return found

    def list(self, number: int) -> list[_Struct]:
        """A list of structs."""
        found: list[Any] = self._get(number, _LIST)
        if not all(isinstance(each, _Struct) for each in found):
            raise PageError(f"field {number} lists something else")
        return found


class _Reader:
    """Thrift's compact protocol, as far as Parquet uses it."""

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self.position = 0

    def struct(self, deepest: int = _DEEPEST) -> _Struct:
        found = _Struct()
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 0x0F
            number = number + step if step else self._integer()
            value = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, deepest)
            found.put(number, kind, value)
        return found

    def _value(self, kind: int, deepest: int) -> Any:
        if not deepest:
            raise PageError("it is nested too deep")
        if kind in _INTEGERS:
            return self._integer()
        if kind == _STRUCT:
            return self.struct(deepest - 1)
        if kind == _BYTES:
            return self._take(self._unsigned())
        if kind in (_LIST, _SET):
            head = self._byte()
            length = head >> 4 if head >> 4 < 15 else self._unsigned()
            # Each element takes a byte at least.
            if length > len(self._content) - self.position:
                raise PageError("a list is cut off")
            return [self._value(head & 0x0F, deepest - 1) for _ in range(length)]
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind == _DOUBLE:
            return self._take(8)
        raise PageError(f"it has a field of kind {kind}")

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, length: int) -> memoryview:
        taken = self._content[self.position : self.position + length]
        if len(taken) < length:
            raise PageError("it is cut off")
        self.position += length
        return taken

    def _unsigned(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise PageError("it has a number that is too long")

    def _integer(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
