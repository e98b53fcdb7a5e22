"""The frozen vocabulary: campaign spec, slots, the integer grid."""

from adsbpc.model.fit import Fit, ModelShare
from adsbpc.model.grid import ALL_PUBLISHERS, OTHER_PUBLISHER, UNITS_PER_CONVERSION
from adsbpc.model.guarantee import PICO_RHO, Adjacency, Budget, Charge, Guarantee, Promise
from adsbpc.model.layout import Layout
from adsbpc.model.plan import StoredPlan
from adsbpc.model.release import ChargeLine, Drawn, Estimate, Provenance, Release
from adsbpc.model.slots import SlotGrid, SlotRun
from adsbpc.model.spec import CampaignSpec, load_spec, spec_of

__all__ = [
    "ALL_PUBLISHERS",
    "OTHER_PUBLISHER",
    "PICO_RHO",
    "UNITS_PER_CONVERSION",
    "Adjacency",
    "Budget",
    "CampaignSpec",
    "Charge",
    "ChargeLine",
    "Drawn",
    "Estimate",
    "Fit",
    "Guarantee",
    "Layout",
    "ModelShare",
    "Promise",
    "Provenance",
    "Release",
    "SlotGrid",
    "SlotRun",
    "StoredPlan",
    "load_spec",
    "spec_of",
]
