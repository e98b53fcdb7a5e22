"""How timestamps seem to be written: proposals for `[events] timestamps` and `timestamp_format`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from adsbpc.engines import ColumnKind
from adsbpc.events.moments import ISO_8601
from adsbpc.model.clock_format import ClockFormat

# Days as people write them, and what may follow. The first form that fits is proposed.
_DAYS = (
    "%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y.%m.%d", "%d.%m.%y",
    "%d/%m/%y", "%m/%d/%y", "%d %b %Y", "%d-%b-%Y", "%b %d, %Y", "%Y%m%d",
)  # fmt: skip
_BETWEEN = (" ", "T", ", ")
_TIMES = ("%H:%M:%S", "%H:%M", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%H:%M:%S%z", "%H:%M%z")
# Whole numbers of these lengths count from 1970 to moments between 2001 and 2286.
_EPOCHS = {10: "epoch_seconds", 13: "epoch_milliseconds", 16: "epoch_microseconds"}
_FITS = 0.95
# Values that are looked at, spread over all of them.
_MOST = 1_000


@dataclass(frozen=True)
class Clock:
    """A key of `[events]` and its value, or neither where nothing need be said. `other` is a form
    that fits as well, and means other days."""

    key: str | None = None
    value: str | None = None
    other: str | None = None

    @property
    def form(self) -> str:
        return self.value if self.key == "timestamps" and self.value else "auto"

    @property
    def format(self) -> ClockFormat | None:
        return ClockFormat(self.value) if self.key == "timestamp_format" and self.value else None


def clock_of(kind: ColumnKind, texts: Sequence[str]) -> Clock | None:
    """How a column is written; None if it holds no timestamps that could be declared."""
    if kind in (ColumnKind.TIMESTAMP, ColumnKind.ZONED_TIMESTAMP):
        return Clock()
    if kind not in (ColumnKind.TEXT, ColumnKind.INTEGER) or not texts:
        return None
    looked_at = texts[:: -(-len(texts) // _MOST)]
    if _fits(ISO_8601, looked_at):
        return Clock()
    for length, form in _EPOCHS.items():
        if _fits(f"^[0-9]{{{length}}}$", looked_at):
            return Clock("timestamps", form)
    fitting = [each for each in _formats() if _fits(ClockFormat(each).pattern, looked_at)]
    if not fitting:
        return None
    return Clock("timestamp_format", fitting[0], _swapped(fitting))


def _formats() -> list[str]:
    timed = [day + gap + time for day, gap, time in product(_DAYS, _BETWEEN, _TIMES)]
    return [*timed, *_DAYS]


def _swapped(fitting: list[str]) -> str | None:
    """A form with day and month the other way round, where no day has shown which it is."""
    return next((each for each in fitting[1:] if each.index("%d") != fitting[0].index("%d")), None)


def _fits(pattern: str, texts: Sequence[str]) -> bool:
    compiled = re.compile(pattern)
    wrong, most = 0, (1 - _FITS) * len(texts)
    for text in texts:
        wrong += compiled.fullmatch(text) is None
        if wrong > most:
            return False
    return True
