"""Mechanisms: AdsBPC and personal budgets, planned from a campaign file and run slot by slot."""

from typing import TYPE_CHECKING

from adsbpc.fronts import lazy_front

if TYPE_CHECKING:
    from adsbpc.mechanisms.adsbpc import AdsBPC, State
    from adsbpc.mechanisms.guarantees import fit_rho, guarantee_of, privacy_of
    from adsbpc.mechanisms.interface import FIT_PART, SlotRelease
    from adsbpc.mechanisms.personal_budget import PersonalBudget, PersonalState
    from adsbpc.mechanisms.personal_planning import planned_personal
    from adsbpc.mechanisms.planning import (
        Mechanism,
        expected_errors,
        plan_mechanism,
        planned,
        rho_for_targets,
        split_of,
    )

__all__ = [
    "FIT_PART",
    "AdsBPC",
    "Mechanism",
    "PersonalBudget",
    "PersonalState",
    "SlotRelease",
    "State",
    "expected_errors",
    "fit_rho",
    "guarantee_of",
    "plan_mechanism",
    "planned",
    "planned_personal",
    "privacy_of",
    "rho_for_targets",
    "split_of",
]

__getattr__ = lazy_front(__name__)
