"""Running sums in place of all earlier slots: every user of tiny campaigns, with no tolerance; and
what happens if a rule is broken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adsbpc.errors import PrivacyError
from adsbpc.model import Layout
from adsbpc.model.layout import Dimension
from adsbpc.privacy import LIMIT, Account, Strategy, Terms, admit, cost
from adsbpc.privacy.decays import BITS, Crossing, DecayingStrategy, RunningSums
from adsbpc.privacy.long_account import LongAccount

SLOTS = 4
LAYOUT = Layout.of_publishers(["P-1", "other"])
CUT = len(LAYOUT)
LARGE = 2**34 // 1000
# Everything between slots, and a visit after a pause.
CELLS = ((1, 0), (1, 1), (2, 0), (3, 1), (4, 0), (4, 1))
USERS = [
    dict(zip(CELLS, chosen, strict=True))
    for chosen in product((0, LARGE, 3 * LARGE), repeat=len(CELLS))
]


def parts(*numbers: float) -> tuple[int, ...]:
    return tuple(int(number * 2**BITS) for number in numbers)


def decaying(slots: int = SLOTS, first: int = 2500) -> DecayingStrategy:
    return DecayingStrategy(slots, first, parts(0.3 * first, 0.2 * first), parts(0.37, 0.93))


def dense(strategy: DecayingStrategy) -> Strategy:
    return Strategy(tuple(strategy.rows))


def terms_of(strategy: DecayingStrategy, slot: int, costs: Crossing | None = None) -> Terms:
    limit, multiplier = LIMIT * slot // strategy.slots, 400 - 50 * slot
    kept = limit * 19 // 20
    costs = costs or strategy.crossing(slot)
    return Terms(costs, multiplier, multiplier // 4, kept, limit - kept)


def run(
    user: dict[tuple[int, int], int],
    terms: Iterable[Terms],
    account: Account,
    layout: Layout = LAYOUT,
) -> dict[tuple[int, int], int]:
    """What the user moves, by slot and cell."""
    moved: dict[tuple[int, int], int] = {}
    for each in terms:
        asked = {p: weight for (s, p), weight in user.items() if s == each.slot and weight}
        for cell, kept in admit(account, asked, layout, each).items():
            times = each.multiplier if cell < len(layout) else each.cut_multiplier
            if kept:
                moved[each.slot, cell] = times * kept
    return moved


def planned(strategy: DecayingStrategy) -> list[Terms]:
    return [terms_of(strategy, slot) for slot in range(1, strategy.slots + 1)]


def test_nobody_costs_more_than_is_charged_nor_is_charged_more_than_the_limit() -> None:
    """All 729 users, with the cost computed from the rows of B, not from running sums."""
    strategy, terms, worst = decaying(), planned(decaying()), 0
    rows = dense(strategy)
    for user in USERS:
        account = LongAccount()
        exact = cost(rows, LAYOUT, run(user, terms, account))
        assert exact <= sum(account.spent) <= LIMIT
        assert sum(account.spent) <= exact * Fraction(101, 100) + 2**60
        worst = max(worst, exact)
    assert worst > LIMIT * 9 // 10, "nobody came near the limit: this tests nothing"


def test_what_was_released_up_to_a_slot_costs_what_was_charged_for_it() -> None:
    strategy, terms = decaying(), planned(decaying())
    rows = dense(strategy)
    for user in USERS[::5]:
        moved = run(user, terms, LongAccount())
        for each in terms:
            so_far = {cell: move for cell, move in moved.items() if cell[0] <= each.slot}
            assert cost(rows, LAYOUT, so_far) <= each.limit


def test_views_are_charged_as_well() -> None:
    """Two views: cells by two lists, and everything, with a weight of 2."""
    layout = Layout(
        (Dimension("publisher", ("P-1", "other")), Dimension("device", ("tv", "other"))), (2, 0, 1)
    )
    strategy, terms = decaying(), planned(decaying())
    rng = np.random.default_rng(1)
    for _ in range(300):
        user = {
            (s, c): int(rng.choice([0, LARGE // 2, 2 * LARGE]))
            for s in range(1, SLOTS + 1)
            for c in range(4)
        }
        account = LongAccount()
        exact = cost(dense(strategy), layout, run(user, terms, account, layout))
        assert exact <= sum(account.spent) <= LIMIT


# ---- rules that must not be broken ---------------------------------------------------------------


def underpaid(terms: Iterable[Terms], strategy: DecayingStrategy) -> bool:
    """Whether somebody costs more than is charged."""
    found, rows = list(terms), dense(strategy)
    for user in USERS:
        account = LongAccount()
        if cost(rows, LAYOUT, run(user, found, account)) > sum(account.spent):
            return True
    return False


def with_crossing(strategy: DecayingStrategy, **change: object) -> list[Terms]:
    return [
        terms_of(strategy, slot, replace(strategy.crossing(slot), **change))  # type: ignore[arg-type]
        for slot in range(1, strategy.slots + 1)
    ]


def test_a_decay_that_is_applied_once_too_often_fails() -> None:
    strategy = decaying()
    once_more = tuple(powers[1:] for powers in strategy.powers)
    assert not underpaid(planned(strategy), strategy)
    assert underpaid(with_crossing(strategy, powers=once_more), strategy)


def test_counting_only_the_rows_so_far_fails() -> None:
    """The crossing of a campaign that ends with the slot itself."""
    strategy = decaying()
    shorter = [terms_of(strategy, s, decaying(slots=s).crossing(s)) for s in range(1, SLOTS + 1)]
    assert underpaid(shorter, strategy)


def test_factors_that_are_rounded_down_fail() -> None:
    """Entries that the powers give exactly leave nothing to hide a factor that is too small."""
    half, first = 2 ** (BITS - 1), 2**11
    strategy = DecayingStrategy(SLOTS, first, (2**BITS * first // 2,), (half,))
    less = [
        terms_of(strategy, s, replace(c, factors=(c.factors[0] - 1,)))
        for s in range(1, SLOTS + 1)
        for c in (strategy.crossing(s),)
    ]
    assert not underpaid(planned(strategy), strategy)
    assert underpaid(less, strategy)


def test_running_sums_that_are_rounded_down_fail() -> None:
    class Down(Crossing):
        def decayed(self, sums: Iterable[int], since: int) -> list[int]:
            powers = (power[self.slot - since] for power in self.powers)
            return [power * a >> BITS for power, a in zip(powers, sums, strict=True)]

    half, first = 2 ** (BITS - 1), 2**11
    strategy = DecayingStrategy(SLOTS, first, (2**BITS * first // 2,), (half,))
    down = [
        terms_of(strategy, slot, Down(c.slot, c.own, c.factors, c.powers))
        for slot in range(1, SLOTS + 1)
        for c in (strategy.crossing(slot),)
    ]
    assert underpaid([replace(each, multiplier=each.multiplier | 1) for each in down], strategy)


def test_terms_of_one_kind_are_refused_by_accounts_of_the_other() -> None:
    strategy = decaying()
    with pytest.raises(PrivacyError, match="long campaign"):
        admit(Account(), {0: 1}, LAYOUT, terms_of(strategy, 1))
    costs = tuple(map(int, dense(strategy).gram[0, :1]))
    with pytest.raises(PrivacyError, match="long campaign"):
        admit(LongAccount(), {0: 1}, LAYOUT, replace(terms_of(strategy, 1), costs=costs))


# ---- the arithmetic ------------------------------------------------------------------------------

strategies = st.builds(
    lambda slots, first, powers: DecayingStrategy(
        slots, first, tuple(w * first for w, _ in powers), tuple(rate for _, rate in powers)
    ),
    st.integers(1, 40),
    st.integers(1, 2000),
    st.lists(
        st.tuples(st.integers(0, 2 ** (BITS - 2)), st.integers(2 ** (BITS - 10), 2**BITS - 1)),
        min_size=1,
        max_size=3,
    ),
)


@given(strategies, st.data())
@settings(max_examples=150, deadline=None)
def test_running_sums_are_never_below_what_all_earlier_slots_say(
    strategy: DecayingStrategy, data: st.DataObject
) -> None:
    """Against G from the entries of B, entry by entry, with visits on any slots."""
    moves = data.draw(
        st.dictionaries(st.integers(1, strategy.slots), st.integers(1, 2**40), max_size=12)
    )
    entries, n, sums = strategy.entries, strategy.slots, RunningSums({})
    for slot in range(1, n + 1):
        crossing = strategy.crossing(slot)
        exact = sum(
            move * sum(entries[j] * entries[j + slot - s] for j in range(n - slot + 1))
            for s, move in moves.items()
            if s < slot
        )
        assert sums.before(crossing).get(0, 0) >= exact
        assert crossing.own == sum(entry**2 for entry in entries[: n - slot + 1])
        if slot in moves:
            sums.add(crossing, {0: moves[slot]})


@given(strategies)
@settings(max_examples=100, deadline=None)
def test_bounds_hold_in_exact_fractions(strategy: DecayingStrategy) -> None:
    one = 2**BITS
    weights = [Fraction(weight, one) for weight in strategy.weights]
    rates = [Fraction(rate, one) for rate in strategy.rates]
    for j in range(1, min(strategy.slots, 12)):
        real = sum(w * rate ** (j - 1) for w, rate in zip(weights, rates, strict=True))
        assert real - 1 - Fraction(1, 2**20) < strategy.entries[j] <= real
        for rate, powers in zip(rates, strategy.powers, strict=True):
            assert rate**j <= Fraction(powers[j], one) < rate**j + Fraction(2, one)
    for slot in range(max(1, strategy.slots - 12), strategy.slots + 1):
        factors = strategy.crossing(slot).factors
        for weight, rate, factor in zip(weights, rates, factors, strict=True):
            exact = sum(
                strategy.entries[j] * weight * rate ** (j - 1)
                for j in range(strategy.slots - slot + 1)
            )
            assert exact <= factor < exact + 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"slots": 10_001}, "10000"),
        ({"first": 0}, "below 0"),
        ({"weights": (-1, 0)}, "below 0"),
        ({"weights": (1,)}, "a weight each"),
        ({"rates": (2**BITS, 2**BITS - 1)}, "below 1"),
        ({"rates": (1, 2)}, "2\\^-10"),
        ({"first": 2.0}, "whole numbers"),
        ({"first": 2**20}, "too wide"),
    ],
)
def test_strategies_that_cannot_be_are_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(PrivacyError, match=words):
        replace(decaying(), **change)  # type: ignore[arg-type]
