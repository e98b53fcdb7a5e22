"""The part of the form about what is counted: measures in rows, and the control of a trial.

One measure by publisher is what [campaign] says, as it always was; everything else is [[measure]].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adsbpc.errors import SpecError
from adsbpc.model.measure_spec import ARM, OF_IMPRESSIONS, PUBLISHER
from adsbpc.model.toml import place
from adsbpc.service.ingest.rows import DIMENSION_COLUMNS

Values = Mapping[str, str]

ROWS = range(1, 6)
METRICS = {
    "conversions": "conversions",
    "value": "value of conversions",
    "converters": "people who convert",
    "reach": "people who were reached",
    "clicks": "clicks",
    "impressions": "views",
}
# What a measure is by, besides publishers.
BREAKDOWNS = {"": "publisher", **{each: f"publisher and {each}" for each in DIMENSION_COLUMNS}}
_OF_A_ROW = {
    "metric": "Metric",
    "by": "Told apart by",
    "value_cap": "Most per conversion",
    "share": "Share of the budget",
    "volume": "Expected in all",
    "target": "A publisher within (%)",
}
_LARGEST_TARGET = 1_000
_OF_CAMPAIGNS = ("conversions", "value")
_OF_TRIAL = "buyers"


def defaults() -> dict[str, str]:
    rows = {f"{name}_{row}": "" for row in ROWS for name in _OF_A_ROW}
    lists = {f"values_{column}": "" for column in DIMENSION_COLUMNS}
    return {**rows, "metric_1": "conversions", **lists, "control_share": "", "trial_share": ""}


def labels() -> dict[str, str]:
    rows = {
        f"{name}_{row}": f"{label} (measure {row})"
        for row in ROWS
        for name, label in _OF_A_ROW.items()
    }
    lists = {f"values_{column}": f"What is told apart by {column}" for column in DIMENSION_COLUMNS}
    trial = {
        "control_share": "People who see no ads",
        "trial_share": "The trial's share of the budget",
    }
    return {**rows, **lists, **trial}


def row_labels() -> dict[str, str]:
    """Beside fields of a row, whose heading says which one it is."""
    return _OF_A_ROW


@dataclass(frozen=True)
class _Row:
    """A measure as it was typed; `number` is that of its row."""

    number: int
    metric: str
    by: str
    value_cap: str
    share: str
    volume: str
    target: str

    @property
    def name(self) -> str:
        return f"{self.metric} by {self.by}" if self.by else self.metric

    @property
    def dimension(self) -> str:
        """Of what conversions say, or of what impressions do."""
        return f"{self.by} of ads" if self.metric in OF_IMPRESSIONS else self.by

    def content(self) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.name, "metric": self.metric}
        if self.by:
            found["by"] = [PUBLISHER, self.dimension]
        if self.value_cap and self.metric == "value":
            found["value_cap"] = number_or_text(self.value_cap)
        if self.share:
            found["share"] = number_or_text(self.share)
        return found


def content_of(values: Values) -> dict[str, Any]:
    """What a campaign file would say of it."""
    rows, control = _rows(values), values["control_share"].strip()
    if _is_plain(rows, control):
        section = {
            key: value
            for row in rows
            for key, value in row.content().items()
            if key in ("metric", "value_cap")
        }
        return {"campaign": section, **_expected(rows)}
    measures = [row.content() for row in rows]
    found: dict[str, Any] = {"campaign": {}, "measure": measures, **_expected(rows)}
    dimensions = _dimensions(rows, values)
    if dimensions:
        found["dimensions"] = dimensions
    if control:
        found["lift"] = {
            "shares": {"treatment": _rest(control), "control": number_or_text(control)}
        }
        trial = {"name": _OF_TRIAL, "metric": "converters", "by": [ARM]}
        share = values["trial_share"].strip()
        measures.append({**trial, "share": number_or_text(share)} if share else trial)
    return found


def values_of(content: Mapping[str, Any]) -> dict[str, str]:
    """The other way round. Measures that the form cannot say are left out."""
    section, dimensions = content.get("campaign", {}), content.get("dimensions", {})
    plain = {"metric": section.get("metric", "conversions"), "value_cap": section.get("value_cap")}
    named = {PUBLISHER: "", **{name: each["column"] for name, each in dimensions.items()}}
    found: dict[str, str] = {"metric_1": ""}
    row = 0
    for measure in content.get("measure") or [plain]:
        by = measure.get("by", [PUBLISHER])
        if by == [ARM]:
            found["trial_share"] = _typed(measure.get("share"))
        if by[0] != PUBLISHER or len(by) > 2 or row == ROWS[-1]:
            continue
        row += 1
        column = named.get(by[-1], "")
        volume = content.get("expected", {}).get(measure.get("name", measure["metric"]))
        typed = {**measure, "by": column, "volume": volume}
        found |= {f"{name}_{row}": _typed(typed.get(name)) for name in _OF_A_ROW}
        if column:
            found[f"values_{column}"] = "\n".join(dimensions[by[-1]]["values"])
    control = content.get("lift", {}).get("shares", {}).get("control")
    return {**found, "control_share": _typed(control)}


def _typed(value: Any) -> str:
    return "" if value is None else str(value)


def targets_of(values: Values) -> list[str]:
    """How close the average publisher is to be, of measures of which that is said; for the planner
    only."""
    found = []
    for row in _rows(values):
        if not row.target:
            continue
        text, path = row.target.removesuffix("%").strip(), _target_place(row)
        try:
            is_part = 0 < float(text) <= _LARGEST_TARGET
        except ValueError:
            is_part = False
        if not is_part:
            raise SpecError("expected a percentage such as 10", path, repr(row.target))
        if not row.volume:
            raise SpecError(
                "how close that is depends on how much is counted", path, f"{text}%",
                "Say what is expected in all",
            )  # fmt: skip
        found.append(f"{row.name}/{PUBLISHER}={float(text):f}%")
    return found


def _target_place(row: _Row) -> str:
    return place("target", row.name)


def places_of(values: Values) -> dict[str, str]:
    """Where each field stands in the campaign file that would be written, by its place there."""
    rows, control = _rows(values), values["control_share"].strip()
    found = {place("measure"): "share_1", place("measure", str(len(rows)), "share"): "trial_share"}
    for position, row in enumerate(rows):
        section = ["campaign"] if _is_plain(rows, control) else ["measure", str(position)]
        for key in ("metric", "by", "value_cap", "share"):
            found[place(*section, key)] = f"{key}_{row.number}"
        found[place("expected", row.name)] = f"volume_{row.number}"
        found[_target_place(row)] = f"target_{row.number}"
        if row.by:
            found[place("dimensions", row.dimension, "values")] = f"values_{row.by}"
    for path in (("lift", "shares"), ("lift.shares", "treatment"), ("lift.shares", "control")):
        found[place(*path)] = "control_share"
    return found


def number_or_text(text: str) -> str | int | float:
    """Numbers as numbers; what is none is refused where campaign files are checked."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def names_of(text: str) -> list[str]:
    """One a line."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def _rows(values: Values) -> list[_Row]:
    typed = (
        _Row(number, **{name: values[f"{name}_{number}"].strip() for name in _OF_A_ROW})
        for number in ROWS
    )
    return [row for row in typed if row.metric]


def _is_plain(rows: list[_Row], control: str) -> bool:
    if control or len(rows) > 1:
        return False
    return all(row.metric in _OF_CAMPAIGNS and not row.by for row in rows)


def _expected(rows: list[_Row]) -> dict[str, Any]:
    found = {row.name: number_or_text(row.volume) for row in rows if row.volume}
    return {"expected": found} if found else {}


def _dimensions(rows: list[_Row], values: Values) -> dict[str, Any]:
    return {
        row.dimension: {
            "column": row.by,
            "of": "impression" if row.metric in OF_IMPRESSIONS else "conversion",
            "values": names_of(values.get(f"values_{row.by}", "")),
        }
        for row in rows
        if row.by
    }


def _rest(control: str) -> float:
    """The part of people outside the control; all if that is no number, which is reported."""
    try:
        return round(1 - float(control), 12)
    except ValueError:
        return 1.0
