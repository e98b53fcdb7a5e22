"""Personal budgets slot by slot: what is drawn and charged, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adsbpc.contributions import ArrayAccounts, ArrayContributions, CellIndex
from adsbpc.contributions.interface import Integers
from adsbpc.errors import PrivacyError, WorkloadError
from adsbpc.mechanisms import (
    BudgetByRows,
    Question,
    RowsState,
    plan_personal,
    split_of,
)
from adsbpc.mechanisms.by_rows import cut
from adsbpc.mechanisms.by_rows.measurement import ONE_CONVERSION
from adsbpc.mechanisms.by_rows.planning import plan_by_rows, starting_from
from adsbpc.mechanisms.planning import question_of
from adsbpc.model import PICO_RHO, Adjacency, Guarantee, Layout, Measured
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model.release_spec import PersonalBudgetSection
from adsbpc.privacy import LIMIT, Renewal, SeededRandomness, Terms, cost, gaussian_cost
from adsbpc.workloads import WeightedSquaredError, prefix_sums
from tests.mechanisms.campaigns import LAYOUT, spec_of
from tests.mechanisms.personal_campaigns import SLOTS, index_of, people, planned, run
from tests.mechanisms.recording import RecordingRandomness

# ---- what is charged and drawn -------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("section", [{}, {"allowance": 4.0}], ids=["online", "fixed"])
def test_charges_are_what_was_split_and_follow_the_pace(
    adjacency: Adjacency, section: dict[str, Any]
) -> None:
    spec = spec_of(SLOTS, adjacency=adjacency, mechanism="personal-budget", personal_budget=section)
    mechanism = planned(adjacency=adjacency, personal_budget=section)
    releases, state = run(mechanism, index_of(people()), SeededRandomness(1))
    charged: dict[str, int] = {}
    for slot, release in enumerate(releases, start=1):
        for charge in release.charges:
            charged[charge.part] = charged.get(charge.part, 0) + charge.pico_rho
        so_far = Fraction(charged["measurement"], PICO_RHO)
        limit = mechanism.measurement.terms(slot, (1, 1), ()).limit
        factor = 2 if adjacency is Adjacency.SUBSTITUTE else 1
        assert gaussian_cost(factor * limit, mechanism.measurement.scale) <= so_far
    assert set(charged) == set(split_of(spec))
    for part, rho in split_of(spec).items():
        assert rho * Fraction(999, 1000) < Fraction(charged[part], PICO_RHO) <= rho
    assert state.spent == sum(charged.values()) <= PICO_RHO


@pytest.mark.parametrize("allowance", [4.0, 295.0, 1_000.0])
def test_a_public_allowance_never_renews_the_past(allowance: float) -> None:
    """Though whole multipliers may stand for one that is larger by percents."""
    mechanism = planned(personal_budget={"allowance": allowance})
    rounded = mechanism.measurement.allowance_of(mechanism.measurement.multiplier_of(allowance))
    assert allowance < 100 or rounded > 1.01 * allowance
    releases, _ = run(mechanism, index_of(people()), SeededRandomness(1))
    assert not any(release.is_renewal for release in releases)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_every_look_at_users_is_noised_with_the_scale_that_is_charged(
    adjacency: Adjacency,
) -> None:
    slots = 40
    mechanism = planned(slots, adjacency=adjacency)
    assert len(mechanism.looks) < slots
    accounts = RecordingAccounts(index_of(people(slots, count=300), slots))
    state, randomness = RowsState(), RecordingRandomness()
    for slot in range(1, slots + 1):
        before, asked = len(randomness.draws), len(accounts.asked)
        release, state = mechanism.release(state, accounts, randomness)
        drawn = randomness.scales("gaussian")[before:]
        looked = slot in mechanism.looks
        renewed = ["renew"] if release.is_renewal else []
        assert accounts.asked[asked:] == [*(["needs"] if looked else []), *renewed, "admit"]
        assert drawn == [
            *([scale_of(mechanism, slot)] if looked else []),
            mechanism.measurement.scale,
        ]
        assert (release.histogram != ()) == looked
        assert len(release.values) == len(LAYOUT) + 1
    assert accounts.asked.count("needs") == len(mechanism.looks)


def scale_of(mechanism: BudgetByRows, slot: int) -> Any:
    squared = 2 if mechanism.guarantee.adjacency is Adjacency.SUBSTITUTE else 1
    return pytest.approx(sqrt(squared / (2 * float(mechanism.looks[slot]))), rel=1e-9)


class RecordingAccounts(ArrayAccounts):
    """Writes down every question, and under which terms users were admitted."""

    def __init__(self, index: CellIndex) -> None:
        super().__init__(index)
        self.asked: list[str] = []
        self.terms: list[Terms] = []
        self.renewals: list[Renewal] = []

    def needs(self, costs: Any, edges: Any, growth: Any = None) -> Integers:
        self.asked.append("needs")
        return super().needs(costs, edges, growth)

    def renew(self, renewal: Renewal) -> list[list[int]]:
        self.asked.append("renew")
        self.renewals.append(renewal)
        return super().renew(renewal)

    def admit(self, terms: Terms) -> list[int]:
        self.asked.append("admit")
        self.terms.append(terms)
        return super().admit(terms)


def test_users_are_admitted_under_the_terms_that_scale_the_noise() -> None:
    """All rows of G, the multipliers of allowance and sizes, and limits that only grow; the past
    with the rows that were released since the last renewal, and those that are to come."""
    mechanism = planned()
    accounts = RecordingAccounts(index_of(people()))
    state, randomness, begun = RowsState(), SeededRandomness(3), 1
    matrix = mechanism.strategy.matrix
    for slot in range(1, SLOTS + 1):
        release, state = mechanism.release(state, accounts, randomness)
        terms = accounts.terms[-1]
        assert terms.costs == tuple(mechanism.strategy.gram[slot - 1, :slot])
        assert release.allowance is not None
        assert release.allowance == mechanism.measurement.allowance_of(terms.multiplier)
        most = terms.multiplier * release.allowance * ONE_CONVERSION
        assert most**2 == pytest.approx(LIMIT * 0.98, rel=1e-12)
        assert terms.multipliers == tuple(
            max(1, release.multipliers[0] * size // 64) for size in release.sizes
        )
        assert (terms.multiplier, terms.cut_multiplier) == release.multipliers
        assert terms.kept_limit + terms.cut_limit == terms.limit
        if release.is_renewal:
            renewal = accounts.renewals[-1]
            for gram, rows in (
                (renewal.ended, matrix[begun - 1 : slot - 1, : slot - 1]),
                (renewal.coming, matrix[slot - 1 :, : slot - 1]),
            ):
                assert np.array_equal(np.array(gram), rows.T @ rows)
            begun = slot
    assert accounts.renewals
    limits = [terms.limit for terms in accounts.terms]
    assert limits == sorted(limits)
    assert limits[-1] in (LIMIT, LIMIT - 1)


@pytest.mark.parametrize("slots", [2, 4, 8, 9])
def test_sizes_change_with_a_look(slots: int) -> None:
    """Whatever the last slot is: allowances are chosen for the sizes of cells."""
    mechanism = planned(slots)
    index = index_of([(user, slot, 0) for user, slot, _ in people(slots)], slots)
    releases, _ = run(mechanism, index, SeededRandomness(1))
    sizes = [release.sizes for release in releases]
    changed = [slot for slot in range(2, slots + 1) if sizes[slot - 1] != sizes[slot - 2]]
    assert set(changed) <= set(mechanism.looks)


def test_no_user_of_a_real_run_costs_more_than_the_limit() -> None:
    """A run whose allowance is far too small, so that nearly everybody is cut."""
    mechanism = planned(personal_budget={"allowance": 0.7})
    index = index_of(people(count=60))
    accounts = ArrayAccounts(index)
    state, randomness = RowsState(), SeededRandomness(4)
    for _ in range(SLOTS):
        _, state = mechanism.release(state, accounts, randomness)
    everybody = [accounts.replayed(user).account for user in range(index.users)]
    assert sum(any(cell == len(index.layout) for _, cell in each.moved) for each in everybody) > 30
    assert not any(row.is_renewal for row in state.rows)
    for account in everybody:
        exact = cost(mechanism.strategy, mechanism.layout, account.moved)
        assert exact == sum(account.spent) <= LIMIT


def test_rows_are_what_the_strategy_says() -> None:
    """Without noise, B diag(m) X of every publisher and of what was cut, in whole numbers."""
    mechanism = planned(personal_budget={"allowance": 2.0})
    releases, state = run(mechanism, index_of(people()), RecordingRandomness())
    kept = np.array(state.kept, dtype=object)
    m, of_cut = state.rows[-1].multipliers
    assert m == mechanism.measurement.multiplier_of(2.0)
    multipliers = [m, m, of_cut]
    for slot, release in enumerate(releases, start=1):
        for column, value in enumerate(release.values):
            exact = sum(
                entry * multipliers[column] * kept[s][column]
                for s, entry in enumerate(mechanism.strategy.rows[slot - 1])
            )
            assert value == exact
            assert type(value) is int


# ---- edges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [1, 2, 3])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_smallest_campaigns_work(slots: int, adjacency: Adjacency) -> None:
    for rows in ([], [("a", 1, 0)], [("a", 1, 0)] * 3000):
        mechanism = planned(slots, adjacency=adjacency)
        releases, state = run(mechanism, index_of(rows, slots), SeededRandomness(1))
        assert len(releases) == slots
        for release in releases:
            for each in (*release.answers, *release.slot_totals, *release.running_totals):
                assert np.isfinite([*each.values, *each.errors, each.cut, each.added]).all()
        assert Fraction(state.spent, PICO_RHO) <= 1


def test_a_user_who_does_everything_is_cut_and_noticed() -> None:
    rows = people(count=500) + [("bot", slot, 0) for slot in range(1, SLOTS + 1)] * 5_000
    mechanism = planned()
    _, state = run(mechanism, index_of(rows), SeededRandomness(2))
    kept = np.array(state.kept, dtype=np.float64) / UNIT
    allowances = max(row.allowance for row in state.rows)
    assert kept[:, 0].sum() < 1_500 + 20 * allowances
    assert kept[:, -1].sum() > 0


def test_a_state_of_another_plan_and_other_publishers_are_refused() -> None:
    mechanism, index = planned(), index_of(people(count=50))
    _, state = mechanism.release(RowsState(), ArrayAccounts(index), SeededRandomness(1))
    other = planned(personal_budget={"strategy": "identity"})
    with pytest.raises(PrivacyError, match="another plan"):
        other.release(state, ArrayAccounts(index), SeededRandomness(1))
    fewer = ArrayContributions(["a"], [1], [0], [UNIT], SLOTS, Layout.of_publishers(("A",)))
    with pytest.raises(PrivacyError, match="planned layout"):
        mechanism.release(RowsState(), ArrayAccounts(CellIndex.of(fewer)), SeededRandomness(1))
    full = RowsState(rows=state.rows * SLOTS)
    with pytest.raises(PrivacyError, match="no slot 9"):
        mechanism.release(full, ArrayAccounts(index), SeededRandomness(1))


def test_a_plan_that_cannot_be_is_refused() -> None:
    long = spec_of(1001, mechanism="personal-budget")
    with pytest.raises(WorkloadError, match=r"1001 slots.*at most 1000"):
        plan_by_rows(question_of(long, long.measures[0]), PersonalBudgetSection())
    with pytest.raises(PrivacyError, match=r"need 0\.00012 or more.*larger rho"):
        planned(100, rho=1e-6, personal_budget={"histogram_share": 0.001})
    for section, rho, message in (
        (PersonalBudgetSection(), 40, "for histograms cannot be shared"),
        (PersonalBudgetSection(allowance=2), 10, "cannot be shared among 8 slots"),
    ):
        tiny = Guarantee(Fraction(rho, 10**12), Adjacency.ADD_REMOVE, "acme")
        asked = Question(tiny, LAYOUT, (prefix_sums(SLOTS),), WeightedSquaredError(), 1.0)
        with pytest.raises(PrivacyError, match=message):
            plan_personal(asked, section)


@pytest.mark.parametrize("strategy", ["optimised", "toeplitz", "square-root", "identity"])
def test_every_strategy_can_be_chosen(strategy: str) -> None:
    mechanism = planned(personal_budget={"strategy": strategy})
    releases, _ = run(mechanism, index_of(people(count=200)), SeededRandomness(1))
    assert releases[-1].running_totals[0].standard_error > 0


def test_substitution_needs_more_noise(tmp_path: Path) -> None:
    add, swap = (
        planned(adjacency=adjacency, personal_budget={"allowance": 3.0}) for adjacency in Adjacency
    )
    assert swap.measurement.scale == pytest.approx(sqrt(2) * add.measurement.scale)


def test_a_state_of_other_integers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that shares budgets otherwise would hold earlier slots to other terms."""
    mechanism, index = planned(), index_of(people(count=50))
    _, state = mechanism.release(RowsState(), ArrayAccounts(index), SeededRandomness(1))
    monkeypatch.setattr(cut, "_FIRST_SHARE", 0.1)
    with pytest.raises(PrivacyError, match="another plan"):
        planned().release(state, ArrayAccounts(index), SeededRandomness(1))


