"""The frozen vocabulary: campaign spec, slots, the integer grid."""

from adsbpc.model.fit import Fit, ModelShare
from adsbpc.model.grid import ALL_PUBLISHERS, OTHER_PUBLISHER, UNITS_PER_CONVERSION
from adsbpc.model.guarantee import PICO_RHO, Adjacency, Budget, Charge, Guarantee, Promise
from adsbpc.model.release import ChargeLine, Estimate, Provenance, Release
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
    "Estimate",
    "Fit",
    "Guarantee",
    "ModelShare",
    "Promise",
    "Provenance",
    "Release",
    "SlotGrid",
    "SlotRun",
    "load_spec",
    "spec_of",
]
