"""What analysts read: released values as tables, files and a page. Never sees events."""

from adsbpc.report.cells import Cell
from adsbpc.report.report import Report

__all__ = ["Cell", "Report"]
