"""What a release commits to of the people in its slot: the same on both engines as in plain Python,
and another whenever anybody has anything else."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import combinations_with_replacement, product

import pytest

from adsbpc.contributions.people_sql import hash_of_names, sums_by_place
from adsbpc.engines import Engine, Relation

PLACES = 4096
# A user's number, a cell, and what was asked for and moved.
Row = tuple[int, int, int, int]
FIRST, SECOND = 2**31 - 1, 2**31 - 19


def relation(rows: Sequence[Row]) -> Relation:
    listed = ", ".join(
        f"({number * PLACES + place}, {asked}, {asked}, {moved})"
        for number, place, asked, moved in rows
    )
    columns = ", ".join(
        f"CAST({name} AS BIGINT) AS {name}" for name in ("cell", "asked", "kept", "moved")
    )
    return Relation.of(
        f"SELECT {columns} FROM (VALUES {listed}) AS given (cell, asked, kept, moved)"
    )


def sums_of(engine: Engine, rows: Sequence[Row]) -> tuple[int, int]:
    found = engine.rows("people", sums_by_place(relation(rows), PLACES))
    assert {place: int(kept) for place, kept, *_ in found} == {
        place: sum(asked for _, other, asked, _ in rows if other == place)
        for _, place, _, _ in rows
    }
    return sum(int(first) for *_, first, _ in found), sum(int(second) for *_, second in found)


def plain(row: Row, of_cell: int, of_asked: int, of_moved: int) -> int:
    number, place, asked, moved = row
    cell = number * PLACES + place
    line = (cell % FIRST * of_cell + asked % FIRST * of_asked + moved % FIRST * of_moved) % FIRST
    return line**2 % SECOND * line % FIRST


ROWS: list[Row] = [
    (1, 0, 720_720, 720_720 * 4096),
    (1, 4095, 1, 0),
    (2, 7, 2**40, 2**60),
    (999_999_999_999, 3, 2**31 - 1, 2**31),
    (2**31, 3, 2**31 - 1, 2**62),
]


def test_engines_mix_rows_as_plain_python_does(engine: Engine) -> None:
    expected = [
        sum(plain(row, *factors) for row in ROWS)
        for factors in ((373_587_883, 48_271, 69_621), (271_828_183, 40_692, 314_159_269))
    ]
    assert list(sums_of(engine, ROWS)) == expected
    assert list(sums_of(engine, ROWS[::-1])) == expected


def test_names_are_hashed_with_their_numbers(engine: Engine) -> None:
    def hash_of(*names: tuple[str, int]) -> int:
        listed = ", ".join(f"('{name}', CAST({number} AS BIGINT))" for name, number in names)
        given = Relation.of(f"SELECT * FROM (VALUES {listed}) AS given (user_id, number)")
        ((place, kept, found, nothing),) = engine.rows("names", hash_of_names(given))
        assert (int(place), int(kept), int(nothing)) == (-1, 0, 0)
        return int(found)

    expected = sum(
        int(sha256(text.encode()).hexdigest()[:13], 16) for text in ("1:Ada", "2:Zoë", "12:3")
    )
    assert hash_of(("Ada", 1), ("Zoë", 2), ("3", 12)) == expected
    assert hash_of(("Ada", 2), ("Zoë", 1), ("3", 12)) != expected


@pytest.mark.parametrize("count", [2, 3])
def test_nobody_can_have_anything_else(count: int, duckdb_engine: Engine) -> None:
    """All worlds of so few rows: people with small numbers, neighbouring cells, two weights, where
    sums of plain figures are often alike."""
    rows = [(n, c, w, w * 5) for n, c, w in product((1, 2, 3), (0, 1), (360_360, 720_720))]
    worlds = list(combinations_with_replacement(rows, count))
    plainly = {tuple(map(sum, zip(*world, strict=True))) for world in worlds}
    assert len(plainly) < len(worlds), "plain sums tell all worlds apart: this tests nothing"
    assert len({sums_of(duckdb_engine, world) for world in worlds}) == len(worlds)
