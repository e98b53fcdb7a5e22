"""Files and entries that were changed as they lie there, and not sealed again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.audit.campaigns import Released, found_in
from tests.audit.forgery import CELLS, CUT, NAMES, REST, USERS, Forgery
from tests.campaign.book_files import committed
from tests.campaign.files import published
from tests.effort import first


def test_a_changed_published_file(released: Released, tmp_path: Path) -> None:
    released.copy("adsbpc", tmp_path)
    file = tmp_path / "adsbpc-releases" / "acme" / "spring" / "0003.json"
    file.write_text(published(tmp_path)[3].replace('"values":', '"values": ', 1))
    assert found_in(tmp_path).keys() == {"published files"}


def test_a_published_file_of_no_slot(released: Released, tmp_path: Path) -> None:
    released.copy("adsbpc", tmp_path, 3)
    folder = tmp_path / "adsbpc-releases" / "acme" / "spring"
    (folder / "0004.json").write_text(published(tmp_path)[3])
    assert found_in(tmp_path).keys() == {"published files"}


@pytest.mark.parametrize("position", [1, 2, 3, 10, 17])
def test_an_entry_that_is_not_sealed(position: int, released: Released, tmp_path: Path) -> None:
    released.copy("personal, cut", tmp_path)
    forged = Forgery(tmp_path)
    forged.entries[position - 1]["recorded_at"] = "2026-01-01T00:00:00"
    forged.write_entries()
    found = found_in(tmp_path)
    assert found.keys() == {"chain of the ledger"}
    assert f"entry {position} (" in found["chain of the ledger"]


def test_a_body_that_its_hash_does_not_know(released: Released, tmp_path: Path) -> None:
    released.copy("personal, cut", tmp_path)
    forged = Forgery(tmp_path)
    (row,) = [row for row in forged.entries if (row["kind"], row["slot"]) == ("state", 3)]
    row["body"] += " "
    forged.write_entries()
    found = found_in(tmp_path)
    assert found.keys() == {"chain of the ledger"}
    assert "the body of entry" in found["chain of the ledger"]


def test_a_body_that_nobody_can_read(released: Released, tmp_path: Path) -> None:
    released.copy("personal, cut", tmp_path)
    forged = Forgery(tmp_path)
    (row,) = [row for row in forged.entries if (row["kind"], row["slot"]) == ("state", 3)]
    row["body"] = "{"
    forged.write_entries()
    assert "chain of the ledger" in found_in(tmp_path)


def delete(path: Path) -> None:
    path.unlink()


def scribble(path: Path) -> None:
    path.write_bytes(b"this is no Parquet")


def drop_a_column(path: Path) -> None:
    table = pq.ParquetFile(path).read()
    pq.write_table(
        table.drop_columns(["moved" if "moved" in table.schema.names else "number"]), path
    )


def turn_into_floats(path: Path) -> None:
    table = pq.ParquetFile(path).read()
    name = "moved" if "moved" in table.schema.names else "number"
    position = table.schema.get_field_index(name)
    pq.write_table(table.set_column(position, name, table[name].cast(pa.float64())), path)


@pytest.mark.parametrize("act", first(2, [scribble, turn_into_floats, delete, drop_a_column]))
@pytest.mark.parametrize("file", [NAMES, CELLS, CUT, REST, USERS])
def test_a_broken_book_file(
    file: str, act: Callable[[Path], None], released: Released, tmp_path: Path
) -> None:
    released.copy("personal, cut", tmp_path)
    path = committed(tmp_path)[4] / file
    act(path)
    found = found_in(tmp_path)
    assert {"book files", "costs of people", "accounts"} <= found.keys()
    assert file in found["book files"]
    assert file in found["costs of people"]
    # The ledger may name the broken file, and it is broken all the same.
    Forgery(tmp_path).finish()
    found = found_in(tmp_path)
    assert {"costs of people", "accounts", "kept totals"} <= found.keys()
    assert ("book files" in found) == (act is delete)
