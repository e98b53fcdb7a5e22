"""A location that ends in .files lists Parquet files: each once, all of them there."""

from __future__ import annotations

from pathlib import Path

import pytest

from adsbpc.engines import Engine
from adsbpc.errors import SourceError
from adsbpc.events import source_files
from adsbpc.events.sources import resolve_source
from tests.events.files import CONVERSION, IMPRESSION, counts, spec_of, write

KEY = "[events] impressions"


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """A list of two files."""
    write(tmp_path / "data" / "a.parquet", [IMPRESSION])
    write(tmp_path / "data" / "b.parquet", [{**IMPRESSION, "user_id": "u2"}] * 2)
    path = tmp_path / "impressions.files"
    path.write_text(f"{tmp_path}/data/a.parquet\n{tmp_path}/data/b.parquet\n")
    return path


def refusal(path: Path, content: str | bytes) -> SourceError:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(SourceError) as caught:
        resolve_source(path.name, path.parent, KEY)
    return caught.value


@pytest.mark.every_change
def test_the_listed_files_are_read(engine: Engine, tmp_path: Path) -> None:
    """No others beside them; folders are no columns, and a list is no table by its name."""
    files = [tmp_path / "kind=view" / "a.parquet", tmp_path / "kind=none" / "b.parquet"]
    for file in files:
        write(file, [IMPRESSION])
    write(tmp_path / "kind=view" / "unlisted.parquet", [IMPRESSION])
    write(tmp_path / "conversions.parquet", [CONVERSION])
    (tmp_path / "events.files").write_text("".join(f"{file}\n" for file in files))
    spec = spec_of(tmp_path, impressions="events.files")
    events, *good = counts(engine, spec)
    assert good == [2, 1]
    clicks = engine.rows("clicks", f"SELECT DISTINCT is_click FROM {events.impressions}")
    assert [tuple(row) for row in clicks] == [(True,)]
    assert source_files(spec) == {*files, tmp_path / "conversions.parquet"}


def test_a_list_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no list that can be read") as caught:
        resolve_source("schema.files", tmp_path, KEY)
    assert caught.value.where == str(tmp_path / "schema.files")
    assert caught.value.to_do == f"Check {KEY} in the campaign file."


def test_lists_that_make_no_sense(listed: Path) -> None:
    assert refusal(listed, "").found == "an empty list"
    assert refusal(listed, b"\xff").found.startswith("no list that can be read")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", "''"),
        ("data/a.parquet", "'data/a.parquet'"),
        ("{folder}/data/a.csv", "'{folder}/data/a.csv'"),
        ("{folder}/data", "'{folder}/data'"),
        ("s3://bucket/a.parquet", "'s3://bucket/a.parquet'"),
        ("{folder}/data/a.parquet ", "'{folder}/data/a.parquet '"),
        ("{folder}/data/gone.parquet", "no file {folder}/data/gone.parquet"),
    ],
)
def test_a_line_that_is_no_file(line: str, found: str, listed: Path) -> None:
    folder = str(listed.parent)
    error = refusal(listed, f"{folder}/data/b.parquet\n{line.format(folder=folder)}\n")
    assert error.where == f"{listed}, line 2"
    assert error.found == found.format(folder=folder)
    assert error.to_do == "Correct the line."


def test_a_file_is_listed_once(listed: Path) -> None:
    file = f"{listed.parent}/data/a.parquet\n"
    error = refusal(listed, 3 * file)
    assert error.found == "2 paths more than once"
    assert "count twice" in error.to_do


def test_a_path_that_an_engine_takes_for_a_pattern(listed: Path) -> None:
    write(listed.parent / "a[b]" / "c.parquet", [IMPRESSION])
    error = refusal(listed, f"{listed.parent}/a[b]/c.parquet\n")
    assert error.found == "one of * ? [ in its path"
