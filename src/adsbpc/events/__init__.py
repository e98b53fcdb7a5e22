"""Events: schemas, readers, validation and quarantine, slots."""

from adsbpc.events.holdout import read_holdout
from adsbpc.events.schema import Reason
from adsbpc.events.tables import EventTables, read_events, source_files

__all__ = ["EventTables", "Reason", "read_events", "read_holdout", "source_files"]
