"""Reads what publishers were paid, from the file that the campaign file names or row by row."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from math import isfinite
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from adsbpc.errors import SourceError, did_you_mean
from adsbpc.model import CampaignSpec
from adsbpc.model.grid import OTHER_PUBLISHER
from adsbpc.model.measure_spec import PUBLISHER
from adsbpc.model.slots import to_microseconds
from adsbpc.model.spend import Spend


def read_spend(spec: CampaignSpec) -> Spend | None:
    """None if the campaign file names no file. A day counts for the slot that it ends in."""
    section = spec.spend
    if section is None:
        return None
    file = spec.directory / section.file
    names = (section.publisher, section.day, section.amount, *section.by)
    rows = ([row[name] for name in names] for row in _rows(file, names))
    return spend_of(spec, rows, section.by, f"{file}, ")


def spend_of(
    spec: CampaignSpec, rows: Iterable[Sequence[Any]], by: Sequence[str] = (), where: str = ""
) -> Spend:
    """From rows of publisher, day, amount and a value of each further dimension."""
    known = {name: _values(name, by, spec) for name in by}
    amounts: dict[tuple[tuple[str, ...], int], float] = {}
    for number, (publisher, day, amount, *values) in enumerate(rows, start=1):
        row = f"{where}row {number}"
        keys = (
            _listed(publisher, "publisher", spec.reported_publishers, row),
            *(_listed(value, name, known[name], row)
              for name, value in zip(by, values, strict=True)),
        )  # fmt: skip
        place = keys, _slot(day, spec, row)
        amounts[place] = amounts.get(place, 0.0) + _amount(amount, row)
    return Spend(amounts, (PUBLISHER, *by))


def _values(name: str, by: Sequence[str], spec: CampaignSpec) -> Sequence[str]:
    """Those that a dimension has in reports."""
    if name not in spec.dimensions or by.count(name) > 1:
        declared = list(spec.dimensions)
        raise SourceError(
            "spend by dimensions",
            f"{name!r} among {', '.join(by)}",
            f"each once, of those of [dimensions]: {', '.join(declared) or 'it has none'}",
            f"Correct or remove it.{did_you_mean(name, declared)}",
        )
    return (*spec.dimensions[name].values, OTHER_PUBLISHER)


def _rows(file: Path, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
    try:
        if file.suffix == ".parquet":
            from adsbpc.engines.frames import parquet_rows

            columns, found = parquet_rows(file)
            rows = iter(found)
        else:
            text = file.read_text(encoding="utf-8-sig")
            reader = csv.DictReader(text.splitlines())
            columns, rows = list(reader.fieldnames or ()), iter(reader)
    except (OSError, ValueError, csv.Error) as error:
        raise SourceError(
            str(file), f"a file that cannot be read ({error})", "a CSV or Parquet file of spend",
            "Correct [spend] file.",
        ) from None  # fmt: skip
    for name in wanted:
        if name not in columns:
            raise SourceError(
                f"{file}, column {name!r}",
                f"only the columns {', '.join(columns)}",
                "publisher, day and amount of each row, and a column for each dimension",
                f"Map it in [spend].{did_you_mean(name, columns)}",
            )
    yield from rows


def _listed(given: Any, dimension: str, known: Sequence[str], where: str) -> str:
    name = "" if given is None else str(given).strip()
    if name not in known:
        raise SourceError(
            where,
            f"{dimension} {name!r}",
            "one that the campaign lists, or other",
            f"Correct it, or count it as other.{did_you_mean(name, known)}",
        )
    return name


def _slot(given: Any, spec: CampaignSpec, where: str) -> int:
    try:
        day = given if isinstance(given, date) else date.fromisoformat(str(given).strip())
    except ValueError:
        raise SourceError(
            where, f"day {given!r}", "a day, for example 2026-03-01", "Correct it."
        ) from None
    if isinstance(day, datetime):
        day = day.date()
    # Its last moment, in the campaign's time zone.
    ends = datetime.combine(day + timedelta(days=1), time(), ZoneInfo(spec.campaign.timezone))
    slot = spec.grid.slot_of(to_microseconds(ends) - 1)
    if slot is None:
        first, last = (spec.grid.bounds_text(k)[0][:10] for k in (1, spec.campaign.slots))
        raise SourceError(
            where, f"day {day}", f"a day of the campaign, whose slots start {first} to {last}",
            "Correct it, or remove the row.",
        )  # fmt: skip
    return slot


def _amount(given: Any, where: str) -> float:
    try:
        amount = float(given)
    except (TypeError, ValueError):
        amount = float("nan")
    if not isfinite(amount) or amount < 0:
        raise SourceError(where, f"amount {given!r}", "a number from 0 on", "Correct it.")
    return amount
