"""Files for machines: cells as Arrow, CSV, Parquet and JSON, written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adsbpc.durable import write_durably
from adsbpc.errors import SourceError
from adsbpc.model import ALL_PUBLISHERS, Measure, Promise
from adsbpc.model.layout import view_name
from adsbpc.model.measure_spec import ARM, PUBLISHER
from adsbpc.report.calibration import Calibration
from adsbpc.report.lift import Lift, arm_totals
from adsbpc.report.model_comparison import Models
from adsbpc.report.ratios import Ratio

if TYPE_CHECKING:
    from adsbpc.report.report import Report

# Of the JSON. Format 2 has measures and views.
REPORT_FORMAT = 2
# The arm that a row of lift compares with, where there is a trial.
_COMPARED = "compared_with"
_FORMULA_SIGNS = ("=", "+", "-", "@")
# Columns by the attribute of a cell; those of dimensions stand after `query`.
_FIRST = {
    "measure": "measure", "view": "view", "slot": "slot", "first_slot": "first_slot",
    "last_slot": "slot", "starts_at": "starts_at", "ends_at": "ends_at", "query": "query",
}  # fmt: skip
_LAST = {
    "value": "estimate", "low": "low", "high": "high", "standard_error": "standard_error",
    "cut": "cut", "noisy": "noisy",
}  # fmt: skip
# Of running totals, where a report has them; other rows have none.
_BAND = {"band_low": "band_low", "band_high": "band_high"}
_FIGURES = _LAST | _BAND


def columns_of(report: Report) -> dict[str, list[Any]]:
    """The long form: a row for each cell, and a column for each dimension of any measure. Over
    dimensions that a view does not keep, a row sums: they have "(all)" there."""
    dimensions = {each.name: _named(each) for each in report.spec.measures}
    names = list(dict.fromkeys(name for own in dimensions.values() for name in own))
    cells = report.rows()
    found: dict[str, list[Any]] = {
        column: [getattr(cell, attribute) for cell in cells]
        for column, attribute in _FIRST.items()
        if column != "view"
    }
    kept = [dict(zip(dimensions[cell.measure], cell.keys, strict=False)) for cell in cells]
    found["view"] = [view_name(tuple(own)) for own in kept]
    found |= {name: [own.get(name, ALL_PUBLISHERS) for own in kept] for name in names}
    last = _FIGURES if report.band else _LAST
    found |= {
        column: [getattr(cell, attribute) for cell in cells] for column, attribute in last.items()
    }
    return {name: found[name] for name in (*_FIRST, *names, *last)}


def with_ratios(report: Report, columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """A row more for each ratio so far, by its name for a measure; what it does not have is None,
    and so are its figures where it cannot be told."""
    rows = [
        {
            "measure": each.name, "view": view_name(_kept(each)), "slot": each.slot,
            "first_slot": each.first_slot, "last_slot": each.slot,
            "starts_at": report.timeline.moment(each.first_slot - 1),
            "ends_at": report.timeline.moment(each.slot), "query": "ratio",
            **dict.fromkeys(columns.keys() - _FIRST.keys() - _FIGURES.keys(), ALL_PUBLISHERS),
            PUBLISHER: each.publisher, **each.keys,
            "value": each.value, "low": each.low, "high": each.high,
        }
        for each in report.ratios
    ]  # fmt: skip
    return {name: [*found, *(row.get(name) for row in rows)] for name, found in columns.items()}


def with_lift(report: Report, columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Rows more for every look at what the campaign caused: the same estimate with the interval for
    one look and for all, and as a part of the arm that it is compared with, which a column names;
    and for what that is beside attribution, after the newest slot."""
    if report.spec.lift is None:
        return columns
    others = columns.keys() - _FIRST.keys() - _FIGURES.keys()
    count = len(columns["measure"])
    columns = {**columns, _COMPARED: [None] * count}

    def common(each: Lift | Calibration, slot: int, keys: dict[str, str]) -> dict[str, Any]:
        publishers = {PUBLISHER: " and ".join(each.withheld)} if each.withheld else {}
        return {
            **dict.fromkeys(others, ALL_PUBLISHERS), **publishers,
            "measure": each.measure, "view": view_name((ARM, *keys)), "slot": slot,
            "first_slot": 1, "last_slot": slot, "starts_at": report.timeline.moment(0),
            "ends_at": report.timeline.moment(slot), ARM: each.arm, **keys,
            _COMPARED: each.control,
        }  # fmt: skip

    rows: list[dict[str, Any]] = [
        common(each, report.newest.slot, {})
        | {"query": "calibration", "value": each.factor, "low": each.low, "high": each.high}
        for each in report.calibrations
    ]
    for each in report.lifts:
        own = common(each, each.slot, each.keys) | {"standard_error": each.standard_error}
        rows += [
            own | {"query": "incremental", "value": each.incremental, "low": each.low,
                   "high": each.high},
            own | {"query": "incremental, all looks", "value": each.incremental,
                   "low": each.band_low, "high": each.band_high},
            own | {"query": "relative lift", "value": each.relative, "low": each.relative_low,
                   "high": each.relative_high, "standard_error": None},
        ]  # fmt: skip
    return {name: [*found, *(row.get(name) for row in rows)] for name, found in columns.items()}


