"""Campaigns that are released together are released as each is alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from adsbpc import events
from adsbpc.campaign import Campaign, Overview, Released, data_path
from adsbpc.campaign.together import Asked, Outcome, releasing_together
from adsbpc.engines import Relation
from adsbpc.engines.duckdb_engine import DuckDBEngine
from adsbpc.errors import AdsbpcError, EngineError
from adsbpc.model import CampaignSpec
from tests.campaign.platform import CHANGES, changed_campaign, some_campaign, write_events
from tests.effort import examples

# Contributions on the integer grid, before anything is cut or noised, by campaign, slot, measure.
Rows = dict[tuple[str, int, str], list[Any]]


@contextmanager
def recorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rows]:
    found: Rows = {}
    on_the_grid = data_path._on_the_grid

    def recording(attributed: Any, measure: Any) -> Relation:
        rows = on_the_grid(attributed, measure)
        engine, spec = attributed.events.engine, attributed.spec
        listed = sorted(engine.rows("recorded", f"SELECT * FROM {rows}"), key=repr)
        (slot,) = {row for (row,) in engine.rows("slots", f"SELECT max(slot) FROM {rows}")}
        found[spec.campaign.name, slot or 0, measure.name] = listed
        return rows

    with monkeypatch.context() as patched:
        patched.setattr(data_path, "_on_the_grid", recording)
        yield found


def told_of(released: Released) -> tuple[Any, ...]:
    return released.release.slot, released.conversions, released.quarantined, released.replayed


def alone(specs: list[CampaignSpec]) -> tuple[dict[str, Any], dict[str, Overview]]:
    told: dict[str, Any] = {}
    shown: dict[str, Overview] = {}
    for spec in specs:
        seen: list[Overview] = []
        told[spec.campaign.name] = found = list[Any]()
        try:
            for released in Campaign(spec).releasing(shown=seen.append):
                found.append(told_of(released))
        except AdsbpcError as error:
            found.append(str(error))
        shown |= dict.fromkeys([spec.campaign.name] * len(seen), *seen)
    return told, shown


def together(specs: list[CampaignSpec]) -> tuple[dict[str, Any], dict[str, Overview]]:
    told: dict[str, Any] = {spec.campaign.name: [] for spec in specs}
    shown: dict[str, Overview] = {}
    asked = [Asked(Campaign(spec)) for spec in specs]
    for outcome in releasing_together(
        asked, lambda campaign, seen: shown.update({campaign.spec.campaign.name: seen})
    ):
        name = outcome.campaign.spec.campaign.name
        released = outcome.released
        told[name].append(str(outcome.failure) if released is None else told_of(released))
    return told, shown


@pytest.mark.parametrize("seed", range(examples(1, 40)))
def test_nobody_notices_the_others(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contributions to the last unit, rows that were set aside, overviews and refusals."""
    random = Random(seed)
    forms: tuple[dict[str, bool], ...] = ({}, {"as_text": True}, {"csv": True}, {"ids": True})
    ending = write_events(tmp_path / "events", random, **forms[seed % len(forms)])
    count = random.randrange(3, 6)

    def specs(folder: str) -> list[CampaignSpec]:
        same, place = Random(seed), (tmp_path / folder, tmp_path / "events", ending)
        # One more with the journeys of the first, and a list of its own.
        publishers = ["P-2", "P-4", "P-1"]
        return [
            *(some_campaign(*place, f"c{k}", same) for k in range(count)),
            some_campaign(*place, "sibling", Random(seed), publishers=publishers),
        ]

    with recorded(monkeypatch) as expected_rows:
        expected = alone(specs("alone"))
    scans = shared_scans(monkeypatch)
    with recorded(monkeypatch) as rows:
        found = together(specs("together"))
    assert scans, "nothing was shared: this tests nothing"
    assert found[0] == expected[0]
    assert found[1] == expected[1]
    assert rows == expected_rows
    # In some worlds floors refuse everybody, or nobody converts.
    assert any(rows.values()) or seed > 0, "nobody contributed: this tests nothing"


