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
    CsvDialect,
    Header,
)

# Lines may end in a carriage return and a line feed. Bytes that are no text are left as they are.
LINE_END = (
    "CASE WHEN is_valid_utf8(value) AND endswith(value, chr(13))"
    " THEN left(value, char_length(value) - 1) ELSE value END"
)


@dataclass(frozen=True)
class LineParsing:
    """Steps from a column `value`, a line without its end, to fields. Each is a projection of its
    own, so that fields are cut once, however many columns are wanted."""

    dialect: CsvDialect
    header: Header

    def is_row(self) -> str:
        """Empty lines and repeats of the header are no rows."""
        return f"value <> '' AND value <> {quote_text(self.header.line.decode())}"

    def broken(self) -> str:
        """Step 1: why a line cannot be cut into fields; null if it can."""
        rules = [
            (f"octet_length(value) > {LONGEST_LINE}", TOO_LONG),
            ("NOT is_valid_utf8(value)", NOT_UTF8),
            ("contains(value, chr(0)) OR contains(value, chr(13))", CONTROL),
        ]
        if self.dialect.quote:
            field, delimiter = self._field(), re.escape(self.dialect.delimiter)
            whole = quote_text(f"^{field}(?:{delimiter}{field})*+$")
            rules.append((f"{self._is_quoted()} AND NOT regexp_like(value, {whole})", OPEN_QUOTE))
        return f"CASE {' '.join(f'WHEN {rule} THEN {quote_text(why)}' for rule, why in rules)} END"

    def fields(self) -> str:
        """Step 2: the fields of a line that is not `broken`."""
        delimiter = self.dialect.delimiter
        cut = f"split(value, {quote_text(re.escape(delimiter))}, -1)"
        if self.dialect.quote:
            # With a delimiter before each field, no match is empty.
            each = quote_text(f"{re.escape(delimiter)}({self._field()})")
            quoted = f"regexp_extract_all({quote_text(delimiter)} || value, {each}, 1)"
            cut = f"CASE WHEN {self._is_quoted()} THEN {quoted} ELSE {cut} END"
        return f"CASE WHEN broken IS NULL THEN {cut} END"

    def unreadable(self) -> str:
        """Step 3: the reason of a line that cannot be read, whatever it is."""
        return f"coalesce(broken, CASE WHEN NOT {self._is_whole()} THEN '{OTHER_FIELDS}' END)"

    def field(self, name: str) -> str:
        """Step 3: a field of a line that can be read, without its quotes."""
        value = f"get(fields, {self.header.names.index(name)})"
        if self.dialect.quote:
            quote = quote_text(self.dialect.quote)
            inside = f"substr({value}, 2, char_length({value}) - 2)"
            value = (
                f"CASE WHEN startswith({value}, {quote})"
                f" THEN replace({inside}, {quote_text(self.dialect.quote * 2)}, {quote})"
                f" ELSE {value} END"
            )
        return f"CASE WHEN {self._is_whole()} THEN {value} END"

    def _is_whole(self) -> str:
        return f"size(fields) = {len(self.header.names)}"

    def _is_quoted(self) -> str:
        return f"contains(value, {quote_text(self.dialect.quote)})"

    def _field(self) -> str:
        quote, delimiter = re.escape(self.dialect.quote), re.escape(self.dialect.delimiter)
        inside = f"[^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+"
        return f"(?:{quote}{inside}{quote}|[^{quote}{delimiter}]*+)"
