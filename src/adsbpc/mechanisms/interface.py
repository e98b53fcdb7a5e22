"""What a mechanism gives out for one slot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from adsbpc.errors import PrivacyError
from adsbpc.model.guarantee import PICO_RHO, Charge, Guarantee
from adsbpc.model.release import ChargeLine, Estimate, Release

# The part of a release's charges that is for a fit of the attribution model, made beside the
# mechanism.
FIT_PART = "attribution fit"


class _Planned(Protocol):
    """What every planned mechanism has."""

    @property
    def guarantee(self) -> Guarantee: ...

    @property
    def publishers(self) -> tuple[str, ...]: ...

    @property
    def slots(self) -> int: ...

    @property
    def fingerprint(self) -> str: ...


def check_next(
    mechanism: _Planned, slot: int, saved_plan: str, publishers: tuple[str, ...]
) -> None:
    """Refuse a slot that is not there, another list of publishers, and a state of another plan."""
    if slot > mechanism.slots:
        raise PrivacyError(f"all {mechanism.slots} slots are released: there is no slot {slot}")
    if publishers != mechanism.publishers:
        raise PrivacyError("contributions are not of the planned list of publishers")
    if saved_plan not in ("", mechanism.fingerprint):
        raise PrivacyError(
            f"the saved state belongs to another plan than this one (slot {slot}): go on with "
            "the plan that it was made with"
        )


def own_charges(release: Release) -> list[ChargeLine]:
    """What a release was charged for the mechanism itself."""
    return [charge for charge in release.charges if charge.part != FIT_PART]


def spent_with(
    mechanism: _Planned, slot: int, before: int, charges: Sequence[Charge | ChargeLine]
) -> int:
    """What is spent after a slot, in pico-rho; refused if that passes the promise."""
    spent = before + sum(charge.pico_rho for charge in charges)
    if Fraction(spent, PICO_RHO) > mechanism.guarantee.rho:
        raise PrivacyError(
            f"slot {slot} would bring what is spent to {spent / PICO_RHO:.12g}, but rho = "
            f"{float(mechanism.guarantee.rho):g} is promised"
        )
    return spent


@dataclass(frozen=True)
class SlotRelease:
    """Everything about a slot that may be published, and what it cost.

    `values` are integers before any scaling: noisy totals per publisher in grid units, or noisy
    rows of a strategy. `bound` is AdsBPC's, `allowance` that of personal budgets, `histogram` what
    they were chosen from, if this slot looked. `answers` are to the workload; the totals of this
    slot, and from the first slot to this one, are there whatever the workload.
    """

    slot: int
    bound: int | None
    allowance: float | None
    histogram: tuple[int, ...]
    values: tuple[int, ...]
    scale: float
    randomness: str
    charges: tuple[Charge, ...]
    answers: tuple[Estimate, ...]
    slot_totals: tuple[Estimate, ...]
    running_totals: tuple[Estimate, ...]
