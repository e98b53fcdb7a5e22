"""`csv_lines` in the SQL of Spark, over a column `value` of lines that were cut at line feeds.

Must never: look at two lines at once. Patterns are possessive, because Java's others go as deep as
a line is long, and a long line would stop everybody.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from adsbpc.engines.base import quote_text
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

_READABLE = f"`{UNREADABLE}` IS NULL"

# Lines may end in a carriage return and a line feed. Bytes that are no text are left as they are.
LINE_END = (
    "CASE WHEN is_valid_utf8(value) AND endswith(value, chr(13))"
    " THEN left(value, char_length(value) - 1) ELSE value END"
)


@dataclass(frozen=True)
class LineParsing:
    """Expressions over `value`, a line without its end."""

    dialect: CsvDialect
    header: Header

    def is_row(self) -> str:
        """Empty lines and repeats of the header are no rows."""
        return f"value <> '' AND value <> {quote_text(self.header.line.decode())}"

    def reason(self) -> str:
        """Why a line cannot be read; null if it can."""
        rules = [
            (f"octet_length(value) > {LONGEST_LINE}", TOO_LONG),
            ("NOT is_valid_utf8(value)", NOT_UTF8),
            ("contains(value, chr(0)) OR contains(value, chr(13))", CONTROL),
            (f"size({self._fields()}) <> {len(self.header.names)}", OTHER_FIELDS),
        ]
        if self.dialect.quote:
            field, delimiter = self._field(), re.escape(self.dialect.delimiter)
            whole = quote_text(f"^{field}(?:{delimiter}{field})*+$")
            rules.insert(
                3, (f"{self._is_quoted()} AND NOT regexp_like(value, {whole})", OPEN_QUOTE)
            )
        return f"CASE {' '.join(f'WHEN {rule} THEN {quote_text(why)}' for rule, why in rules)} END"

    def field(self, name: str) -> str:
        """A field of a line that can be read, without its quotes."""
        place = self.header.names.index(name)
        value = f"get({self._fields()}, {place})"
        if self.dialect.quote:
            quote = quote_text(self.dialect.quote)
            inside = f"substr({value}, 2, char_length({value}) - 2)"
            value = (
                f"CASE WHEN startswith({value}, {quote})"
                f" THEN replace({inside}, {quote_text(self.dialect.quote * 2)}, {quote})"
                f" ELSE {value} END"
            )
        return f"CASE WHEN {_READABLE} THEN {value} END"

    def _is_quoted(self) -> str:
        return f"contains(value, {quote_text(self.dialect.quote)})"

    def _fields(self) -> str:
        delimiter = self.dialect.delimiter
        plain = f"split(value, {quote_text(re.escape(delimiter))}, -1)"
        if not self.dialect.quote:
            return plain
        # With a delimiter before each field, no match is empty.
        each = quote_text(f"{re.escape(delimiter)}({self._field()})")
        quoted = f"regexp_extract_all({quote_text(delimiter)} || value, {each}, 1)"
        return f"CASE WHEN {self._is_quoted()} THEN {quoted} ELSE {plain} END"

    def _field(self) -> str:
        quote, delimiter = re.escape(self.dialect.quote), re.escape(self.dialect.delimiter)
        inside = f"[^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+"
        return f"(?:{quote}{inside}{quote}|[^{quote}{delimiter}]*+)"
