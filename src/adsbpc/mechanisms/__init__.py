"""Mechanisms: AdsBPC, planned from a campaign file and run slot by slot."""

from adsbpc.mechanisms.adsbpc import AdsBPC, State
from adsbpc.mechanisms.interface import SlotRelease
from adsbpc.mechanisms.planning import (
    expected_errors,
    guarantee_of,
    plan_adsbpc,
    planned,
    privacy_of,
    rho_for_targets,
    split_of,
)

__all__ = [
    "AdsBPC",
    "SlotRelease",
    "State",
    "expected_errors",
    "guarantee_of",
    "plan_adsbpc",
    "planned",
    "privacy_of",
    "rho_for_targets",
    "split_of",
]
