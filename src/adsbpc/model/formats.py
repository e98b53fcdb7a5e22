"""Numbers of stored formats: how something that is read again was written.

Every stored thing has one. Those that were written before there were numbers have format 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def format_of(content: Mapping[str, Any], newest: int) -> int:
    """The number that a stored object carries, if this version can read it."""
    found = content.get("format", 1)
    if type(found) is not int or not 1 <= found <= newest:
        known = "format 1" if newest == 1 else f"formats 1 to {newest}"
        raise ValueError(f"format {found!r}: this adsbpc reads {known}. Upgrade adsbpc")
    return found
