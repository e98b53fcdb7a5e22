"""How noisy running totals are, by the plan that a campaign started with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from adsbpc.campaign.promise import as_started
from adsbpc.ledger.records import CampaignRecord
from adsbpc.mechanisms import Measures, plan_measures
from adsbpc.model import CampaignSpec, Release, RunningNoise
from adsbpc.report.ranges import NoiseOf


def running_noise_of(
    spec: CampaignSpec, record: CampaignRecord | None, releases: Sequence[Release]
) -> NoiseOf | None:
    """Planned when it is first asked for: not every report does. None before a campaign starts. Of
    slots to come it is what it will be if allowances stay as they are."""
    if record is None:
        return None

    @cache
    def measures() -> Measures:
        return plan_measures(as_started(spec, record.promise), record.plan)

    def noise(measure: str, boundaries: Sequence[int]) -> RunningNoise:
        to_come = [releases[-1]] * max(0, max(boundaries) - len(releases))
        return measures().running_noise([*releases, *to_come], measure, boundaries)

    return noise
