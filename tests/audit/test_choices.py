"""The audit's own computation of what personal budgets choose: it agrees with campaigns of many
shapes, and finds choices that do not follow from what was released."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from adsbpc.audit.choice_claims import choices
from adsbpc.audit.claims import Claim
from adsbpc.audit.columns import Columns
from adsbpc.audit.promised_plan import PromisedPlan
from adsbpc.audit.record import Record, Slot
from adsbpc.contributions import ArrayAccounts, ArrayContributions, CellIndex
from adsbpc.mechanisms import BudgetByRows, Question, RowsState
from adsbpc.mechanisms.by_rows.planning import plan_by_rows
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import Adjacency, Dimension, Guarantee, Layout
from adsbpc.model.release_spec import PersonalBudgetSection, PrivacySection
from adsbpc.privacy import SeededRandomness
from adsbpc.workloads import WeightedSquaredError, prefix_sums
from tests.effort import first
from tests.mechanisms.test_choices import (
    allowance_of_exact_totals,
    renewal_when_much_was_cut,
    sizes_of_exact_totals,
)

SLOTS = 13
PUBLISHERS = Dimension("publisher", ("a", "b", "c", "d", "other"))
COUNTRIES = Dimension("country", ("x", "y", "other"))
CELLS = Layout((PUBLISHERS,), (0, 1))
LAYOUTS = {
    "cells": CELLS,
    "sums": Layout((PUBLISHERS,), (1, 3)),
    "sums of sums": Layout((PUBLISHERS, COUNTRIES), (1, 0, 4)),
    "every sum": Layout((PUBLISHERS, COUNTRIES), (1, 4, 5)),
    "people once": Layout((PUBLISHERS, COUNTRIES), (1, 1, 1), once=True),
    "one cell": Layout((Dimension("publisher", ("other",)),), (0, 1)),
}
SECTIONS = {
    "": PersonalBudgetSection(),
    "heavy": PersonalBudgetSection(heavy_user=300),
    "fixed": PersonalBudgetSection(allowance=3.0),
    "fixed and large": PersonalBudgetSection(allowance=1_650.0),
}


@dataclass(frozen=True)
class Crowd:
    """So many people, of whom a part comes on nearly every slot, and what each does then."""

    people: int
    regular: float
    times: int = 1


USUAL = Crowd(800, 0.3)


def rows_of(crowd: Crowd, layout: Layout) -> ArrayContributions:
    """Publishers are unlike."""
    rng = np.random.default_rng(5)
    often = np.where(rng.random(crowd.people) < crowd.regular, 0.95, 0.1)
    seen = rng.random((crowd.people, SLOTS)) < often[:, None]
    users, slots = (np.repeat(each, crowd.times) for each in np.nonzero(seen))
    cells = np.minimum(rng.geometric(0.5, users.size) - 1, len(layout) - 1)
    names = [f"u{user}" for user in users]
    return ArrayContributions(
        names, (slots + 1).tolist(), cells.tolist(), [UNIT] * len(names), SLOTS, layout
    )


def campaign(
    layout: Layout,
    section: PersonalBudgetSection = SECTIONS[""],
    adjacency: Adjacency = Adjacency.ADD_REMOVE,
    crowd: Crowd = USUAL,
    start: float | None = None,
) -> tuple[Record, PromisedPlan]:
    """As the ledger would have it."""
    guarantee = Guarantee(Fraction(1), adjacency, "test")
    workload = prefix_sums(SLOTS)
    asked = Question(guarantee, layout, (workload,), WeightedSquaredError(None), 1 / UNIT)
    mechanism = plan_by_rows(asked, section)
    if start is not None:
        mechanism = replace(mechanism, allowance=start)
    record = Record("test", opening={"start": start}, slots=released(mechanism, crowd))
    return record, promised(mechanism, section)


def released(mechanism: BudgetByRows, crowd: Crowd) -> dict[int, Slot]:
    rows = rows_of(crowd, mechanism.layout)
    accounts = ArrayAccounts(CellIndex.of(rows, mechanism.counted))
    state, randomness, found = RowsState(), SeededRandomness(7), dict[int, Slot]()
    for slot in range(1, SLOTS + 1):
        drawn, state = mechanism.release(state, accounts, randomness)
        charges = {line.part: line.pico_rho for line in drawn.charges}
        found[slot] = Slot(
            charges,
            json.loads(drawn.model_dump_json()),
            step=json.loads(json.dumps(state.last_step())),
        )
    return found


def promised(mechanism: BudgetByRows, section: PersonalBudgetSection) -> PromisedPlan:
    layout, stored = mechanism.layout, mechanism.stored_plan()
    lists = {each.name: each.values for each in layout.dimensions}
    lengths = tuple(map(len, lists.values()))
    privacy = PrivacySection(rho=1, mechanism="personal-budget", personal_budget=section)
    return PromisedPlan(
        Fraction(1), Fraction(1), mechanism.guarantee.adjacency is Adjacency.SUBSTITUTE, lists,
        Columns(lengths, layout.weights, layout.once, mechanism.counted.apart), 1.0, SLOTS,
        privacy, Fraction(0), stored.slot_pico_rho, stored.strategy, by_rows=True,
        looks=dict(stored.looks) or None,
        has_fine_cut=stored.has_fine_cut,
        decides_cut=stored.decides_cut,
    )  # fmt: skip


def audited(*given: Any, **options: Any) -> Claim:
    return choices(*campaign(*given, **options))


@pytest.mark.parametrize("regular", first(1, [0.3, 0.0, 1.0]))
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_what_is_computed_otherwise(layout: Layout, regular: float) -> None:
    """The audit and the mechanism agree, though they share nothing."""
    for adjacency in Adjacency:
        record, plan = campaign(layout, adjacency=adjacency, crowd=Crowd(800, regular))
        found = choices(record, plan)
        assert found.held, found.detail
        few = len(layout) == 1
        assert few or not found.detail.startswith("0 renewals"), "nothing was chosen"


@pytest.mark.parametrize("section", SECTIONS.values(), ids=SECTIONS)
@pytest.mark.parametrize("layout", first(1, [*LAYOUTS.values()]))
def test_parameters_that_the_audit_forgets(layout: Layout, section: PersonalBudgetSection) -> None:
    found = audited(layout, section)
    assert found.held, found.detail


def test_a_renewal_under_a_public_allowance() -> None:
    """Early versions renewed where rounding had moved it by a percent, and only there."""
    for name, may_renew in (("fixed", False), ("fixed and large", True)):
        record, plan = campaign(CELLS, SECTIONS[name])
        change(record, 3, "is_renewal", True)
        assert choices(record, plan).held == may_renew


@pytest.mark.parametrize("start", [1.7, 5.1, 30.0])
def test_a_start_that_the_audit_forgets(start: float) -> None:
    found = audited(CELLS, start=start)
    assert found.held, found.detail


# ---- choices that do not follow ------------------------------------------------------------------


@pytest.mark.parametrize(
    "mistake",
    [allowance_of_exact_totals, sizes_of_exact_totals, renewal_when_much_was_cut],
)
def test_choices_by_what_was_not_released(
    mistake: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few people who do much: what was released is not what there was."""
    few = Crowd(40, 0.3, times=20)
    assert audited(CELLS, crowd=few).held
    mistake(monkeypatch)
    assert not audited(CELLS, crowd=few).held


