"""Campaigns: the steps from a campaign file to what is released, in order."""

from adsbpc.campaign.data_path import attribute, contribute, write_credits

__all__ = ["attribute", "contribute", "write_credits"]
