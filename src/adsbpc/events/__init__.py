"""Events: schemas, readers, validation and quarantine, slots."""

from adsbpc.events.arms import arms_mark, check_table, keyed_arms, with_arms
from adsbpc.events.holdout import holdout_source, read_holdout
from adsbpc.events.impressions import listed_index, public_list
from adsbpc.events.opening import OpenedSources, source_files
from adsbpc.events.schema import Reason
from adsbpc.events.shared import SharedSources, SlotNeed
from adsbpc.events.tables import EventTables, SourceCounts, read_events

__all__ = [
    "EventTables",
    "OpenedSources",
    "Reason",
    "SharedSources",
    "SlotNeed",
    "SourceCounts",
    "arms_mark",
    "check_table",
    "holdout_source",
    "keyed_arms",
    "listed_index",
    "public_list",
    "read_events",
    "read_holdout",
    "source_files",
    "with_arms",
]
