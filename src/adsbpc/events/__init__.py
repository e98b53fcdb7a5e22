"""Events: schemas, readers, validation and quarantine, slots."""

from adsbpc.events.arms import arms_mark, check_table, keyed_arms, with_arms
from adsbpc.events.holdout import holdout_source, read_holdout
from adsbpc.events.impressions import listed_index, public_list
from adsbpc.events.opening import OpenedSources, count_rows, source_files
from adsbpc.events.schema import Reason
from adsbpc.events.shared import SharedSources, SlotNeed
from adsbpc.events.tables import EventTables, SourceCounts, read_events, some_slots

__all__ = [
    "EventTables",
    "OpenedSources",
    "Reason",
    "SharedSources",
    "SlotNeed",
    "SourceCounts",
    "arms_mark",
    "check_table",
    "count_rows",
    "holdout_source",
    "keyed_arms",
    "listed_index",
    "public_list",
    "read_events",
    "read_holdout",
    "some_slots",
    "source_files",
    "with_arms",
]
