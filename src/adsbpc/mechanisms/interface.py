"""What a mechanism is: planned before any data is seen, then run slot by slot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from adsbpc.contributions.interface import Accounts, Contributions
from adsbpc.errors import PrivacyError
from adsbpc.model.cut import Added, squared_error
from adsbpc.model.guarantee import PICO_RHO, Charge, Guarantee
from adsbpc.model.layout import Layout
from adsbpc.model.plan import StoredPlan
from adsbpc.model.release import Answers, ChargeLine, Drawn, Measured
from adsbpc.model.release_spec import MechanismName
from adsbpc.model.running_noise import RunningNoise, Stretch
from adsbpc.privacy import Randomness
from adsbpc.privacy.decays import DecayingStrategy
from adsbpc.workloads import Margins, Objective, SeparateSums, VarianceTargets, Workload
from adsbpc.workloads.queries import Reals


@dataclass(frozen=True)
class Question:
    """What a mechanism is planned for. The first of the workloads shapes the noise; `unit_value` is
    what a grid unit is worth in the metric. Whether contributions `are_whole` conversions is told
    for estimates of what was cut, and whether people `come_back` to the same cell for the choice of
    a strategy."""

    guarantee: Guarantee
    layout: Layout
    workloads: tuple[Workload, ...]
    objective: Objective
    unit_value: float
    are_whole: bool = True
    come_back: bool = True

    @property
    def slots(self) -> int:
        return self.workloads[0].slot_count


@dataclass(frozen=True)
class Limit:
    """How a mechanism limits what one user counts for: `found` says how, `fixed` how much if that
    is public, `usual` what to expect otherwise."""

    found: str
    fixed: float | None
    usual: float


class Rows(Protocol):
    """The people of one slot. A mechanism opens them in one way, once."""

    def contributions(self) -> AbstractContextManager[Contributions]:
        """For bounds."""

    def accounts(self, layout: Layout) -> AbstractContextManager[Accounts]:
        """In cells of the mechanism's layout, or of the same taken apart."""

    def long_accounts(
        self, layout: Layout, strategy: DecayingStrategy
    ) -> AbstractContextManager[Accounts]:
        """The same with books of a long campaign: running sums in place of earlier slots."""


class State(Protocol):
    """What the slots so far leave to the next one."""

    @property
    def next_slot(self) -> int: ...

    def last_step(self) -> dict[str, Any]:
        """SECRET, for JSON: what the last slot added. A long campaign is kept as its steps, not as
        a row of whole states."""

    @property
    def last_secret(self) -> list[Any]:
        """SECRET, for JSON: what releases do not tell of the state, and the plan that it is of."""


class Mechanism(Protocol):
    """A planned run. `fingerprint` changes with everything that the promise or the noise depends
    on; `adopts_from_rows` says whether people are looked at again to adopt a release."""

    @property
    def name(self) -> MechanismName: ...

    @property
    def guarantee(self) -> Guarantee: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def slots(self) -> int: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def adopts_from_rows(self) -> bool: ...

    def stored_plan(self) -> StoredPlan:
        """What a running campaign has to be planned with again."""

    def limit(self) -> Limit: ...

    @property
    def shape(self) -> str:
        """In words, how noise is shaped over the slots."""

    def condition(self, limit: float) -> str:
        """In words, when errors are those of a limit."""

    def expected_errors(self, limit: float, depth: int) -> list[tuple[int, str, float]]:
        """(slot, query, standard error) of the sums that keep the first `depth` dimensions, under a
        constant limit, in the metric."""

    def running_noise(
        self, released: Sequence[Measured], boundaries: Sequence[int]
    ) -> RunningNoise:
        """How far totals after so many of the slots that were released are off together."""

    def rho_for(self, targets: VarianceTargets, limit: float) -> float:
        """The rho that measurement needs to meet the targets under a constant limit."""

    def resume(self, steps: Sequence[Mapping[str, Any]]) -> State:
        """The state after all of these slots, in order."""

    def open_rows(self, rows: Rows) -> AbstractContextManager[Any]:
        """The data that `release` asks for."""

    def release(self, state: Any, data: Any, randomness: Randomness) -> tuple[Drawn, State]:
        """Release the next slot. The old state is left as it is."""

    def adopt(self, state: Any, rows: Rows, released: Measured) -> Sequence[State]:
        """The states that a released slot may have left, of which one is true. Draws nothing."""


