"""Own data: what is read from Parquet and CSV, and what is refused in which words."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc.errors import SourceError, SpecError
from adsbpc.lab.datasets import read_own_data
from adsbpc.model import UNITS_PER_CONVERSION as UNITS

HEADER = "user_id,slot,publisher_id,weight\n"
GOOD = HEADER + "ann,1,search,1\nann,1,social,0.5\nbob,3,search,2\nann,3,social,0.3333333\n"


def csv(directory: Path, text: str, name: str = "own.csv") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_file_by_hand(tmp_path: Path) -> None:
    data = read_own_data(csv(tmp_path, GOOD))
    assert (data.name, data.users, data.slots, data.largest_user) == ("own", 2, 3, 2)
    assert data.publishers == ("search", "social")
    assert "own.csv" in data.label
    assert data.contributions.totals(1).tolist() == [UNITS, UNITS // 2]
    assert data.contributions.totals(2).tolist() == [0, 0]
    assert data.contributions.totals(3).tolist() == [2 * UNITS, 240_239]  # rounded down
    assert data.contributions.users_above(1, UNITS) == 1


def test_rows_of_a_user_and_slot_stay_in_order(tmp_path: Path) -> None:
    text = HEADER + "ann,1,b,1\nzoe,1,b,1\nann,1,a,1\nann,1,b,1\n"
    data = read_own_data(csv(tmp_path, text))
    assert data.contributions.totals(1, 2 * UNITS).tolist() == [UNITS, 2 * UNITS]


def test_more_slots_than_the_data_have(tmp_path: Path) -> None:
    data = read_own_data(csv(tmp_path, GOOD), slots=5)
    assert data.slots == data.contributions.slots == 5
    assert data.contributions.totals(5).sum() == 0


def test_parquet_with_numbers_for_names_and_another_column(tmp_path: Path) -> None:
    table = pa.table(
        {
            "weight": [1, 2, 0],
            "note": ["x", "y", "z"],
            "publisher_id": [7, 7, 8],
            "slot": [1, 2, 2],
            "user_id": [10, 11, 11],
        }
    )
    pq.write_table(table, tmp_path / "own.parquet")
    data = read_own_data(tmp_path / "own.parquet")
    assert data.publishers == ("7", "8")
    assert data.contributions.totals(2).tolist() == [2 * UNITS, 0]
    assert data.largest_user == 2


def test_compressed_csv(tmp_path: Path) -> None:
    (tmp_path / "own.csv.gz").write_bytes(gzip.compress(GOOD.encode()))
    assert read_own_data(tmp_path / "own.csv.gz").users == 2


def test_quotes_and_commas_in_names(tmp_path: Path) -> None:
    data = read_own_data(csv(tmp_path, HEADER + '"ann, a.",1,"say ""hi""",1\n'))
    assert data.publishers == ('say "hi"',)


def test_the_largest_user_is_rounded_up_and_never_zero(tmp_path: Path) -> None:
    assert read_own_data(csv(tmp_path, HEADER + "a,1,p,1.25\na,2,q,1\n")).largest_user == 3
    assert read_own_data(csv(tmp_path, HEADER + "a,1,p,0\n")).largest_user == 1


@pytest.mark.parametrize(
    ("text", "where", "found", "expected"),
    [
        ("user_id,slot,publisher_id,wheight\na,1,p,1\n", "", "wheight", "a column 'weight'"),
        ("a,1,p,1\n", "", "the columns a, 1, p", "a column 'user_id'"),
        ("user_id;slot;publisher_id;weight\na;1;p;1\n", "", "user_id;slot", "a column 'user_id'"),
        (HEADER + "a,1,p,1\nb,1,p,-0.5\n", "row 2, column 'weight'", "'-0.5'", "0 or more"),
        (HEADER + "a,1,p,nan\n", "row 1, column 'weight'", "'nan'", "0 or more"),
        (HEADER + "a,1,p,inf\n", "row 1, column 'weight'", "'inf'", "0 or more"),
        (HEADER + "a,1,p,\n", "row 1, column 'weight'", "nothing", "0 or more"),
        (HEADER + "a,1,p,many\n", "row 1, column 'weight'", "'many'", "0 or more"),
        (HEADER + "a,0,p,1\n", "row 1, column 'slot'", "'0'", "from 1 to 4"),
        (HEADER + "a,5,p,1\n", "row 1, column 'slot'", "'5'", "from 1 to 4"),
        (HEADER + "a,1.5,p,1\n", "row 1, column 'slot'", "'1.5'", "a whole number"),
        (HEADER + "a,today,p,1\n", "row 1, column 'slot'", "'today'", "a whole number"),
        (HEADER + ",1,p,1\n", "row 1, column 'user_id'", "nothing", "a user"),
        (HEADER + "a,1,,1\n", "row 1, column 'publisher_id'", "nothing", "a publisher"),
        (HEADER + "a,1,p,1e12\n", "column 'weight'", "1e+12 conversions", "fewer than"),
        (HEADER + "a,1,p,1\nb,1\n", "own.csv", "DuckDB cannot read", "the columns user_id"),
        (HEADER, "own.csv", "no rows", "at least one"),
        ("", "own.csv", "an empty file", "rows"),
    ],
)
def test_broken_data(tmp_path: Path, text: str, where: str, found: str, expected: str) -> None:
    with pytest.raises(SourceError) as refusal:
        read_own_data(csv(tmp_path, text), slots=4)
    assert where in refusal.value.where
    assert found in refusal.value.found
    assert expected in refusal.value.expected
    assert refusal.value.to_do


def test_a_missing_column_that_is_nearly_there(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match='Did you mean "wheight"'):
        read_own_data(csv(tmp_path, "user_id,slot,publisher_id,wheight\na,1,p,1\n"))


def test_a_timestamp_is_not_a_slot(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="Number the slots from 1"):
        read_own_data(csv(tmp_path, HEADER + "a,1767225600,p,1\n"))


def test_broken_parquet(tmp_path: Path) -> None:
    missing = pa.table({"user_id": ["a"], "slot": [1], "publisher_id": ["p"], "weight": [None]})
    pq.write_table(missing, tmp_path / "null.parquet")
    with pytest.raises(SourceError, match="row 1, column 'weight': found nothing"):
        read_own_data(tmp_path / "null.parquet")
    not_a_number = pa.table(
        {"user_id": ["a"], "slot": [1], "publisher_id": ["p"], "weight": [float("nan")]}
    )
    pq.write_table(not_a_number, tmp_path / "nan.parquet")
    with pytest.raises(SourceError, match="'nan'"):
        read_own_data(tmp_path / "nan.parquet")
    (tmp_path / "text.parquet").write_text("not Parquet at all", encoding="utf-8")
    with pytest.raises(SourceError, match="DuckDB cannot read"):
        read_own_data(tmp_path / "text.parquet")


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="found no file"):
        read_own_data(tmp_path / "absent.csv")
    with pytest.raises(SourceError, match="found a folder"):
        read_own_data(tmp_path)
    with pytest.raises(SourceError, match="an unknown kind of file"):
        read_own_data(csv(tmp_path, GOOD, "own.xlsx"))
    with pytest.raises(SourceError, match="Rename the file"):
        read_own_data(csv(tmp_path, GOOD, "own[1].csv"))


def test_slots_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="slots = 0"):
        read_own_data(csv(tmp_path, GOOD), slots=0)
