"""The parts of a plan that a running campaign goes on with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from adsbpc.model.guarantee import PICO_RHO


@dataclass(frozen=True)
class StoredPlan:
    """What another version of a solver might not find again. Personal budgets have a strategy, and
    an allowance to start with where an earlier campaign gave one; `by_rows` says that their past is
    measured again, which those of version 0.1 never did; `adds_cut` that AdsBPC's answers have what
    its bounds cut, which they did not have then either; `has_fine_cut` that what budgets cut is
    counted finely, where everything together has a column. `fit` has the parameters of an
    attribution model that the campaign file declared public. `decays` has the strategy of a long
    campaign: its first entry, the weights and the rates of its powers. `looks` has the slots at
    which people are counted by need, with the pico-rho of each: early versions stored none, and
    knew them by a rule. `decides_cut` says that counts of what budgets cut are added nearly whole
    or not at all, as `model.cut.DECIDED` has it, which they were not in early versions. A campaign
    with several measures has a plan for each of them, by name."""

    slot_pico_rho: tuple[int, ...]
    strategy: tuple[tuple[int, ...], ...] = ()
    start: float | None = None
    fit: str | None = None
    measures: dict[str, StoredPlan] = field(default_factory=dict)
    by_rows: bool = False
    adds_cut: bool = False
    decays: tuple[tuple[int, ...], ...] = ()
    looks: tuple[tuple[int, int], ...] = ()
    has_fine_cut: bool = False
    decides_cut: bool = False

    @property
    def slot_rho(self) -> tuple[Fraction, ...]:
        return tuple(Fraction(part, PICO_RHO) for part in self.slot_pico_rho)

    @classmethod
    def from_object(cls, content: Mapping[str, Any]) -> StoredPlan:
        """What `asdict` made of one; what an earlier version did not know is missing."""
        return cls(
            tuple(content.get("slot_pico_rho", ())),
            tuple(tuple(row) for row in content.get("strategy", ())),
            content.get("start"),
            content.get("fit"),
            {name: cls.from_object(each) for name, each in content.get("measures", {}).items()},
            content.get("by_rows", False),
            content.get("adds_cut", False),
            tuple(tuple(part) for part in content.get("decays", ())),
            tuple((slot, part) for slot, part in content.get("looks", ())),
            content.get("has_fine_cut", False),
            content.get("decides_cut", False),
        )
