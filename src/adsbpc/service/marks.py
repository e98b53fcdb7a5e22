"""Marks of event ids: hashes of 64 bits under a key that the service's database keeps.

Must never: be made without the key, or whoever chooses ids could choose two that are taken for one.
"""

from __future__ import annotations

import secrets
from hashlib import shake_256
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite

from adsbpc.ledger.database import Database
from adsbpc.service.rows import LONGEST_TEXT
from adsbpc.service.store import salts

Marks = npt.NDArray[np.uint64]

_NAME = "event ids"
# As they are stored, on whatever machine.
STORED_MARKS: Final = np.dtype("<u8")
_WORD: Final = np.dtype("<u4")
# Two ids of characters of up to four bytes, and what stands between them.
_MOST_WORDS: Final = (2 * 4 * LONGEST_TEXT + 1) // _WORD.itemsize + 1
_AT_ONCE: Final = 8_192
_HALF: Final = np.uint64(32)
_KEEP_SALT: Final = {
    "postgresql": postgresql.insert(salts).on_conflict_do_nothing(),
    "sqlite": sqlite.insert(salts).on_conflict_do_nothing(),
}


class Marker:
    """Marks by a salt. Two different pairs of ids have the same mark with a chance of 2**-64,
    whoever chose them without knowing the salt.

    MULTILINEAR of Lemire and Kaser, "Strongly universal string hashing is fast" (2014), twice:
    the upper 32 bits of k0 + k1 w1 + k2 w2 + ... modulo 2**64, over words of 32 bits. Words of
    zeros add nothing, so that texts of different lengths may be padded with them.
    """

    def __init__(self, salt: str) -> None:
        content = shake_256(salt.encode()).digest(2 * STORED_MARKS.itemsize * (_MOST_WORDS + 1))
        keys = np.frombuffer(content, STORED_MARKS).reshape(-1, 2)
        self._first, self._others = keys[0], keys[1:]

    def marks(self, table: pa.Table) -> tuple[Marks, npt.NDArray[np.intp]]:
        """Of the rows that have an event id, and the places of these rows."""
        # No id holds a NUL, and none is empty: no two pairs of ids give one text.
        texts = pc.binary_join_element_wise(table["user_id"], table["event_id"], "\0")
        places = np.arange(len(texts))
        if texts.null_count:
            places = np.flatnonzero(texts.is_valid())
            texts = texts.drop_null()
        parts = [
            self._marks(texts.slice(first, _AT_ONCE).cast(pa.binary()))
            for first in range(0, len(texts), _AT_ONCE)
        ]
        return np.concatenate([np.empty(0, np.uint64), *parts]), places

    def _marks(self, texts: pa.ChunkedArray) -> Marks:
        width = -(-pc.max(pc.binary_length(texts)).as_py() // _WORD.itemsize)
        padded = np.array(texts.to_pylist(), f"S{width * _WORD.itemsize}")
        words = padded.view(_WORD).reshape(-1, width).astype(np.uint64)
        sums = (words @ self._others[:width] + self._first) >> _HALF
        marks: Marks = (sums[:, 0] << _HALF) | sums[:, 1]
        return marks


def marker_of(store: Database) -> Marker:
    """The same on every server of this database, and after every start."""
    wanted = select(salts.c.salt).where(salts.c.name == _NAME)
    with store.reading() as connection:
        salt = connection.execute(wanted).scalar_one_or_none()
    if salt is None:
        with store.writing("salts") as connection:
            made = {"name": _NAME, "salt": secrets.token_hex(32)}
            connection.execute(_KEEP_SALT[connection.dialect.name], made)
            # Another server may have been faster.
            salt = connection.execute(wanted).scalar_one()
    return Marker(salt)
