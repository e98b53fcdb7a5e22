"""Weights that follow from importance: the best there are, and fixed when a campaign starts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adsbpc.campaign.promise import as_started, promise_of
from adsbpc.model import CampaignSpec
from adsbpc.model.view_weights import weights_for
from adsbpc.workloads import Margins

FIFTY_BY_TWENTY = (50, 20)


def loss(
    importance: tuple[float, ...], weights: tuple[int, ...], lengths: tuple[int, ...]
) -> float:
    unit, margins = sum(weight**2 for weight in weights), Margins(lengths, weights)
    return unit * sum(each * margins.view_variance(depth) for depth, each in enumerate(importance))


@example((0.0, 0.0, 5e-324), (1, 1), (0, 0, 2))
@given(
    st.tuples(*[st.floats(0, 10)] * 3).filter(any),
    st.tuples(st.integers(1, 60), st.integers(1, 30)),
    st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(1, 8)),
)
def test_no_other_weights_are_better(
    importance: tuple[float, ...], lengths: tuple[int, ...], other: tuple[int, ...]
) -> None:
    found = weights_for(importance, lengths)
    largest = max(importance)
    shares = tuple(each / largest for each in importance)
    assert loss(shares, found, lengths) <= loss(shares, other, lengths) * (1 + 1e-9)


def test_what_matters_more_is_more_accurate() -> None:
    errors = []
    for total in (0.0, 0.1, 1.0, 10.0):
        weights = weights_for((total, 1.0, 1.0), FIFTY_BY_TWENTY)
        unit = sum(weight**2 for weight in weights)
        errors.append(unit * Margins(FIFTY_BY_TWENTY, weights).view_variance(0))
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 4 * errors[-1]
    # Cells alone are all that is asked for.
    assert weights_for((0.0, 0.0, 1.0), FIFTY_BY_TWENTY) == (0, 0, 1)


def spec_with(**more: Any) -> CampaignSpec:
    return CampaignSpec.model_validate(
        {
            "campaign": {
                "name": "c", "advertiser": "a", "start": "2026-03-01", "slots": 3,
                "publishers": ["p", "q"],
            },
            "events": {"impressions": "i.parquet", "conversions": "c.parquet"},
            "privacy": {"rho": 1.0},
            "measure": [{"name": "m", "by": ["publisher", "country"], **more}],
            "dimensions": {"country": {"column": "country", "values": ["DE", "FR"]}},
        }
    )  # fmt: skip


def test_a_campaign_that_runs_keeps_the_weights_it_started_with() -> None:
    """Also where another version, or another list of importance, would choose others."""
    spec = spec_with(importance=[1, 2, 1])
    weights = spec.measures[0].layout.weights
    assert weights == weights_for((1, 2, 1), (3, 3))
    started = promise_of(spec)
    assert started["measures"]["m"]["weights"] == list(weights)
    assert "importance" not in started["measures"]["m"]
    started["measures"]["m"]["weights"] = [2, 5, 7]
    assert as_started(spec, started).measures[0].layout.weights == (2, 5, 7)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"importance": [1, 2]}, "expected 3 numbers"),
        ({"importance": [0, 0, 0]}, "one of them above 0"),
        ({"importance": [1, 2, -1]}, "greater than or equal to 0"),
        ({"importance": [1, 2, 1], "weights": [1, 8, 8]}, "remove one of the two"),
        ({"importance": [1, 2, 1], "metric": "converters"}, "remove importance"),
    ],
)
def test_importance_that_cannot_be_meant(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        spec_with(**more)
