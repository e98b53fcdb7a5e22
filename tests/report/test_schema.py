"""The JSON Schema of reports: what every kind of campaign writes is in it, and it says all. One
with measures and spend is in tests/campaign/test_spend.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from adsbpc.report import Report
from adsbpc.report.formats import REPORT_FORMAT
from adsbpc.report.schema import ReportObject, schema
from tests.report.releases import MadeUp
from tests.report.trials import MadeUpTrial

DOCS = Path(__file__).parents[2] / "docs"
WRITTEN: dict[str, Any] = json.loads((DOCS / "report.schema.json").read_text())


REPORTS: dict[str, Callable[[], Report]] = {
    "adsbpc": lambda: MadeUp(released=3).report(band=True),
    "budgets": lambda: MadeUp(released=3, mechanism="personal-budget").report(adjusted=True),
    "changes": lambda: MadeUp(released=3, queries=("prefix", "matrix")).report(),
    "fitted": lambda: MadeUp(released=5, model="shapley", fit_slot=3).report(),
    "trial": lambda: MadeUpTrial(slots=4, released=4, daily_spend=3.0).report(),
}


def _fits(found: Any) -> bool:
    try:
        ReportObject.model_validate_json(json.dumps(found), strict=True)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("kind", REPORTS)
def test_what_is_written_fits(kind: str) -> None:
    text = REPORTS[kind]().to_json()
    ReportObject.model_validate_json(text, strict=True)
    found = json.loads(text)
    assert ("lift" in found) == (kind == "trial")
    # It would not do if it took anything.
    assert not _fits({**found, "more": 1})
    assert not _fits({**found, "format": REPORT_FORMAT + 1})
    for cell in found["cells"][:1]:
        for name in cell.keys() - {"band_low", "band_high"}:
            assert not _fits({**found, "cells": [{**cell, name: []}]})


def test_the_schema_of_the_documents_is_that_of_the_code() -> None:
    assert json.loads(json.dumps(schema())) == WRITTEN, "run python docs/report.py"


def test_a_key_that_no_document_describes() -> None:
    """Lift's own fields are told in words by docs/lift.md."""
    text = (DOCS / "report.md").read_text()
    parts = {"": WRITTEN, **WRITTEN["$defs"]}
    for part in parts.keys() - {"LiftObject", "ArmObject", "BalanceObject", "Calibration"}:
        for name in parts[part]["properties"]:
            assert f"`{name}`" in text, (part, name)
