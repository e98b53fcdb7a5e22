"""The words of the portable SQL in Spark's own, written into a text where it uses them.

Functions that Spark's catalog holds would do the same. But Spark plans each call of one as a step
of its own, and a text calls dozens: on small data that was a third of all the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Each argument stands once, so that nothing is computed twice.
_BODIES = {
    "whole_div": "CAST(CAST({0} AS BIGINT) div CAST({1} AS BIGINT) AS BIGINT)",
    "wide": "CAST({0} AS DECIMAL(38, 0))",
    "high": "CAST(CAST({0} AS DECIMAL(38, 0)) div 9007199254740992 AS BIGINT)",
    "low": "CAST(CAST({0} AS DECIMAL(38, 0)) % 9007199254740992 AS BIGINT)",
    "wide_of": (
        "CAST(CAST(CAST({0} AS BIGINT) AS DECIMAL(38, 0))"
        " * CAST(9007199254740992 AS DECIMAL(38, 0))"
        " + CAST(CAST({1} AS BIGINT) AS DECIMAL(38, 0)) AS DECIMAL(38, 0))"
    ),
    "micros": "unix_micros(CAST({0} AS TIMESTAMP))",
    "timestamp_of": "timestamp_micros(CAST({0} AS BIGINT))",
    "moment_text": (
        "date_format(timestamp_micros(CAST({0} AS BIGINT)), 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
    ),
    "is_text": "is_valid_utf8(CAST({0} AS STRING))",
    "fingerprint": "xxhash64(CAST({0} AS STRING), CAST({1} AS STRING))",
    "sha256_digits": "sha2(CAST({0} AS STRING), 256)",
    "sha256_number": "CAST(conv(substr(sha2(CAST({0} AS STRING), 256), 1, 13), 16, 10) AS BIGINT)",
}

# Quoted texts and names are left alone, whatever is inside.
_PIECES = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`"""
    rf"|(?<![\w.])(?:{'|'.join(_BODIES)})\(|[(),]"
)


def in_words_of_spark(sql: str) -> str:
    """A portable text without any of these functions."""
    out: list[str] = []
    # What is open: how the text went on before it, and of a function its name and arguments so far.
    opened: list[tuple[list[str], str | None, list[str]]] = []
    for piece, is_sign in _pieces(sql):
        if is_sign and piece.endswith("("):
            name = piece[:-1] or None
            opened.append((out, name, []))
            out = []
        elif is_sign and piece == "," and opened and opened[-1][1] is not None:
            opened[-1][2].append("".join(out))
            out = []
        elif is_sign and piece == ")" and opened:
            before, name, arguments = opened.pop()
            inside = "".join(out)
            before.append(f"({inside})" if name is None else _call(name, [*arguments, inside]))
            out = before
        else:
            out.append(piece)
    return "".join(out)


def _pieces(sql: str) -> Iterator[tuple[str, bool]]:
    """Pieces of a text in order, and whether each is a bracket, a comma or the start of a call."""
    end = 0
    for found in _PIECES.finditer(sql):
        yield sql[end : found.start()], False
        yield found[0], found[0][0] not in "'\"`"
        end = found.end()
    yield sql[end:], False


def _call(name: str, arguments: list[str]) -> str:
    return _BODIES[name].format(*(each.strip() for each in arguments))
