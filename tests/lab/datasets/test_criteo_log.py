"""The reader of the Criteo log, against journeys that were worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from adsbpc.errors import SourceError, SpecError
from adsbpc.lab.datasets import read_criteo_log
from adsbpc.lab.datasets.files import LOG_COLUMNS
from adsbpc.model import UNITS_PER_CONVERSION as UNITS

DAY = 86_400
START = 1_596_439_000


def click(day: float, user: str, partner: str, delay_days: float | None = None) -> str:
    """A line of the log; with a delay it led to a sale."""
    values = dict.fromkeys(LOG_COLUMNS, "-1")
    values |= {
        "Sale": "0" if delay_days is None else "1",
        "SalesAmountInEuro": "-1" if delay_days is None else "12.5",
        "time_delay_for_conversion": "-1" if delay_days is None else f"{delay_days * DAY:.0f}",
        "click_timestamp": f"{START + day * DAY:.0f}",
        "product_title": 'a "quoted title',
        "partner_id": partner,
        "user_id": user,
    }
    return "\t".join(values.values())


# Conversions at days 1 (bob), 12 and 45 (ann) and 51 (cat); slots of 25 days and a bit: 1, 1, 2, 2.
LINES = [
    click(0, "ann", "P"),
    click(1, "bob", "Q", 0),  # its own click is all of the journey
    click(2, "bob", "P"),  # after bob's conversion: never counts
    click(10, "ann", "Q"),
    click(11, "ann", "Q"),
    click(11.5, "ann", "R", 0.5),  # day 12, journey P Q Q R
    click(40, "ann", "P", 5),  # day 45: the clicks up to day 11.5 are older than 30 days
    click(44, "ann", "R"),  # but this one is in the journey: P R
    click(50, "cat", "R", 1),  # day 51
    click(50, "cat", "P"),  # the same second, P before R by name: journey P R
    click(20, "dan", "S"),  # dan never converts
    click(20, "-1", "Q", 1),  # nobody
    click(20, "eve", "-1", 1),  # nowhere
    click(-START / DAY, "eve", "P", 1),  # never
]
# Slot -> credits of P, Q, R, S, in conversions.
BY_TOUCH: dict[str, dict[int, list[float]]] = {
    "last": {1: [0, 1, 1, 0], 2: [0, 0, 2, 0]},
    "first": {1: [1, 1, 0, 0], 2: [2, 0, 0, 0]},
    "uniform": {1: [0.25, 1.5, 0.25, 0], 2: [1, 0, 1, 0]},
}


def log(directory: Path, lines: list[str]) -> Path:
    path = directory / "CriteoSearchData"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize("touch", BY_TOUCH)
def test_journeys_by_hand(tmp_path: Path, touch: str) -> None:
    data = read_criteo_log(log(tmp_path, LINES), slots=2, touch=touch)
    assert data.publishers == ("P", "Q", "R", "S")
    assert data.users == 5 - 1  # ann, bob, cat, dan; eve has no usable click
    assert data.largest_user == 2
    for slot, credits in BY_TOUCH[touch].items():
        assert data.contributions.totals(slot).tolist() == [UNITS * credit for credit in credits]
    assert data.contributions.users_above(2, UNITS) == 0


def test_the_edge_of_thirty_days(tmp_path: Path) -> None:
    lines = [click(0, "ann", "P"), click(-0.0001, "ann", "Q"), click(29, "ann", "R", 1)]
    first = read_criteo_log(log(tmp_path, lines), slots=1, touch="first")
    assert first.contributions.totals(1).tolist() == [UNITS, 0, 0]


def test_shares_that_do_not_divide_are_rounded_down(tmp_path: Path) -> None:
    lines = [click(day / 100, "ann", "P") for day in range(16)] + [click(1, "ann", "Q", 0)]
    data = read_criteo_log(log(tmp_path, lines), slots=1, touch="uniform")
    assert data.contributions.totals(1).tolist() == [16 * UNITS // 17, UNITS // 17]


def test_slots_are_equal_parts_of_the_span(tmp_path: Path) -> None:
    lines = [click(day, f"u{day}", "P", 0) for day in range(90)]
    data = read_criteo_log(log(tmp_path, lines), slots=30, touch="last")
    counts = [data.contributions.totals(slot).sum() // UNITS for slot in range(1, 31)]
    assert sum(counts) == 90
    assert set(counts) <= {2, 3, 4}


def test_names_and_labels_say_the_touch(tmp_path: Path) -> None:
    path = log(tmp_path, LINES)
    assert read_criteo_log(path, 2, "last").name == "criteo-log"
    first = read_criteo_log(path, 2, "first")
    assert first.name == "criteo-log-first"
    assert "made up" not in first.label
    assert "first touch" in first.label


@pytest.mark.parametrize(
    ("line", "where", "found", "expected"),
    [
        (LINES[0].replace(str(START), "yesterday"), "line 2, column 'click_timestamp'",
         "'yesterday'", "a whole number"),
        ("x" + LINES[0], "line 2, column 'Sale'", "'x0'", "a whole number"),
        (LINES[0] + "\tmore", "line 2", "24 columns", "23 columns"),
        (LINES[0].rsplit("\t", 1)[0], "line 2", "22 columns", "23 columns"),
        (LINES[0].replace("\t", ","), "line 2", "one column", "23 columns"),
    ],
)  # fmt: skip
def test_broken_lines(tmp_path: Path, line: str, where: str, found: str, expected: str) -> None:
    path = log(tmp_path, [LINES[1], line, *LINES[2:], line])
    with pytest.raises(SourceError) as refusal:
        read_criteo_log(path, slots=2, touch="last")
    assert refusal.value.where.endswith(where)
    assert refusal.value.found == found
    assert expected in refusal.value.expected
    assert refusal.value.to_do


def test_a_header_is_a_broken_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="line 1, column 'Sale': found 'Sale'"):
        read_criteo_log(log(tmp_path, ["\t".join(LOG_COLUMNS), *LINES]), slots=2, touch="last")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = log(tmp_path, LINES)
    path.write_bytes(path.read_bytes().replace(b"\tann\n", b"\ta\xffn\n", 1))
    with pytest.raises(SourceError, match="line 1: found what DuckDB cannot read"):
        read_criteo_log(path, slots=2, touch="last")


def test_files_that_are_not_the_log(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="found no file"):
        read_criteo_log(tmp_path / "absent", 2, "last")
    with pytest.raises(SourceError, match="Unpack it first"):
        read_criteo_log(tmp_path / "criteo-research-search-conversion.tar.gz", 2, "last")
    with pytest.raises(SourceError, match="found an empty file"):
        read_criteo_log(log(tmp_path, []), 2, "last")
    with pytest.raises(SourceError, match="found no conversion"):
        read_criteo_log(log(tmp_path, LINES[:1]), 2, "last")


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match='Did you mean "last"'):
        read_criteo_log(log(tmp_path, LINES), 2, "lats")
    with pytest.raises(SpecError, match="slots = 0"):
        read_criteo_log(log(tmp_path, LINES), 0, "last")
