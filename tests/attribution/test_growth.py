"""No step of attribution grows with impressions times conversions of one user."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adsbpc.attribution.reference import Conversion, Impression
from adsbpc.campaign import attribute
from adsbpc.engines import Engine
from tests.attribution.test_engines_agree import BEFORE
from tests.worlds import World

EVENTS = 5_000
MAX_TOUCHES = 10


def rows_of_operators(node: dict[str, Any]) -> Iterator[int]:
    yield int(node.get("intermediate_rows", 0))
    for child in [*node.get("operator", []), *node.get("children", [])]:
        yield from rows_of_operators(child)


@pytest.mark.parametrize("model", ["last_touch", "first_touch", "uniform", "time_decay"])
def test_no_operator_pairs_everything(model: str, duckdb_engine: Engine, tmp_path: Path) -> None:
    """A conversion meets two blocks of clicks and two of views, never all impressions."""
    world = World(
        [
            Impression("bot", f"P-{k % 3}", BEFORE + k * 100_000_000, k % 2 == 0)
            for k in range(EVENTS)
        ],
        [Conversion("bot", f"c{k}", at := BEFORE + k * 100_000_000 + 1, at) for k in range(EVENTS)],
        attribution={
            "model": model,
            "max_touches": MAX_TOUCHES,
            "click_lookback": "30d",
            "view_lookback": "30d",
        },
    )
    credits = attribute(world.write(tmp_path), duckdb_engine).credits
    ((_, plan),) = duckdb_engine.rows(
        "plan", f"EXPLAIN (ANALYZE, FORMAT json) SELECT * FROM {credits}"
    )
    largest = max(rows_of_operators(json.loads(plan)))
    assert EVENTS <= largest <= 4 * MAX_TOUCHES * EVENTS
    assert 4 * MAX_TOUCHES * EVENTS < EVENTS * EVENTS / 10
