"""Figures of results, drawn without a browser: SVG and PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Colours that people with any colour vision tell apart, ours last and strongest.
_COLOURS = (
    "#9aa5b1", "#5b8db8", "#b0855a", "#7a9e7e", "#4f6d7a", "#b48bb0", "#d98c3f", "#0067a6",
    "#3a9bd9", "#101820",
)  # fmt: skip
_LOGARITHMIC = {"type": "log", "nice": False, "zero": False, "padding": 16}
_STYLE = {
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {"gridColor": "#e6e9ec", "domainColor": "#b8c0c8", "tickColor": "#b8c0c8"},
    "background": "white",
}


def points_figure(
    title: str, rows: Sequence[dict[str, Any]], axis: str, mechanisms: Sequence[str]
) -> dict[str, Any]:
    """A row a setting; filled points are ours, diamonds are what was published.

    Rows have `setting`, `mechanism`, `value` and `published`.
    """
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    base = {
        "y": {"field": "setting", "type": "nominal", "sort": settings, "title": None},
        "color": _colour(mechanisms),
    }
    printed = [row for row in rows if row["published"] is not None]
    layers: list[dict[str, Any]] = [
        {
            "data": {"values": list(rows)},
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.9},
            "encoding": {**base, "x": _logarithmic("value", axis)},
        }
    ]
    if printed:
        layers.append(
            {
                "data": {"values": printed},
                "mark": {"type": "point", "shape": "diamond", "size": 90, "strokeWidth": 1.5},
                "encoding": {**base, "x": _logarithmic("published", axis)},
            }
        )
    return {
        "title": {"text": title, "anchor": "start", "subtitle": _legend(bool(printed))},
        "width": 560,
        "height": {"step": 26},
        "layer": layers,
    }


def lines_figure(
    title: str, rows: Sequence[dict[str, Any]], across: str, axis: str, mechanisms: Sequence[str]
) -> dict[str, Any]:
    """A line a mechanism, over a number that was varied."""
    values = [{**row, "across": float(row["setting"])} for row in rows]
    horizontal = {
        "field": "across",
        "type": "quantitative",
        "title": across,
        "scale": _LOGARITHMIC,
        "axis": {"values": sorted({v["across"] for v in values})},
    }
    return {
        "title": {"text": title, "anchor": "start"},
        "width": 520,
        "height": 340,
        "data": {"values": values},
        "mark": {"type": "line", "point": {"filled": True, "size": 45}, "strokeWidth": 2},
        "encoding": {
            "x": horizontal,
            "y": _logarithmic("value", axis),
            "color": _colour(mechanisms),
        },
    }


def write_figure(spec: dict[str, Any], stem: Path) -> None:
    import vl_convert

    whole = {**spec, "config": _STYLE}
    stem.with_suffix(".svg").write_text(vl_convert.vegalite_to_svg(whole), encoding="utf-8")
    stem.with_suffix(".png").write_bytes(vl_convert.vegalite_to_png(whole, scale=2))


def _legend(printed: bool) -> str:
    return "points: measured here; diamonds: printed in the paper" if printed else "measured here"


def _logarithmic(field: str, title: str) -> dict[str, Any]:
    return {"field": field, "type": "quantitative", "title": title, "scale": _LOGARITHMIC}


def _colour(mechanisms: Sequence[str]) -> dict[str, Any]:
    colours = [_COLOURS[place % len(_COLOURS)] for place in range(len(mechanisms))]
    return {
        "field": "mechanism",
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(mechanisms), "range": colours},
    }
