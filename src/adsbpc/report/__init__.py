"""What analysts read: released values as tables, files and a page. Never sees events."""

from typing import TYPE_CHECKING

from adsbpc.fronts import lazy_front

if TYPE_CHECKING:
    from adsbpc.report.cells import Cell
    from adsbpc.report.report import Report

__all__ = ["Cell", "Report"]

__getattr__ = lazy_front(__name__)
