"""Every format holds the same cells, and files are whole or not there."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars
import pyarrow.parquet as pq
import pytest

from adsbpc.errors import SourceError, SpecError
from adsbpc.report import Report
from tests.report.releases import COMPARED, MadeUp

_AWKWARD = ("plain", 'comma, quote " and tail', "ünïcode 🌍", "</script>", "=1+1")


@pytest.fixture(scope="module", params=["days", "hours with a clock change", "adjusted", "budgets"])
def report(request: pytest.FixtureRequest) -> Report:
    if request.param == "hours with a clock change":
        made = MadeUp(_AWKWARD, slot="1h", slots=48, released=40, start=date(2026, 10, 24))
        return made.report()
    made = MadeUp(
        _AWKWARD,
        released=5,
        queries=("prefix", "matrix"),
        mechanism="personal-budget" if request.param == "budgets" else "adsbpc",
    )
    return made.report(adjusted=request.param == "adjusted")


def _plain(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Moments as instants: zones are written in more than one way."""
    moments = ("starts_at", "ends_at")
    return [row | {key: row[key].timestamp() for key in moments} for row in records]


def _read(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    moments = ("starts_at", "ends_at")
    parsed = [row | {key: datetime.fromisoformat(row[key]) for key in moments} for row in records]
    return _plain(parsed)


def test_all_formats_agree(report: Report, tmp_path: Path) -> None:
    columns = report.columns()
    expected = _plain(
        [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    )
    assert [row["value"] for row in expected] == [cell.estimate for cell in report.rows()]
    assert _plain(report.to_arrow().to_pylist()) == expected
    assert _plain(report.to_pandas().to_dict("records")) == expected
    assert _plain(report.to_polars().to_dicts()) == expected
    assert _read(json.loads(report.to_json())["cells"]) == expected

    report.to_parquet(tmp_path / "cells.parquet")
    assert _plain(pq.read_table(tmp_path / "cells.parquet").to_pylist()) == expected
    assert polars.read_parquet(tmp_path / "cells.parquet").height == len(expected)

    text = list(csv.DictReader(io.StringIO(report.to_csv(), newline="")))
    # What a spreadsheet is told by it is no part of a name.
    text = [row | {"publisher": row["publisher"].removeprefix("'")} for row in text]
    types = {key: type(value) for key, value in expected[0].items()}
    numbers = [row | {key: types[key](row[key]) for key in row if key in _NUMBERS} for row in text]
    assert _read([row | {"noisy": row["noisy"] == "true"} for row in numbers]) == expected


_NUMBERS = {
    "slot", "first_slot", "last_slot", "value", "standard_error", "low", "high", "cut",
}  # fmt: skip


@pytest.mark.parametrize("sign", ["=", "+", "-", "@"])
def test_no_text_is_a_formula_for_a_spreadsheet(sign: str) -> None:
    hostile = f'{sign}HYPERLINK("http://evil.example")'
    report = MadeUp((hostile, "P-2"), released=1).report()
    rows = list(csv.DictReader(io.StringIO(report.to_csv(), newline="")))
    assert {row["publisher"] for row in rows} == {f"'{hostile}", "P-2", "other", "(all)"}
    # Numbers stay numbers, those below zero too.
    assert [float(row["low"]) for row in rows] == [cell.low for cell in report.rows()]
    assert hostile in report.to_polars()["publisher"]


def test_what_was_cut_stands_beside_the_interval() -> None:
    made = MadeUp(released=2, queries=("slot", "matrix"), mechanism="personal-budget")
    report = made.report()
    rows = list(csv.DictReader(io.StringIO(report.to_csv(), newline="")))
    assert list(rows[0]) == [
        "measure", "view", "slot", "first_slot", "last_slot", "starts_at", "ends_at", "query",
        "publisher", "value", "low", "high", "standard_error", "cut", "noisy",
    ]  # fmt: skip
    cut = {row["query"]: float(row["cut"]) for row in rows if row["publisher"] == "(all)"}
    assert cut["slot 2"] == pytest.approx(report.measured[1].slot_totals[0].cut)
    assert cut["slot 2"] > 0
    # It may move queries that are no sums either way, and nothing is said about those.
    assert cut["change row 2"] == 0


def test_moments_carry_the_zone_of_the_campaign() -> None:
    table = MadeUp(released=1).report().to_arrow()
    assert str(table.schema.field("starts_at").type) == "timestamp[us, tz=Europe/Berlin]"


def test_a_range_starts_with_its_first_slot() -> None:
    """And not with the slot of the release that it is in."""
    report = MadeUp(released=3, queries=("prefix", "slot")).report()
    rows = list(csv.DictReader(io.StringIO(report.to_csv(), newline="")))
    found = {row["query"]: (row["first_slot"], row["starts_at"], row["ends_at"]) for row in rows}
    first, third, fourth = (f"2026-03-0{day}T00:00:00+01:00" for day in (1, 3, 4))
    assert found["prefix 1..3"] == ("1", first, fourth)
    assert found["slot 3"] == ("3", third, fourth)


def test_json_says_what_is_promised() -> None:
    found = json.loads(MadeUp().report(level=0.9).to_json())
    cells = found.pop("cells")
    assert len(cells) == 31 * 7
    assert found == {
        "campaign": "spring-shoes",
        "scope": "acme",
        "advertiser": "Ad-1",
        "format": 2,
        "measures": [
            {
                "name": "conversions",
                "metric": "conversions",
                "currency": None,
                "by": ["publisher"],
                "share": 1.0,
            }
        ],
        "attribution_model": "last_touch",
        "attribution": None,
        "level": 0.9,
        "adjusted": False,
        "guarantee": {
            "unit": "user",
            "adjacency": "add-remove",
            "rho": 1.0,
            "epsilon": 5.3,
            "delta": 1e-6,
            "scope": "acme",
            "scope_rho": 3.0,
            "scope_epsilon": 14.948,
        },
        "budget": {
            "campaign": {"limit": 1.0, "spent": 0.9, "left": 0.1},
            "scope": {"limit": 3.0, "spent": 1.9, "left": 1.1},
        },
        "ratios": [],
    }


def test_json_says_which_model_attributed_what() -> None:
    made = MadeUp(("big", "small"), released=5, model="shapley", fit_slot=3, share_error=0.2)
    report = made.report(level=0.9)
    found = json.loads(report.to_json())["attribution"]
    rows = found.pop("comparison")
    assert found == {
        "model": "shapley",
        "by_slot": ["shapley_path"] * 3 + ["shapley"] * 2,
        "fit_slot": 3,
        "relative_noise": None,
    }
    assert [(row["model"], row["publisher"]) for row in rows] == [
        (model, publisher) for model in COMPARED for publisher in ("big", "small", "other")
    ]
    for row, share in zip(rows, made.fit.comparison, strict=True):
        assert (row["share"], row["standard_error"]) == (share.share, 0.2)
        # A share is never below nothing.
        assert row["low"] == pytest.approx(max(share.share - 0.2 * 1.6449, 0), abs=1e-4)
        assert row["high"] == pytest.approx(share.share + 0.2 * 1.6449, abs=1e-4)
    assert 0.0 in [row["low"] for row in rows]


@pytest.mark.parametrize(
    ("fit_slot", "model"), [(None, "shapley"), (4, "shapley_path")], ids=["file", "not yet"]
)
def test_json_of_a_campaign_without_a_fit_of_its_own(fit_slot: int | None, model: str) -> None:
    report = MadeUp(released=2, model="shapley", fit_slot=fit_slot).report()
    assert json.loads(report.to_json())["attribution"] == {
        "model": model,
        "by_slot": [model, model],
        "fit_slot": None,
        "relative_noise": None,
        "comparison": [],
    }


def test_a_fit_moves_no_cell() -> None:
    fitted = MadeUp(released=5, model="shapley", fit_slot=3).report()
    assert fitted.to_csv() == MadeUp(released=5).report().to_csv()


@pytest.mark.parametrize("format", ["html", "csv", "parquet", "json"])
def test_write_makes_one_file_that_others_may_read(format: str, tmp_path: Path) -> None:
    target = tmp_path / f"report.{format}"
    target.write_text("an older report", encoding="utf-8")
    MadeUp(released=2).report().write(target, format)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert len(target.read_bytes()) > 100
    plain = tmp_path / "plain"
    plain.touch()
    assert target.stat().st_mode == plain.stat().st_mode


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"format = 'htm': expected one of .*Did you mean \"html\""):
        MadeUp(released=1).report().write(tmp_path / "report", "htm")
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="Check that it exists"):
        MadeUp(released=1).report().write(tmp_path / "nowhere" / "report.csv", "csv")
    assert not list(tmp_path.iterdir())


def test_a_folder_in_the_place_of_the_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "report.csv").mkdir()
    with pytest.raises(SourceError, match=r"report\.csv: found a place that cannot be written"):
        MadeUp(released=1).report().write(tmp_path / "report.csv", "csv")
    assert [path.name for path in tmp_path.iterdir()] == ["report.csv"]


@pytest.mark.parametrize(
    ("call", "number"),
    [("fsync", errno.ENOSPC), ("replace", errno.EACCES)],
    ids=["full disk", "unwritable folder"],
)
def test_a_failed_write_leaves_the_old_file_alone(
    call: str, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.csv"
    target.write_text("old", encoding="utf-8")

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(SourceError, match=os.strerror(number)):
        MadeUp(released=1).report().write(target, "csv")
    assert target.read_text(encoding="utf-8") == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.csv"]
