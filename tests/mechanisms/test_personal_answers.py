"""Answers of personal budgets are what they say: unbiased, with their errors, and what was cut."""

from __future__ import annotations

from dataclasses import asdict, replace
from math import hypot, sqrt
from typing import Any

import numpy as np
import pytest

from adsbpc.mechanisms import BudgetByRows, plan_measures
from adsbpc.mechanisms.by_rows.cut import least_slots
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model.cut import DECIDED, GRADUAL
from adsbpc.model.plan import StoredPlan
from adsbpc.privacy import SeededRandomness
from tests.effort import first
from tests.estimates import by_cell
from tests.mechanisms.campaigns import LAYOUT, spec_of
from tests.mechanisms.personal_campaigns import SLOTS, index_of, people, planned, run

WORKLOADS: list[dict[str, Any]] = [
    {},
    {"queries": "slot"},
    {"queries": "sliding", "window": 3, "objective": "max-variance"},
    {"queries": "ranges", "ranges": [[2, 5], [1, 8]]},
    {"objective": "variance-targets", "targets": [float(k) for k in range(1, SLOTS + 1)]},
]


@pytest.mark.parametrize("workload", first(2, WORKLOADS), ids=lambda w: w.get("queries", "prefix"))
def test_answers_are_unbiased_with_the_errors_they_state(workload: dict[str, Any]) -> None:
    """Over 150 runs of a fixed allowance: what was let in, without what is added because it was
    cut, has z-scores with mean 0 and deviation 1."""
    mechanism = planned(workload=workload, personal_budget={"allowance": 3.0})
    index = index_of(people(count=300))
    scores: dict[tuple[str, ...], list[float]] = {}
    for seed in range(150):
        releases, state = run(mechanism, index, SeededRandomness(seed))
        kept = np.array(state.kept, dtype=np.float64)[:, :-1] / UNIT
        asked = mechanism.workloads[0]
        truth = dict(zip(asked.names, asked.answers(kept), strict=True))
        for slot, release in enumerate(releases, start=1):
            weights = asked.answers(np.eye(slot))[asked.slots == slot]
            noise = np.sqrt(mechanism.estimates(state.rows[:slot]).variances(weights, 1))
            by_publisher = [each for each in release.answers if each.view]
            for each, errors in zip(by_publisher, noise, strict=True):
                own = np.array(each.values) - each.added * np.array(release.spread)
                assert (np.array(each.errors) >= errors).all()
                found = (own - truth[each.query]) / errors
                for keys, score in zip(LAYOUT.names(1), found, strict=True):
                    scores.setdefault((each.query, *keys), []).append(score)
    assert len(scores) == len(mechanism.workloads[0].names) * len(LAYOUT)
    for found in scores.values():
        assert abs(np.mean(found)) < 5 / sqrt(150)
        assert abs(np.std(found) - 1) < 0.3


def test_slot_and_running_totals_are_there_whatever_the_workload() -> None:
    mechanism = planned(workload={"queries": "ranges", "ranges": [[2, 5]]})
    releases, _ = run(mechanism, index_of(people()), SeededRandomness(1))
    for slot, release in enumerate(releases, start=1):
        views = [(), ("publisher",)]
        assert [(each.view, each.span) for each in release.slot_totals] == [
            (view, (slot, slot)) for view in views
        ]
        assert [(each.view, each.span) for each in release.running_totals] == [
            (view, (1, slot)) for view in views
        ]
        assert [each.view for each in release.answers] == (views if slot == 5 else [])


def test_noise_cancels_in_sums() -> None:
    """The last running total is far better than eight independent slots would be."""
    mechanism = planned(31, personal_budget={"allowance": 5.0})
    releases, _ = run(mechanism, index_of(people(31), 31), SeededRandomness(1))
    slots = [release.slot_totals[0].standard_error for release in releases]
    assert releases[-1].running_totals[0].standard_error < 0.5 * hypot(*slots)


def test_first_slots_leave_room_for_people_who_come_often_at_once() -> None:
    """Of slots up to a ninth of the campaign as much may be missing as of all of these."""
    assert [least_slots(slots) for slots in (1, 9, 31, 365)] == [1, 1, 4, 41]
    mechanism = planned(31)
    releases, state = run(mechanism, index_of(people(31), 31), SeededRandomness(7))
    estimates = replace(mechanism.estimates(state.rows), least_slots=1)
    noise, early = (
        each.running_noise((0, 1, 4, 31)) for each in (estimates, replace(estimates, least_slots=4))
    )
    for place, is_more in ((1, True), (2, False), (3, False)):
        before, after = (each.added((0, place)) for each in (noise, early))
        assert (after.missing > before.missing) == is_more
        assert after.total == before.total
    assert mechanism.estimates(state.rows).least_slots == 4
    newest = releases[-1].running_totals[0]
    assert early.added((0, 3)).missing == pytest.approx(newest.cut)


def test_running_campaigns_add_what_was_cut_as_they_began() -> None:
    """By the plan that is stored: early ones do not say how."""
    mechanism = planned(31)
    _, state = run(mechanism, index_of(people(31), 31), SeededRandomness(7))
    stored = asdict(mechanism.stored_plan())
    assert stored.pop("decides_cut")
    early = plan_measures(
        spec_of(31, None, mechanism="personal-budget"), StoredPlan.from_object(stored)
    ).runs[0][1]
    assert isinstance(early, BudgetByRows)
    assert early.fingerprint == mechanism.fingerprint
    assert asdict(early.stored_plan()) == stored | {"decides_cut": False}
    for each, trust in ((mechanism, DECIDED), (early, GRADUAL)):
        estimates = each.estimates(state.rows)
        cut = estimates.running_noise((0, 31)).cut
        assert cut is not None
        assert estimates.trust == cut.trust == trust


@pytest.mark.slow
def test_what_was_cut_is_added_and_intervals_with_it_cover() -> None:
    """Over 60 runs in which every third person is cut by a part of a conversion: of the intervals
    around running totals, about one in twenty misses the truth; without what was cut, nearly all
    would."""
    mechanism = planned(personal_budget={"allowance": 1.5})
    rows = [
        (f"u{user}", 1 + (user + 3 * k) % SLOTS, user % 2)
        for user in range(6_000)
        for k in range(1 if user % 3 else 3)
    ]
    index = index_of(rows)
    truth = [sum(publisher == place for _, _, publisher in rows) for place in (0, 1)]
    with_cut = without = total = 0
    for seed in range(60):
        releases, _ = run(mechanism, index, SeededRandomness(seed))
        added = releases[-1].running_totals[-1].added
        totals = by_cell(releases[-1], releases[-1].running_totals)
        for each, true, part in zip(totals, truth, releases[-1].spread, strict=True):
            assert added > 0
            reach = 1.96 * each.standard_error
            with_cut += not each.value - reach <= true <= each.value + each.cut + reach
            without += not true <= each.value - part * added + reach
            total += 1
    assert with_cut / total < 0.12
    assert without / total > 0.9
