"""Events: schemas, readers, validation and quarantine, slots."""

from adsbpc.events.arms import arms_mark, check_table, keyed_arms, with_arms
from adsbpc.events.holdout import holdout_source, read_holdout
from adsbpc.events.schema import Reason
from adsbpc.events.tables import EventTables, SourceCounts, read_events, source_files

__all__ = [
    "EventTables",
    "Reason",
    "SourceCounts",
    "arms_mark",
    "check_table",
    "holdout_source",
    "keyed_arms",
    "read_events",
    "read_holdout",
    "source_files",
    "with_arms",
]
