"""Events: schemas, readers, validation and quarantine, slots."""

from adsbpc.events.schema import Reason
from adsbpc.events.tables import EventTables, read_events

__all__ = ["EventTables", "Reason", "read_events"]
