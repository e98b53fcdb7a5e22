"""Small campaigns with personal budgets, slot by slot, for the tests of the mechanism."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from adsbpc.contributions import ArrayAccounts, ArrayContributions, CellIndex
from adsbpc.mechanisms import (
    BudgetByRows,
    RowsState,
    plan_measures,
)
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import Drawn
from tests.mechanisms.campaigns import LAYOUT, spec_of

SLOTS = 8


def planned(
    slots: int = SLOTS, workload: dict[str, Any] | None = None, **privacy: Any
) -> BudgetByRows:
    privacy = {"mechanism": "personal-budget", **privacy}
    mechanism = plan_measures(spec_of(slots, workload, **privacy)).runs[0][1]
    assert isinstance(mechanism, BudgetByRows)
    return mechanism


def index_of(rows: list[tuple[str, int, int]], slots: int = SLOTS) -> CellIndex:
    """One whole conversion a row: (user, slot, publisher index)."""
    return CellIndex.of(
        ArrayContributions(
            [user for user, _, _ in rows], [slot for _, slot, _ in rows],
            [publisher for _, _, publisher in rows], [UNIT] * len(rows), slots, LAYOUT,
        )
    )  # fmt: skip


def people(slots: int = SLOTS, count: int = 3_000, seed: int = 1) -> list[tuple[str, int, int]]:
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(count), rng.geometric(0.4, count))
    return [
        (f"u{user}", int(slot), int(publisher))
        for user, slot, publisher in zip(
            rows, rng.integers(1, slots + 1, rows.size), rng.integers(0, 2, rows.size), strict=True
        )
    ]


def run(
    mechanism: BudgetByRows, index: CellIndex, randomness: Any
) -> tuple[list[Drawn], RowsState]:
    """Every slot, with the state written to JSON and read back in between."""
    accounts, steps, releases = ArrayAccounts(index), list[dict[str, Any]](), []
    for _ in range(mechanism.slots):
        state = RowsState.from_steps(json.loads(json.dumps(steps)))
        released, state = mechanism.release(state, accounts, randomness)
        steps.append(state.last_step())
        releases.append(released)
    return releases, state
