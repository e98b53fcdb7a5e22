"""A year of hours under personal budgets: single hours, released from made-up books.

A million people convert 20 million times with 50 publishers. Books are made as they would be after
so many hours: those that are whole, and what changed since. One hour's contributions are let in,
with books that are hashed before and after as releases do. A release of hour 8,000 may cost a plain
pass over the books, read and written once, more than one of hour 100, whose books are small. One
hour of `WHOLE_EVERY` writes the books as a whole, which costs more, and is part of the mean.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from tempfile import TemporaryDirectory

from adsbpc.campaign.books import WHOLE_EVERY
from adsbpc.contributions.account_books import USERS as USERS_FILE
from adsbpc.contributions.long_accounts import LongEngineAccounts
from adsbpc.contributions.long_books import LONG_WIDE, READ_AGAIN, SUMS, LongBooks, sum_columns
from adsbpc.engines import Engine, Relation
from adsbpc.mechanisms.by_slots.decay_fit import Decays, best_decays, on_long_grid
from adsbpc.model import UNITS_PER_CONVERSION, Layout
from adsbpc.privacy import LIMIT, Terms
from adsbpc.privacy.decays import DecayingStrategy
from adsbpc.storage import Place
from adsbpc.workloads import WeightedSquaredError, prefix_sums
from bench.measured import processor_seconds_of

HOURS = 8_784
_PEOPLE, _CONVERSIONS, _PUBLISHERS = 1_000_000, 20_000_000, 50
_LAYOUT = Layout.of_publishers([f"P-{k}" for k in range(_PUBLISHERS)])
# In the order of best_decays for these hours; hours need no plan of their own.
_RATES = (0.71, 0.972, 0.9977, 0.99988)
_WEIGHTS = (0.3, 0.126, 0.038, 0.0147)


def plan_of_hours(hours: int) -> DecayingStrategy:
    return on_long_grid(best_decays(prefix_sums(hours), WeightedSquaredError(), 2.0), hours)


@dataclass(frozen=True)
class Hour:
    """Seconds of all cores that an hour takes, and a plain pass over the books that it starts
    from."""

    seconds: float
    plain_pass: float


def strategy() -> DecayingStrategy:
    import numpy as np

    return on_long_grid(Decays(np.array(_WEIGHTS), np.array(_RATES)), HOURS)


def hour_of_a_year(engine: Engine, folder: Path, hour: int) -> Hour:
    """From books as they are after the hours before it. An hour that only writes what changed is
    taken in the middle between two that write everything."""
    last_whole = (hour - 1) // WHOLE_EVERY * WHOLE_EVERY
    with TemporaryDirectory(dir=folder) as temporary:
        whole, recent, new = (Path(temporary) / name for name in ("whole", "recent", "new"))
        if last_whole:
            _make_books(engine, whole, 1, last_whole + 1)
        _make_books(engine, recent, last_whole + 1, hour)
        known = [folder for folder in (whole, recent) if folder.exists()]

        def hour_of(merges: bool) -> float:
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            books = LongBooks(hour, whole if last_whole else None, recent, new, merges)
            return processor_seconds_of(lambda: _release(engine, known, books))

        # The second time, when files are cached.
        usual, merging = (min(hour_of(merges) for _ in range(2)) for merges in (False, True))
        mean = usual + (merging - usual) / WHOLE_EVERY
        return Hour(mean, min(processor_seconds_of(lambda: _pass(engine, known)) for _ in range(2)))


def _conversions(first: int, end: int) -> str:
    """Person, publisher and hour of some of the year's conversions, which come in order."""
    return (
        f"SELECT hash(i) % {_PEOPLE} AS person, hash(i * 7 + 1) % {_PUBLISHERS} AS publisher,"
        f" 1 + i * {HOURS} // {_CONVERSIONS} AS hour FROM range({first}, {end}) AS numbers (i)"
    )


def _until(hour: int) -> int:
    return hour * _CONVERSIONS // HOURS


def _make_books(engine: Engine, folder: Path, first: int, end: int) -> None:
    """As large as they are after these hours; what stands in running sums does not matter."""
    folder.mkdir()
    sums = ", ".join(
        f"{UNITS_PER_CONVERSION} * count(*) AS {name}"
        if not name.endswith("_slot")
        else f"max(hour) AS {name}"
        for name in sum_columns(len(_RATES))[1:]
    )
    asked = _conversions(_until(first - 1), _until(end - 1))
    engine.write_parquet(
        "books",
        f"SELECT CAST((person + 1) * 4096 + publisher AS BIGINT) AS cell,"
        f" {sums.replace('max(hour)', 'CAST(max(hour) AS BIGINT)')}"
        f" FROM ({asked}) AS c GROUP BY person, publisher",
        folder / SUMS,
    )
    halves = ", ".join(
        f"CAST({2**20 if half == 'high' else 7} AS BIGINT) AS {name}_{half}"
        for name in LONG_WIDE
        for half in ("high", "low")
    )
    engine.write_parquet(
        "books",
        f"SELECT substr(md5(CAST(person AS VARCHAR)), 1, 16) AS user_id,"
        f" CAST(person + 1 AS BIGINT) AS number, CAST(count(*) AS BIGINT) AS seen, {halves}"
        f" FROM ({asked}) AS c GROUP BY person",
        folder / USERS_FILE,
    )


def _release(engine: Engine, known: Sequence[Path], books: LongBooks) -> None:
    hour = books.slot
    rows = Relation.of(
        f"SELECT substr(md5(CAST(person AS VARCHAR)), 1, 16) AS user_id,"
        f" CAST({hour} AS BIGINT) AS slot, CAST(publisher AS INT) AS cell_index,"
        f" CAST({UNITS_PER_CONVERSION} AS BIGINT) AS weight"
        f" FROM ({_conversions(_until(hour - 1), _until(hour))}) AS c"
    )
    planned = strategy()
    with engine.scratch():
        for folder in known:
            _hash(folder)
        accounts = LongEngineAccounts(engine, rows, _LAYOUT, books, planned)
        kept = LIMIT * 19 // 20
        accounts.admit(Terms(planned.crossing(hour), 100, 12, kept, LIMIT - kept))
        _hash(books.new)


def _hash(folder: Place) -> None:
    for file in READ_AGAIN:
        with (folder / file).open("rb") as content:
            file_digest(content, "sha256")


def _pass(engine: Engine, known: Sequence[Path]) -> None:
    with TemporaryDirectory(dir=known[0].parent) as temporary:
        for folder in known:
            for file in READ_AGAIN:
                sql = f"SELECT * FROM read_parquet('{folder / file}')"
                engine.write_parquet("plain pass", sql, Path(temporary) / file)
