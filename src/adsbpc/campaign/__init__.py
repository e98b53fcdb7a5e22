"""Campaigns: the steps from a campaign file to what is released, in order."""

from typing import TYPE_CHECKING

from adsbpc.fronts import lazy_front

if TYPE_CHECKING:
    from adsbpc.campaign.campaign import Campaign
    from adsbpc.campaign.data_path import attribute, check_targets, contributed, write_credits
    from adsbpc.campaign.overview import Overview
    from adsbpc.campaign.plan import ExpectedError, FurtherModel, Plan, PlannedFit
    from adsbpc.campaign.release import Released, Releases, Running, release_slot, start
    from adsbpc.campaign.restore import Restored
    from adsbpc.campaign.status import Status

__all__ = [
    "Campaign",
    "ExpectedError",
    "FurtherModel",
    "Overview",
    "Plan",
    "PlannedFit",
    "Released",
    "Releases",
    "Restored",
    "Running",
    "Status",
    "attribute",
    "check_targets",
    "contributed",
    "release_slot",
    "start",
    "write_credits",
]

__getattr__ = lazy_front(__name__)
