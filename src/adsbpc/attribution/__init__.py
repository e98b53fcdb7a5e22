"""Attribution: models that turn a user's own events into credits."""

from adsbpc.attribution.journeys import Journeys
from adsbpc.attribution.models import (
    AttributionModel,
    FirstTouch,
    LastTouch,
    Position,
    TimeDecay,
    Uniform,
    credits_sql,
    journeys_of,
    model_of,
)

__all__ = [
    "AttributionModel",
    "FirstTouch",
    "Journeys",
    "LastTouch",
    "Position",
    "TimeDecay",
    "Uniform",
    "credits_sql",
    "journeys_of",
    "model_of",
]