def test_somebody_who_is_cut_again_and_again_is_still_let_in() -> None:
    """Counting what was cut has a budget of its own: it does not use up that of what is kept."""
    rows = [("often", slot, 0) for slot in range(1, 32)] * 4
    mechanism = planned(31, personal_budget={"allowance": 10.0})
    _, state = run(mechanism, index_of(rows, 31), SeededRandomness(1))
    kept = np.array(state.kept, dtype=np.float64) / UNIT
    assert (kept[:, 0] > 0).all()
    assert kept[-1, 0] > 0.05
    assert kept[:, -1].sum() > 0


def test_a_release_holds_no_exact_total() -> None:
    mechanism = planned(personal_budget={"allowance": 3.0})
    releases, state = run(mechanism, index_of(people()), SeededRandomness(5))
    texts = [str(release) for release in releases]
    for row, text in zip(state.kept, texts, strict=True):
        for total in row:
            assert total < 1000 or str(total) not in text
            assert total < 1000 or f"{total / UNIT:.3f}" not in text


def test_a_quiet_slot_looks_like_any_other() -> None:
    """The same parts are charged, and every publisher has values, whatever happened."""
    mechanism = planned()
    busy, _ = run(mechanism, index_of(people()), SeededRandomness(1))
    quiet, _ = run(mechanism, index_of([]), SeededRandomness(1))
    for one, other in zip(busy, quiet, strict=True):
        assert one.charges == other.charges
        assert len(one.values) == len(other.values)
        assert len(one.histogram) == len(other.histogram)
        assert [each.query for each in one.answers] == [each.query for each in other.answers]


