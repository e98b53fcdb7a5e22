"""The audit's own computation of what is added because it was cut: as the mechanism has it, by what
the plan says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.audit.added_cut import trusted
from adsbpc.audit.promised_plan import plans_of
from adsbpc.audit.record import read_record
from adsbpc.ledger import Ledger
from adsbpc.model.cut import DECIDED, GRADUAL, added_back
from tests.audit.campaigns import Released


@pytest.mark.parametrize("is_decided", [False, True])
@given(st.floats(-1_000, 100_000), st.floats(1, 1e6), st.floats(1e-3, 1), st.floats(0, 1e6))
def test_two_ways_to_one_sum(
    is_decided: bool, count: float, variance: float, squared: float, of_cells: float
) -> None:
    trust = DECIDED if is_decided else GRADUAL
    added = added_back([(count, variance)], squared, of_cells, trust=trust).total
    found = trusted(count, variance, squared, of_cells, is_decided)
    assert found == pytest.approx(added, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", ["personal", "adsbpc"])
def test_a_plan_that_does_not_say_how_is_an_early_one(
    kind: str, released: Released, tmp_path: Path
) -> None:
    released.copy(kind, tmp_path)
    record = read_record(Ledger("ledger.sqlite", tmp_path), "acme", "spring")
    (plan,) = plans_of(record).values()
    assert plan.decides_cut == (kind == "personal")
    opening = {key: value for key, value in record.opening.items() if key != "decides_cut"}
    (early,) = plans_of(replace(record, opening=opening)).values()
    assert early == replace(plan, decides_cut=False)