def check_next(mechanism: Mechanism, slot: int, saved_plan: str, layout: Layout | None) -> None:
    """Refuse a slot that is not there, another layout, and a state of another plan."""
    if slot > mechanism.slots:
        raise PrivacyError(f"all {mechanism.slots} slots are released: there is no slot {slot}")
    if layout != mechanism.layout:
        raise PrivacyError("contributions are not of the planned layout")
    if saved_plan not in ("", mechanism.fingerprint):
        raise PrivacyError(
            f"the saved state belongs to another plan than this one (slot {slot}): go on with "
            "the plan that it was made with"
        )


def check_released_by(mechanism: Mechanism, released: Measured) -> None:
    if released.mechanism != mechanism.name:
        raise PrivacyError(
            f"slot {released.slot}: was released by {released.mechanism}, not {mechanism.name}"
        )


def layout_parts(layout: Layout) -> dict[str, Any]:
    """What of a fingerprint is about the layout, in the words of when there were publishers only
    where nothing else is in it."""
    if [each.name for each in layout.dimensions] == ["publisher"] and layout.weights == (0, 1):
        return {"publishers": layout.dimensions[0].values}
    return {
        "dimensions": [[each.name, each.values] for each in layout.dimensions],
        "weights": layout.weights,
        **({"once": True} if layout.once else {}),
        **({"apart": True} if layout.apart else {}),
    }


# In how many sums of a view somebody is counted who is met by many publishers, say.
_MET_IN_A_VIEW = 4


def usual_sums(layout: Layout) -> int:
    """In how many sums somebody is who is met often, where people are counted once: everything, and
    some of each view. How often such a person converts says nothing about that."""
    return min(1 + _MET_IN_A_VIEW * len(layout.dimensions), len(layout))


def margins_of(layout: Layout) -> Margins | SeparateSums:
    if layout.once:
        return SeparateSums(layout.sizes)
    return Margins(tuple(len(each.values) for each in layout.dimensions), layout.weights)


def alike_in_views(margins: Margins | SeparateSums, layout: Layout) -> Stretch:
    """All rows, where sums of a view are measured alike."""
    times = tuple((margins.view_variance(depth),) for depth in range(len(layout.dimensions) + 1))
    return Stretch(0, times, times[-1][0] * len(layout))


def answered(
    layout: Layout,
    workload: Workload,
    cells: Reals,
    errors: Callable[[int], Reals],
    cut: Callable[[int], tuple[float, float]] = lambda _: (0.0, 0.0),
) -> tuple[Answers, ...]:
    """Answers to every query that is due at the last slot of `cells`, estimates by slot and cell,
    for every number of first dimensions that may be kept. `errors` gives the standard errors of all
    queries by that number, `cut` what was cut, and its error, by the query's place."""
    due = np.flatnonzero(workload.slots == len(cells))
    if not due.size:
        return ()
    of_cells, margins = workload.answers(cells), margins_of(layout)
    names = tuple(each.name for each in layout.dimensions)
    return tuple(
        Answers(
            names[:depth],
            workload.names[row],
            tuple(map(float, margins.summed(of_cells[row], depth))),
            float(errors(depth)[row]),
            workload.span(row),
            *cut(row),
        )
        for row in map(int, due)
        for depth in range(len(names) + 1)
    )


def answers_with(
    layout: Layout,
    query: str,
    span: tuple[int, int] | None,
    cells: Reals,
    spread: Reals,
    added: Added,
    noise: Callable[[int], Reals],
) -> Iterator[Answers]:
    """One query's answers for all views: estimates by cell, and what is added to them because it
    was cut, shared out by `spread`. `noise` gives the variances of sums that keep so many
    dimensions."""
    margins, names = margins_of(layout), tuple(each.name for each in layout.dimensions)
    whole = cells + added.total * spread
    for depth in range(len(names) + 1):
        parts = margins.summed(spread, depth)
        both = zip(noise(depth).tolist(), parts.tolist(), strict=True)
        errors = np.sqrt([squared_error(own, part, added) for own, part in both])
        alike = bool((errors == errors[0]).all())
        yield Answers(
            names[:depth],
            query,
            tuple(map(float, margins.summed(whole, depth))),
            float(errors[0]) if alike else float(np.sqrt((errors**2).mean())),
            span,
            added.missing,
            standard_errors=() if alike else tuple(map(float, errors)),
            added=added.total,
        )


def spent_with(
    mechanism: Mechanism, slot: int, before: int, charges: Sequence[Charge | ChargeLine]
) -> int:
    """What is spent after a slot, in pico-rho; refused if that passes the promise."""
    spent = before + sum(charge.pico_rho for charge in charges)
    if Fraction(spent, PICO_RHO) > mechanism.guarantee.rho:
        raise PrivacyError(
            f"slot {slot} would bring what is spent to {spent / PICO_RHO:.12g}, but rho = "
            f"{float(mechanism.guarantee.rho):g} is promised"
        )
    return spent
