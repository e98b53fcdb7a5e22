"""Thousands of random operations: the charges of a scope never pass its limit."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from adsbpc.errors import LedgerError
from adsbpc.ledger import Ledger
from adsbpc.model import PICO_RHO
from tests.effort import examples
from tests.ledger.entries import STEP, opening_of, release_of

OPERATIONS = examples(400, 10_000)
SCOPES, CAMPAIGNS = ("acme", "umbrella"), ("spring", "summer", "autumn")

names = st.tuples(st.sampled_from(SCOPES), st.sampled_from(CAMPAIGNS))
amounts = st.lists(st.integers(0, 60), min_size=1, max_size=3)


class LedgerMachine(RuleBasedStateMachine):
    """Two scopes, three campaigns in each, small budgets; a dict is the model."""

    operations = 0

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.ledger = Ledger("ledger.sqlite", self.path)
        self.limits: dict[str, int] = {}
        self.reserved: dict[tuple[str, str], int] = {}
        self.charged: dict[tuple[str, str], list[int]] = {}
        self.closed: dict[tuple[str, str], int] = {}

    def teardown(self) -> None:
        self.folder.cleanup()

    def count(self) -> None:
        type(self).operations += 1

    @rule(
        name=names,
        rho=st.integers(1, 150),
        limit=st.none() | st.integers(1, 300),
        parts=amounts,
        ahead=st.sampled_from([0, 0, 0, 0, -1, 1]),
    )
    def commit(
        self, name: tuple[str, str], rho: int, limit: int | None, parts: list[int], ahead: int
    ) -> None:
        """The next slot, one that is done, or one too far; the first opens the campaign."""
        self.count()
        scope, campaign = name
        done = self.charged.get(name, [])
        slot = max(1, len(done) + 1 + ahead)
        opening = None
        if not done:
            wanted = None if limit is None else Fraction(limit, PICO_RHO)
            opening = opening_of(Fraction(rho, PICO_RHO), scope, campaign, wanted)
        known = self.limits.get(scope)
        taken = sum(r for (s, _), r in self.reserved.items() if s == scope)
        holds = known if known is not None else (limit or rho)
        mine = self.reserved.get(name, rho)
        fits = sum(done) + sum(parts) <= mine and name not in self.closed
        if not done:
            fits = fits and taken + rho <= holds and (known is None or limit in (None, known))
        release = release_of(slot, *parts, scope=scope, campaign=campaign)
        try:
            _, ours = self.ledger.commit(release, STEP, opening)
        except LedgerError:
            assert slot > len(done) + 1 or not fits
        else:
            assert ours == (slot > len(done))
            if ours:
                assert fits
                self.limits.setdefault(scope, holds)
                self.reserved.setdefault(name, rho)
                self.charged.setdefault(name, []).append(sum(parts))

    @rule(name=names)
    def close(self, name: tuple[str, str]) -> None:
        """Returns what was reserved and not charged, once; what was charged never comes back."""
        self.count()
        if name not in self.reserved:
            with pytest.raises(LedgerError, match="has not started"):
                self.ledger.close(*name)
            return
        returned = self.ledger.close(*name)
        charged = sum(self.charged[name])
        if name not in self.closed:
            assert returned == self.reserved[name] - charged
            self.closed[name] = returned
            self.reserved[name] = charged
        assert returned == self.closed[name]

    @rule()
    def open_again(self) -> None:
        self.count()
        self.ledger = Ledger("ledger.sqlite", self.path)

    @rule(scope=st.sampled_from(SCOPES))
    def verify(self, scope: str) -> None:
        self.count()
        if self.ledger.exists():
            assert self.ledger.verify(scope).problem is None

    @invariant()
    def never_overspent(self) -> None:
        if not self.reserved:
            return
        with closing(sqlite3.connect(self.path / "ledger.sqlite")) as connection:
            rows = connection.execute(
                "SELECT scope, kind, sum(pico_rho) FROM adsbpc_entries GROUP BY scope, kind"
            ).fetchall()
        sums = {(scope, kind): total for scope, kind, total in rows}
        for scope, limit in self.limits.items():
            spent = sum(sum(c) for (s, _), c in self.charged.items() if s == scope)
            assert sums[(scope, "scope")] == limit
            assert sums.get((scope, "charge"), 0) == spent <= limit
            reserved = sum(r for (s, _), r in self.reserved.items() if s == scope)
            assert self.ledger.reserved(scope) == reserved <= limit
            assert spent <= reserved


def test_thousands_of_random_operations() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    steps = 50
    run_state_machine_as_test(
        LedgerMachine,
        settings=settings(
            max_examples=OPERATIONS // steps + examples(12, 60), stateful_step_count=steps
        ),
    )
    assert LedgerMachine.operations >= OPERATIONS
