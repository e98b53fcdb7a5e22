"""How noisy sums over slots are, by the plan that a campaign started with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from adsbpc.campaign.promise import as_started
from adsbpc.ledger.records import CampaignRecord
from adsbpc.mechanisms import Measures, plan_measures
from adsbpc.model import CampaignSpec, Release
from adsbpc.report.ranges import RangeErrors


def range_errors_of(
    spec: CampaignSpec, record: CampaignRecord | None, releases: Sequence[Release]
) -> RangeErrors | None:
    """Planned when it is first asked for: most reports never do. None before a campaign starts."""
    if record is None:
        return None

    @cache
    def measures() -> Measures:
        return plan_measures(as_started(spec, record.promise), record.plan)

    def errors(measure: str, first: int, last: int) -> tuple[list[float], float]:
        return measures().range_errors(releases, measure, first, last)

    return errors
