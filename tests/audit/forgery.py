"""A ledger and books that somebody changed who knows how they are sealed: hashes, chain and
published files are made to agree again, so that only arithmetic can tell."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from adsbpc.ledger.entries import Entry, hash_of
from tests.audit.exact import Exact
from tests.campaign.book_files import FILES, slot_folder

NAMES, CELLS, CUT, REST, USERS = FILES
HALF = 2**53

Row = dict[str, Any]


class Forgery:
    """Rows of a ledger and of books, to be changed at will; `finish` writes them back."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with self._ledger() as connection:
            connection.row_factory = sqlite3.Row
            found = connection.execute("SELECT * FROM adsbpc_entries ORDER BY position")
            self.entries: list[Row] = [dict(row) for row in found]
        self.bodies = [json.loads(row["body"]) if row["body"] else None for row in self.entries]
        self.slots = max(row["slot"] for row in self.entries)
        self._files: dict[Path, tuple[pa.Schema, list[Row]]] = {}

    def _ledger(self) -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(self.directory / "ledger.sqlite"))

    # ---- what stands there ---------------------------------------------------------------------

    def _body(self, kind: str, slot: int) -> Row:
        (found,) = [
            body
            for row, body in zip(self.entries, self.bodies, strict=True)
            if (row["kind"], row["slot"]) == (kind, slot)
        ]
        assert isinstance(found, dict)
        return found

    @property
    def scope(self) -> Row:
        return self._body("scope", 0)

    @property
    def opening(self) -> Row:
        return self._body("campaign", 0)

    def step(self, slot: int) -> Row:
        return self._body("state", slot)

    def release(self, slot: int) -> Row:
        """What is the same for all measures."""
        return self._body("release", slot)

    def measure(self, slot: int) -> Row:
        """What was released of the only measure."""
        (found,) = self.release(slot)["measures"]
        return cast("Row", found)

    def charge(self, slot: int, part: str = "measurement") -> Row:
        (found,) = [
            row
            for row in self.entries
            if (row["kind"], row["slot"], row["part"]) == ("charge", slot, part)
        ]
        return found

    def remove(self, kind: str, slot: int, part: str = "") -> None:
        kept = [
            k
            for k, row in enumerate(self.entries)
            if (row["kind"], row["slot"], row["part"]) != (kind, slot, part)
        ]
        assert len(kept) == len(self.entries) - 1
        self.entries = [self.entries[k] for k in kept]
        self.bodies = [self.bodies[k] for k in kept]

    def path(self, slot: int, file: str) -> Path:
        attempt: str = self.step(slot)["books"]["attempt"]
        return slot_folder(self.directory, slot) / attempt / file

    def rows(self, slot: int, file: str) -> list[Row]:
        """Rows of a file of the books, to be changed in place."""
        path = self.path(slot, file)
        if path not in self._files:
            self._files[path] = _read(path)
        return self._files[path][1]

    def written(self, slot: int, file: str) -> list[Row]:
        """The same as they lie on the disk."""
        return _read(self.path(slot, file))[1]

    @property
    def accounts(self) -> list[Row]:
        return self.rows(self.slots, USERS)

    def cell(self, slot: int, least_moved: int = 1) -> Row:
        """A row of which something was let in."""
        return next(row for row in self.rows(slot, CELLS) if row["moved"] >= least_moved)

    # ---- what follows from it ------------------------------------------------------------------

    def follow(self) -> None:
        """Totals, values, accounts and charges for the cut as they follow from the rows. What a
        renewal has rounded up stays as it was."""
        before, after = self._exact(self.written), self.exact()
        for slot in range(1, self.slots + 1):
            self.step(slot)["kept"] = after.kept[slot]
            told, was, now = self.step(slot)["values"], before.sums[slot], after.sums[slot]
            values = [a + c - b for a, b, c in zip(told, was, now, strict=True)]
            self.step(slot)["values"] = self.measure(slot)["values"] = values
            for tier, file in enumerate((CUT, REST), start=1):
                for row in self.rows(slot, file):
                    place = (slot, tier, row["slot"], row["number"])
                    _change(row, "charge", before.charges.get(place), after.charges.get(place, 0))
        for row in self.accounts:
            number = row["number"]
            _change(row, "fixed", before.fixed.get(number), after.fixed.get(number, 0))
            _change(row, "spent", before.cost.get(number), after.cost.get(number, 0))

    def exact(self) -> Exact:
        """What the rows as they are now say."""
        return self._exact(self.rows)

    def _exact(self, rows: Callable[[int, str], list[Row]]) -> Exact:
        steps = [self.step(slot) for slot in range(1, self.slots + 1)]
        files = (CELLS, CUT, REST)
        return Exact(
            self.opening["strategy"], steps, lambda slot: [rows(slot, file) for file in files]
        )

    # ---- and back to the disk ------------------------------------------------------------------

    def finish(self) -> None:
        for path, (schema, rows) in self._files.items():
            columns = {name: [row[name] for row in rows] for name in schema.names}
            pq.write_table(pa.table(columns, schema=schema), path)
        for slot in range(1, self.slots + 1):
            self._name_books(slot)
        previous = ""
        for position, (row, body) in enumerate(zip(self.entries, self.bodies, strict=True), 1):
            row["body"] = "" if body is None else json.dumps(body)
            row["position"], row["body_hash"] = position, hash_of(row["body"])
            entry = Entry(*(row[name] for name in Entry.__dataclass_fields__))
            row["hash"] = previous = entry.sealed(previous)
        self.write_entries()
        mark = self.directory / "adsbpc-releases" / "acme" / "ledger.json"
        note = json.loads(mark.read_text())
        mark.write_text(json.dumps({**note, "position": len(self.entries), "hash": previous}))
        (self.directory / "ledger.sqlite.seal").unlink(missing_ok=True)
        for row in self.entries:
            if row["kind"] == "release":
                folder = self.directory / "adsbpc-releases" / "acme" / "spring"
                (folder / f"{row['slot']:04d}.json").write_text(row["body"])

    def _name_books(self, slot: int) -> None:
        try:
            files = self.step(slot)["books"]["files"]
        except (KeyError, ValueError):
            return
        for file in files:
            path = self.path(slot, file)
            if path.exists():
                files[file] = [path.stat().st_size, sha256(path.read_bytes()).hexdigest()]

    def write_entries(self) -> None:
        columns = list(self.entries[0])
        with self._ledger() as connection:
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type='trigger'"
            ).fetchall():
                connection.execute(f"DROP TRIGGER {name}")
            connection.execute("DELETE FROM adsbpc_entries")
            connection.executemany(
                f"INSERT INTO adsbpc_entries ({', '.join(columns)})"
                f" VALUES ({', '.join('?' * len(columns))})",
                [tuple(row[name] for name in columns) for row in self.entries],
            )
            connection.commit()


def _read(path: Path) -> tuple[pa.Schema, list[Row]]:
    # Not pq.read_table, which would add columns for the names of the folders.
    table = pq.ParquetFile(path).read()
    schema = pa.schema([field.with_nullable(True) for field in table.schema])
    return schema, table.to_pylist()


def _change(row: Row, name: str, before: int | None, after: int) -> None:
    """A figure in halves by as much as it has changed, or as it is now where it is new."""
    told = 0
    if before is not None:
        told = row[f"{name}_high"] * HALF + row[f"{name}_low"] - before
    row[f"{name}_high"], row[f"{name}_low"] = divmod(told + after, HALF)


Plant = Callable[[Forgery], None]
