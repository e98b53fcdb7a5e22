"""A campaign under personal budgets over the made-up contributions: ledger and books as releases
leave them, without the way from events to contributions."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adsbpc.campaign import start
from adsbpc.campaign.books import BookFolder
from adsbpc.campaign.release import release_of
from adsbpc.contributions import EngineAccounts
from adsbpc.engines import Engine, Relation
from adsbpc.ledger import Ledger
from adsbpc.mechanisms import BudgetByRows
from adsbpc.model import UNITS_PER_CONVERSION, CampaignSpec, Measured
from adsbpc.privacy import SecureRandomness
from adsbpc.privacy.strategies import ONE
from bench.data import CONTRIBUTION_PUBLISHERS, COUNTRIES, PUBLISHERS, SLOTS

# Everybody may cost as much as some 135 conversions at different publishers.
_ALLOWANCE = 11.6
_LOOKS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


# Publishers and countries, with "other", that have as many cells as there are publishers above.
BY_COUNTRY: dict[str, Any] = {
    "measure": [{"name": "conversions", "by": ["publisher", "country"]}],
    "dimensions": {
        "country": {"column": "country", "values": [f"C-{k}" for k in range(COUNTRIES - 1)]}
    },
}


def released_spec(data: Path, slots: int = SLOTS, by_country: bool = False) -> CampaignSpec:
    """By publisher alone, or by publishers and countries with sums of their own."""
    publishers = PUBLISHERS if by_country else CONTRIBUTION_PUBLISHERS
    return CampaignSpec.model_validate(
        {
            **(BY_COUNTRY if by_country else {}),
            "campaign": {
                "name": "bench",
                "advertiser": "Ad-1",
                "start": "2026-03-01",
                "slots": slots,
                "publishers": [f"P-{k}" for k in range(publishers - 1)],
            },
            "events": {"impressions": "none.parquet", "conversions": "none.parquet"},
            "privacy": {
                "rho": 1.0,
                "mechanism": "personal-budget",
                "personal_budget": {"strategy": "toeplitz", "allowance": _ALLOWANCE},
            },
            "engine": {"options": {"threads": 2, "memory_limit": "3GiB"}},
            "directory": data / ("released-by-country" if by_country else "released"),
        }
    )


def release_every_slot(
    data: Path, engine: Engine, relation: Relation, slots: int = SLOTS, by_country: bool = False
) -> None:
    for _ in released_slots(data, engine, relation, slots, by_country):
        pass


def released_slots(
    data: Path, engine: Engine, relation: Relation, slots: int = SLOTS, by_country: bool = False
) -> Iterator[int]:
    """For every slot everybody's need, what the filter keeps, books that are written, and an entry
    in the ledger; then its number."""
    spec = released_spec(data, slots, by_country)
    shutil.rmtree(spec.directory, ignore_errors=True)
    spec.directory.mkdir(parents=True)
    ledger = Ledger(spec.ledger.location, spec.directory)
    running, folder = start(spec, ledger), BookFolder(spec, spec.measures[0].name)
    (measure, mechanism), opening = running.measures.runs[0], running.opening
    assert isinstance(mechanism, BudgetByRows)
    edges = [(2**k * UNITS_PER_CONVERSION * ONE) ** 2 for k in range(10)]
    for slot in range(1, slots + 1):
        steps = ledger.steps(*running.key) if slot > 1 else []
        with folder.attempt(steps) as books, engine.scratch():
            accounts = EngineAccounts(engine, relation, slots, mechanism.counted, books)
            if slot in _LOOKS:
                accounts.needs(mechanism.measurement.costs(slot), edges)
            drawn, state = mechanism.release(mechanism.resume(steps), accounts, SecureRandomness())
            step = {**state.last_step(), "books": folder.seal(books)}
        measured = Measured(**dict(drawn), measure=measure.name, metric=measure.metric)
        ledger.commit(release_of(spec, slot, (measured,)), step, opening)
        opening = None
        yield slot
