"""The frozen vocabulary: campaign spec, slots, the integer grid."""

from adsbpc.model.grid import OTHER_PUBLISHER, UNITS_PER_CONVERSION
from adsbpc.model.guarantee import Adjacency, Charge, Guarantee
from adsbpc.model.slots import SlotGrid, SlotRun
from adsbpc.model.spec import CampaignSpec, load_spec

__all__ = [
    "OTHER_PUBLISHER",
    "UNITS_PER_CONVERSION",
    "Adjacency",
    "CampaignSpec",
    "Charge",
    "Guarantee",
    "SlotGrid",
    "SlotRun",
    "load_spec",
]
