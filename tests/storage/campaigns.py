"""A campaign whose books and releases, and events if need be, are in a store."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq

from adsbpc.engines.duckdb_engine import DuckDBEngine
from adsbpc.storage import Place, RemotePath
from tests.campaign import victims
from tests.campaign.book_files import FILES, Rows, steps
from tests.campaign.files import FIXED, edit, write_campaign
from tests.campaign.onlooker import Onlooker

PARTS = 3


def write_stored(
    directory: Path, store: RemotePath, slots: int = 6, privacy: str = FIXED, **others: Any
) -> Path:
    file = write_campaign(directory, slots, privacy=privacy, **others)
    file.write_text(f'{file.read_text()}\n[storage]\nlocation = "{store}"\n')
    return file


@contextmanager
def written_in_parts() -> Iterator[None]:
    """Books in a store are folders of several files, as a cluster writes them, from an engine that
    starts quickly."""
    write = DuckDBEngine.write_parquet

    def write_parts(self: DuckDBEngine, what: str, sql: str, path: Place) -> None:
        if not isinstance(path, RemotePath):
            write(self, what, sql, path)
            return
        with TemporaryDirectory() as folder:
            whole, part = Path(folder) / "whole", Path(folder) / "part"
            write(self, what, sql, whole)
            rows = pq.ParquetFile(whole).read()
            each = rows.num_rows // PARTS + 1
            for number in range(PARTS):
                pq.write_table(rows.slice(number * each, each), part)
                (path / f"part-{number:05d}.parquet").upload(part)

    with patch.object(DuckDBEngine, "write_parquet", write_parts):
        yield


def copied_to_a_disk(file: Path, store: RemotePath) -> None:
    """The campaign moves from a store to the folder of its file."""
    for path in store.stamps():
        target = file.parent.joinpath(*path.below(store))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    text = file.read_text()
    file.write_text(text[: text.index("\n[storage]")])


def put_events(file: Path, store: RemotePath) -> None:
    """Events are in the store, too: two files each, below a folder for each day."""
    for name in ("impressions", "conversions"):
        rows = pq.read_table(file.parent / f"{name}.parquet")
        for part in (0, 1):
            local = file.parent / f"{name}-{part}.parquet"
            pq.write_table(rows.slice(part * rows.num_rows // 2, (rows.num_rows + 1) // 2), local)
            (store / name / f"part={part}" / "rows.parquet").upload(local)
            local.unlink()
        edit(file, f'"{name}.parquet"', f'"{store}/{name}/*/*.parquet"')
        (file.parent / f"{name}.parquet").unlink()


def published(store: RemotePath) -> dict[int, str]:
    """What was published, asked for by name: the store may list late."""
    folder = store / "adsbpc-releases" / "acme" / "spring"
    found: dict[int, str] = {}
    while (folder / f"{len(found) + 1:04d}.json").exists():
        slot = len(found) + 1
        found[slot] = (folder / f"{slot:04d}.json").read_bytes().decode()
    return found


def marks(store: RemotePath) -> list[dict[str, Any]]:
    """In order."""
    folder = store / "adsbpc-releases" / "acme"
    found: list[dict[str, Any]] = []
    while (folder / f"ledger-{len(found) + 1:06d}.json").exists():
        text = (folder / f"ledger-{len(found) + 1:06d}.json").read_bytes()
        found.append(json.loads(text))
    return found


def committed(directory: Path, store: RemotePath) -> list[RemotePath]:
    """The folders of books that count, in the order of slots."""
    books = store / "adsbpc-books" / "acme" / "spring"
    return [
        books / f"slot={slot:04d}" / step["books"]["attempt"]
        for slot, step in enumerate(steps(directory), start=1)
    ]


def rows_of(folder: RemotePath, files: tuple[str, ...] = FILES) -> Rows:
    """What stands in the books of a slot, whatever the order of rows in the files, and in how many
    files they are. One is found by its name, because lists may be late."""
    found: Rows = {}
    for file in files:
        try:
            found[file] = sorted(_rows_in(folder / file))
        except FileNotFoundError:
            parts = (folder / file).stamps()
            found[file] = sorted(row for part in parts for row in _rows_in(part))
    return found


def _rows_in(path: RemotePath) -> list[tuple[Any, ...]]:
    with path.open() as content:
        columns = pq.ParquetFile(content).read().to_pydict()
    return list(zip(*columns.values(), strict=True))


class StoreOnlooker(Onlooker):
    """Looks at what is in the store."""

    def __init__(self, file: Path, store: RemotePath) -> None:
        super().__init__(file, "ledger.sqlite")
        self.store = store

    def published(self) -> dict[int, str]:
        return published(self.store)

    def marks(self) -> list[dict[str, Any]]:
        """The newest, and no earlier one knows more."""
        found = marks(self.store)
        positions = [mark["position"] for mark in found]
        assert positions == sorted(positions), "a mark went back"
        return found[-1:]


def in_store(variables: dict[str, str], target: Any, *arguments: Any) -> None:
    """What a process of its own does that has the store's credentials. What it would leave depends
    on how often it has written to the store, too."""
    os.environ.update(variables)
    written: list[str] = []
    for name in ("create", "upload", "unlink"):
        _note(name, written)
    on_the_disk = victims._on_the_disk
    victims._on_the_disk = lambda directory: f"{on_the_disk(directory)} {len(written)}"
    target(*arguments)


def _note(name: str, written: list[str]) -> None:
    act = getattr(RemotePath, name)

    def noted(self: RemotePath, *arguments: Any, **others: Any) -> None:
        act(self, *arguments, **others)
        written.append(name)

    setattr(RemotePath, name, noted)
