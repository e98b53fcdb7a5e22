"""Campaigns and their releases: when slots are released, and when they are visible."""
