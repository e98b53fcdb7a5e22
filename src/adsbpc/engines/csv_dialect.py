"""How CSV files are written, as a campaign file declares it, and the column for what is not so."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A column beside those that were asked for: why a row could not be read, null for all others.
UNREADABLE = "adsbpc: unreadable"

NOT_UTF8 = "a text is not valid UTF-8"
TOO_LONG = "line is longer than 1 MiB"
CONTROL = "line holds a NUL or a carriage return"
OPEN_QUOTE = "quotes do not match"
OTHER_FIELDS = "another number of fields than the header has"

LONGEST_LINE = 2**20


@dataclass(frozen=True)
class CsvDialect:
    """What the campaign file declares. An empty `quote` means that quotes are plain characters."""

    delimiter: str = ","
    quote: str = '"'

    def __str__(self) -> str:
        return f"delimiter {self.delimiter!r}, quote {self.quote!r}"

    def field(self) -> str:
        """A pattern for one field."""
        plain = f"[^{re.escape(self.quote)}{re.escape(self.delimiter)}]*"
        return f"(?:{self.quoted()}|{plain})"

    def quoted(self) -> str:
        """A pattern for a field in quotes, where they are declared."""
        quote = re.escape(self.quote)
        return f"{quote}(?:[^{quote}]|{quote}{quote})*{quote}"


@dataclass(frozen=True)
class Header:
    """The first line of a file, as it stands there and as names."""

    line: bytes
    names: tuple[str, ...]