@pytest.mark.slow
def test_one_change_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Campaigns that differ in one thing from what others share have what they have alone."""
    events = tmp_path / "events"
    write_events(events, Random(7))

    def specs(folder: str) -> list[CampaignSpec]:
        # The one with the smallest window comes first.
        ordered = sorted(CHANGES, key=lambda change: change != "slots")
        return [changed_campaign(tmp_path / folder, events, change) for change in ordered]

    with recorded(monkeypatch) as expected_rows:
        expected = alone(specs("alone"))
    with recorded(monkeypatch) as rows:
        assert together(specs("together")) == expected
    assert rows == expected_rows
    by_change = {
        change: [
            rows for (name, _, _), rows in expected_rows.items() if name == change.replace(" ", "-")
        ]
        for change in CHANGES
    }
    unlike = [change for change, found in by_change.items() if found != by_change["nothing"]]
    assert [*CHANGES][1:] == unlike, "some changes change nothing: this tests less"


def shared_scans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Filled with the steps that read for several campaigns."""
    found: list[str] = []
    table = DuckDBEngine.table

    def noted(self: DuckDBEngine, what: str, sql: str, row_key: str | None = None) -> Relation:
        if what.endswith("_by_advertiser"):
            found.append(what)
        return table(self, what, sql, row_key)

    monkeypatch.setattr(DuckDBEngine, "table", noted)
    return found


def plain_campaigns(directory: Path, count: int = 4) -> list[Campaign]:
    """Over the same events, each with a ledger of its own; the second has its own journeys."""
    folder = directory / "events"
    write_events(folder, Random(5))
    return [
        Campaign(
            CampaignSpec.model_validate(
                {
                    "campaign": {
                        "name": f"c{k}",
                        "scope": f"s{k}",
                        "advertiser": "Ad-1",
                        "start": "2026-03-01",
                        "slots": 2,
                        "publishers": ["P-1"],
                    },
                    "attribution": {"click_lookback": "2d" if k == 1 else "3d"},
                    "events": {
                        name: str(folder / f"{name}.parquet")
                        for name in ("impressions", "conversions")
                    },
                    "checks": {"min_match_rate": 0, "max_quarantine_rate": 1},
                    "privacy": {"rho": 1.0, "mechanism": "adsbpc"},
                    "ledger": {"location": f"{k}.sqlite"},
                    "directory": directory,
                }
            )
        )
        for k in range(count)
    ]


def outcomes(campaigns: list[Campaign]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {each.spec.campaign.name: [] for each in campaigns}
    for outcome in releasing_together(map(Asked, campaigns)):
        found[outcome.campaign.spec.campaign.name].append(outcome)
    return found


@pytest.mark.parametrize(
    "step", ["impressions_by_advertiser", "count rows of others", "conversions_read", "credits"]
)
def test_an_engine_that_fails_once_stops_at_most_one(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it fails for all of them, and after which nothing more can be done with it."""
    failed: list[DuckDBEngine] = []
    execute = DuckDBEngine._execute

    def failing(self: DuckDBEngine, what: str, sql: str) -> list[tuple[Any, ...]]:
        if what == step and not failed:
            failed.append(self)
        if failed == [self]:
            raise EngineError("duckdb", what, "the database was invalidated", sql)
        return execute(self, what, sql)

    monkeypatch.setattr(DuckDBEngine, "_execute", failing)
    found = outcomes(plain_campaigns(tmp_path))
    assert failed, "nothing failed: this tests nothing"
    stopped = [name for name, told in found.items() if told[-1].failure is not None]
    assert len(stopped) <= 1
    for name, told in found.items():
        assert len([each for each in told if each.released]) == (0 if name in stopped else 2)


def test_a_disk_that_is_full_for_one_stops_that_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaigns = plain_campaigns(tmp_path)
    read = events.read_events

    def full(spec: CampaignSpec, *arguments: Any, **named: Any) -> Any:
        if spec.campaign.name == "c1":
            raise OSError(28, "No space left on device")
        return read(spec, *arguments, **named)

    monkeypatch.setattr(data_path, "read_events", full)
    found = outcomes(campaigns)
    assert [len(told) for told in found.values()] == [2, 1, 2, 2]
    assert isinstance(found["c1"][0].failure, OSError)
    # Nothing of it was spent, and it goes on once there is room.
    monkeypatch.undo()
    assert len(campaigns[1].release()) == 2
