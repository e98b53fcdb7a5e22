"""The figures that the paper printed (its tables 5 to 14), as facts."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

_DATASETS = {
    "criteo_lta": "criteo",
    "criteo_fta": "criteo-first",
    "criteo_uni": "criteo-uniform",
}
_COLUMNS = {
    "ipa": "IPA",
    "bin": "BIN",
    "stream": "Stream",
    "umm": "UMM",
    "mmbpc": "MMBPC",
    "adsbpc-published": "AdsBPC",
}


@cache
def _table() -> dict[tuple[str, str, str], dict[str, str]]:
    text = files("adsbpc.lab.reproduction").joinpath("published.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {
        (row["table"], _DATASETS.get(row["dataset"], row["dataset"]), row["setting"]): row
        for row in rows
    }


def published(table: str, dataset: str, setting: str, mechanism: str) -> float | None:
    """The printed figure, or None where there is none."""
    row = _table().get((table, dataset, setting), {})
    text = row.get(_COLUMNS.get(mechanism, ""), "")
    return float(text) if text else None
