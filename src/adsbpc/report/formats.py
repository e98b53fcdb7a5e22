"""Files for machines: cells as Arrow, CSV, Parquet and JSON, written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import datetime
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adsbpc.durable import write_durably
from adsbpc.errors import SourceError
from adsbpc.model import Promise
from adsbpc.report.cells import Cell
from adsbpc.report.model_comparison import Models

if TYPE_CHECKING:
    from adsbpc.report.report import Report

_FORMULA_SIGNS = ("=", "+", "-", "@")
COLUMNS = tuple(field.name for field in fields(Cell))


def arrow_of(columns: dict[str, list[Any]], timezone: str) -> Any:
    """A pyarrow Table; moments carry the campaign's time zone."""
    import pyarrow as pa

    moment = pa.timestamp("us", tz=timezone)
    types = {
        "slot": pa.int32(),
        "starts_at": moment,
        "ends_at": moment,
        "query": pa.string(),
        "publisher": pa.string(),
        "noisy": pa.bool_(),
    }
    schema = pa.schema([(name, types.get(name, pa.float64())) for name in COLUMNS])
    return pa.table(columns, schema=schema)


def csv_of(cells: Sequence[Cell]) -> str:
    """Moments in ISO 8601 with their offset; every digit of the numbers; true and false. Texts that
    a spreadsheet would take for a formula start with an apostrophe."""
    values_of = attrgetter(*COLUMNS)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_plain(value) for value in values_of(cell)] for cell in cells)
    return text.getvalue()


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
    campaign = report.spec.campaign
    found = {
        "campaign": campaign.name,
        "scope": campaign.scope,
        "advertiser": campaign.advertiser,
        "metric": campaign.metric,
        "attribution_model": report.spec.attribution.model,
        "attribution": _models(report.models),
        "level": report.level,
        "adjusted": report.adjusted,
        "guarantee": promise_object(report.promise),
        "budget": {
            "campaign": report.campaign_budget.to_object(),
            "scope": report.scope_budget.to_object(),
        },
        "cells": [_object(cell) for cell in report.rows()],
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


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.startswith(_FORMULA_SIGNS):
        return f"'{value}"
    return value.isoformat() if isinstance(value, datetime) else value


def _object(cell: Cell) -> dict[str, Any]:
    found = {name: getattr(cell, name) for name in COLUMNS}
    return found | {name: found[name].isoformat() for name in ("starts_at", "ends_at")}


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
