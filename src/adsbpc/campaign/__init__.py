"""Campaigns: the steps from a campaign file to what is released, in order."""

from adsbpc.campaign.data_path import attribute, check_targets, contribute, write_credits
from adsbpc.campaign.plan import ExpectedError, Plan, plan

__all__ = [
    "ExpectedError",
    "Plan",
    "attribute",
    "check_targets",
    "contribute",
    "plan",
    "write_credits",
]