@pytest.mark.parametrize(
    ("slots", "workload"),
    [
        (31, {"queries": "slot", "weights": [100.0, *[1.0] * 30]}),
        (31, {"weights": [100.0, *[1.0] * 30]}),
        (120, {"queries": "ranges", "ranges": [[1, 2]]}),
    ],
    ids=["slot", "prefix", "range"],
)
def test_lopsided_questions_can_be_planned(slots: int, workload: dict[str, Any]) -> None:
    mechanism = planned(slots, workload)
    assert mechanism.limit().usual > 0


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_a_campaign_starts_where_an_earlier_one_ended(adjacency: Adjacency) -> None:
    """With the deviation that the earlier histograms have under its adjacency."""
    mechanism = planned(adjacency=adjacency)
    releases, _ = run(mechanism, index_of(people()), SeededRandomness(1))
    earlier = tuple(
        Measured(**dict(each), measure="conversions", metric="conversions") for each in releases
    )
    started = starting_from(mechanism, earlier)
    assert started.allowance is not None
    last = releases[-1].allowance
    assert last is not None
    assert last / 2 < started.allowance < 2 * last
    first, _ = started.release(RowsState(), ArrayAccounts(index_of(people())), SeededRandomness(2))
    assert first.allowance == pytest.approx(started.allowance, rel=0.01)