def renewals(record: Record) -> list[int]:
    return [slot for slot, each in record.slots.items() if each.release["is_renewal"]]


def change(record: Record, slot: int, name: str, value: Any) -> None:
    record.slots[slot].release[name] = value
    step = {"is_renewal": "renewal", "allowance": None}.get(name, name)
    if step is not None:
        record.slots[slot].step[step] = value


def other_sizes(record: Record) -> None:
    for slot in range(renewals(record)[-1], SLOTS + 1):
        one, two, *rest = record.slots[slot].release["sizes"]
        change(record, slot, "sizes", [two, one, *rest])


def sizes_of_another_slot(record: Record) -> None:
    sizes = record.slots[1].release["sizes"]
    change(record, 3, "sizes", [size + 1 for size in sizes])


def other_multiplier(record: Record) -> None:
    """With the allowance that it means."""
    alike, *cuts = record.slots[1].release["multipliers"]
    allowance = record.slots[1].release["allowance"]
    change(record, 1, "multipliers", [alike + 5, *cuts])
    change(record, 1, "allowance", allowance * alike / (alike + 5))


def other_multiplier_of_what_was_cut(record: Record) -> None:
    slot = renewals(record)[0]
    alike, first_cut, *rest = record.slots[slot].release["multipliers"]
    change(record, slot, "multipliers", [alike, first_cut + 3, *rest])


def renewal_without_a_look(record: Record) -> None:
    change(record, 3, "is_renewal", True)


def renewal_of_nothing_new(record: Record) -> None:
    """At a look, with the allowance and the sizes of before."""
    change(record, 12, "is_renewal", True)
    for name in ("sizes", "multipliers", "allowance"):
        change(record, 12, name, record.slots[11].release[name])


def look_that_is_not_due(record: Record) -> None:
    change(record, 3, "histogram", record.slots[2].release["histogram"])


def look_that_is_left_out(record: Record) -> None:
    change(record, 4, "histogram", [])


@cache
def usual_campaign() -> tuple[Record, PromisedPlan]:
    return campaign(CELLS)


@pytest.mark.parametrize(
    "forge",
    [
        other_sizes, sizes_of_another_slot, other_multiplier, other_multiplier_of_what_was_cut,
        renewal_without_a_look, renewal_of_nothing_new, look_that_is_not_due,
        look_that_is_left_out,
    ],
)  # fmt: skip
def test_a_choice_that_does_not_follow_is_found(forge: Callable[[Record], None]) -> None:
    record, plan = deepcopy(usual_campaign())
    assert choices(record, plan).held
    forge(record)
    assert not choices(record, plan).held
