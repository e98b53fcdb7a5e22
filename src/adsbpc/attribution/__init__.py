"""Attribution: models that turn a user's own events into credits, and the fits that some of them
need."""

from adsbpc.attribution.comparison import COMPARED
from adsbpc.attribution.counts import CountSet, count_set, set_name
from adsbpc.attribution.fit_journeys import fit_cells_sql, fit_users_sql
from adsbpc.attribution.fits import fit_again, fit_of, fitted_model
from adsbpc.attribution.fitted import FittedModel
from adsbpc.attribution.journeys import Journeys
from adsbpc.attribution.models import (
    AttributionModel,
    DistinctPublishers,
    FirstTouch,
    LastTouch,
    Position,
    TimeDecay,
    Uniform,
    credits_of,
    credits_sql,
    journeys_of,
    plain_model,
)

__all__ = [
    "COMPARED",
    "AttributionModel",
    "CountSet",
    "DistinctPublishers",
    "FirstTouch",
    "FittedModel",
    "Journeys",
    "LastTouch",
    "Position",
    "TimeDecay",
    "Uniform",
    "count_set",
    "credits_of",
    "credits_sql",
    "fit_again",
    "fit_cells_sql",
    "fit_of",
    "fit_users_sql",
    "fitted_model",
    "journeys_of",
    "plain_model",
    "set_name",
]