def lift_object(report: Report) -> dict[str, Any]:
    """For JSON; nothing where there are no arms."""
    if report.spec.lift is None:
        return {}
    balance = report.balance
    return {
        "lift": [asdict(each) | {"told": each.is_told} for each in report.lifts],
        "arms": arm_totals(report),
        "balance": None if balance is None else asdict(balance) | {"is_bad": balance.is_bad},
        "calibration": [asdict(each) for each in report.calibrations],
    }


def _kept(ratio: Ratio) -> tuple[str, ...]:
    return () if ratio.is_of_everything else (PUBLISHER, *ratio.keys)


def _named(measure: Measure) -> tuple[str, ...]:
    return tuple(dimension.name for dimension in measure.layout.dimensions)


def arrow_of(columns: dict[str, list[Any]], timezone: str) -> Any:
    """A pyarrow Table; moments carry the campaign's time zone."""
    import pyarrow as pa

    moment, whole = pa.timestamp("us", tz=timezone), pa.int32()
    types = {
        "slot": whole, "first_slot": whole, "last_slot": whole, "starts_at": moment,
        "ends_at": moment, "noisy": pa.bool_(),
    } | dict.fromkeys((name for name in _FIGURES if name != "noisy"), pa.float64())  # fmt: skip
    schema = pa.schema([(name, types.get(name, pa.string())) for name in columns])
    return pa.table(columns, schema=schema)


def csv_of(columns: dict[str, list[Any]]) -> str:
    """Moments in ISO 8601 with their offset; every digit of the numbers; true and false. Texts that
    a spreadsheet would take for a formula start with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([plain(value) for value in row] for row in _rows(columns))
    return text.getvalue()


def _rows(columns: dict[str, list[Any]]) -> Iterator[tuple[Any, ...]]:
    return zip(*columns.values(), strict=True)


def promise_object(promise: Promise) -> dict[str, Any]:
    """A promise for JSON, the same wherever one is printed."""
    return {
        "unit": promise.guarantee.unit,
        "adjacency": promise.guarantee.adjacency.value,
        "rho": float(promise.guarantee.rho),
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "scope": promise.guarantee.scope,
        "scope_rho": float(promise.scope_rho),
        "scope_epsilon": promise.scope_epsilon,
    }


def json_of(report: Report) -> str:
    campaign, columns = report.spec.campaign, columns_of(report)
    found = {
        "format": REPORT_FORMAT,
        "campaign": campaign.name,
        "scope": campaign.scope,
        "advertiser": campaign.advertiser,
        "measures": [
            {
                "name": each.name,
                "metric": each.metric,
                "currency": each.currency,
                "by": list(_named(each)),
                "share": float(each.share),
            }
            for each in report.spec.measures
        ],
        "attribution_model": report.spec.attribution.model,
        "attribution": _models(report.models),
        "level": report.level,
        "adjusted": report.adjusted,
        "guarantee": promise_object(report.promise),
        "budget": {
            "campaign": report.campaign_budget.to_object(),
            "scope": report.scope_budget.to_object(),
        },
        "ratios": [asdict(each) for each in report.ratios],
        **lift_object(report),
        "cells": [
            {name: _iso(value) for name, value in zip(columns, row, strict=True)}
            for row in _rows(columns)
        ],
    }
    return json.dumps(found, ensure_ascii=False, indent=2)


def parquet_of(table: Any) -> bytes:
    import pyarrow.parquet as pq

    content = io.BytesIO()
    pq.write_table(table, content)
    return content.getvalue()


def write_whole(path: Path, content: bytes) -> None:
    """Nobody ever reads half a file."""
    try:
        # Some shares that people write reports to cannot sync a folder.
        write_durably(path, content, folders=0)
    except OSError as error:
        raise SourceError(
            str(path),
            f"a place that cannot be written ({error.strerror or error})",
            f"a folder that takes {len(content):,} bytes",
            "Check that it exists, that you may write to it and that the disk has room; nothing "
            "was changed",
        ) from None


def plain(value: Any) -> Any:
    """As it stands in a CSV file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.startswith(_FORMULA_SIGNS):
        return f"'{value}"
    return _iso(value)


def _iso(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _models(models: Models | None) -> dict[str, Any] | None:
    if models is None:
        return None
    return {
        "model": models.by_slot[-1],
        "by_slot": models.by_slot,
        "fit_slot": models.fit_slot,
        "relative_noise": models.relative_noise,
        "comparison": [asdict(each) for each in models.comparison],
    }
