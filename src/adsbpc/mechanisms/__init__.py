"""Mechanisms: AdsBPC and personal budgets, planned from a campaign file and run slot by slot."""

from typing import TYPE_CHECKING

from adsbpc.fronts import lazy_front

if TYPE_CHECKING:
    from adsbpc.mechanisms.adsbpc import AdsBPC, BoundedState
    from adsbpc.mechanisms.by_rows.mechanism import BudgetByRows
    from adsbpc.mechanisms.by_rows.planning import plan_personal
    from adsbpc.mechanisms.by_rows.state import RowsState
    from adsbpc.mechanisms.guarantees import (
        fit_rho,
        guarantee_of,
        privacy_of,
        promise_with,
        scope_limit_of,
    )
    from adsbpc.mechanisms.interface import Mechanism, Question, Rows, State
    from adsbpc.mechanisms.measures import Measures, MeasuresState, step_of
    from adsbpc.mechanisms.planning import (
        plan_adsbpc,
        plan_measures,
        rho_for_targets,
        split_of,
    )

__all__ = [
    "AdsBPC",
    "BoundedState",
    "BudgetByRows",
    "Measures",
    "MeasuresState",
    "Mechanism",
    "Question",
    "Rows",
    "RowsState",
    "State",
    "fit_rho",
    "guarantee_of",
    "plan_adsbpc",
    "plan_measures",
    "plan_personal",
    "privacy_of",
    "promise_with",
    "rho_for_targets",
    "scope_limit_of",
    "split_of",
    "step_of",
]

__getattr__ = lazy_front(__name__)
