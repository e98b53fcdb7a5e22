"""The frozen vocabulary: campaign spec, slots, the integer grid."""

from adsbpc.model.campaign_file import load_spec, spec_of
from adsbpc.model.fit import Fit, ModelShare
from adsbpc.model.grid import ALL_PUBLISHERS, OTHER_PUBLISHER, UNITS_PER_CONVERSION
from adsbpc.model.guarantee import PICO_RHO, Adjacency, Budget, Charge, Guarantee, Promise
from adsbpc.model.layout import Dimension, Layout
from adsbpc.model.measure import Measure
from adsbpc.model.plan import StoredPlan
from adsbpc.model.release import (
    Answers,
    ChargeLine,
    Drawn,
    Estimate,
    Measured,
    Provenance,
    Release,
)
from adsbpc.model.running_noise import RunningNoise
from adsbpc.model.slots import SlotGrid, SlotRun
from adsbpc.model.spec import CampaignSpec

__all__ = [
    "ALL_PUBLISHERS",
    "OTHER_PUBLISHER",
    "PICO_RHO",
    "UNITS_PER_CONVERSION",
    "Adjacency",
    "Answers",
    "Budget",
    "CampaignSpec",
    "Charge",
    "ChargeLine",
    "Dimension",
    "Drawn",
    "Estimate",
    "Fit",
    "Guarantee",
    "Layout",
    "Measure",
    "Measured",
    "ModelShare",
    "Promise",
    "Provenance",
    "Release",
    "RunningNoise",
    "SlotGrid",
    "SlotRun",
    "StoredPlan",
    "load_spec",
    "spec_of",
]
