"""What the results of the reproduction mean, experiment by experiment."""

from __future__ import annotations

OPENING = ""
READINGS: dict[str, str] = {}
