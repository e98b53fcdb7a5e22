"""A platform's events on the disk, of several advertisers and with everything that may be wrong
with rows, and campaigns over them that differ in all that campaigns may differ in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from adsbpc.model import CampaignSpec

START = datetime(2026, 3, 1, tzinfo=UTC)
ADVERTISERS = ("Ad-1", "Ad-2", "Ad-3")
DAYS = 6
_SEEN, _BOUGHT = 500, 200


def write_events(
    directory: Path, random: Random, *, as_text: bool = False, csv: bool = False, ids: bool = False
) -> str:
    """`impressions` and `conversions` with the ending that is returned; times as texts, some of
    which say nothing, or as timestamps."""
    directory.mkdir(parents=True, exist_ok=True)
    as_text = as_text or csv

    def one_of(*values: Any) -> Any:
        return random.choice(values)

    def rows(count: int, first_day: int) -> dict[str, list[Any]]:
        moments = [
            START + timedelta(days=first_day, seconds=random.randrange((DAYS - first_day) * 86_400))
            for _ in range(count)
        ]
        texts: list[Any] = [moment.isoformat() for moment in moments]
        stamps = [
            one_of("", "soon", "12/31/99 7 pm") if not random.randrange(15) else text
            for text in texts
        ]
        shown = [None if not random.randrange(30) else moment for moment in moments]
        arrived = [moment + timedelta(minutes=random.randrange(600)) for moment in moments]
        return {
            "user_id": [one_of(None, "") if not random.randrange(30) else f"u{random.randrange(9)}"
                        for _ in range(count)],
            "advertiser_id": [one_of(*2 * ADVERTISERS, "Ad-9", None) for _ in range(count)],
            "timestamp": stamps if as_text else pa.array(shown, pa.timestamp("us", tz="UTC")),
            "arrived_at": [moment.isoformat() for moment in arrived]
            if as_text
            else pa.array(arrived, pa.timestamp("us", tz="UTC")),
            **({"event_id": [one_of(None, *"abcdefghij") for _ in range(count)]} if ids else {}),
        }  # fmt: skip

    seen, bought = rows(_SEEN, -3), rows(_BOUGHT, 0)
    impressions = {
        **seen,
        "publisher_id": [one_of("P-1", "P-2", "P-3", "P-4", None) for _ in range(_SEEN)],
        "kind": [one_of("click", "view", "VIEW", "gaze") for _ in range(_SEEN)],
        "device": [one_of("phone", "tv", None) for _ in range(_SEEN)],
    }
    conversions = {
        **bought,
        "value": [one_of(1.5, 20.0, 300.0, -1.0, None) for _ in range(_BOUGHT)],
        "country": [one_of("DE", "FR", None) for _ in range(_BOUGHT)],
    }
    for name, columns in (("impressions", impressions), ("conversions", conversions)):
        table = pa.table(columns)
        if csv:
            pyarrow.csv.write_csv(table, directory / f"{name}.csv")
        else:
            # Row groups, of which some are left out by a window.
            pq.write_table(table, directory / f"{name}.parquet", row_group_size=40)
    return "csv" if csv else "parquet"


def some_campaign(
    directory: Path, events: Path, ending: str, name: str, random: Random, **own: Any
) -> CampaignSpec:
    """One at random, but for what is its `own` in [campaign]; its ledger is its own or that of the
    folder, its scope its own."""

    def one_of(*values: Any) -> Any:
        return random.choice(values)

    measures: list[dict[str, Any]] = one_of(
        [],
        [{"name": "conversions"}, {"name": "revenue", "metric": "value", "value_cap": 100}],
        [{"name": "by_country", "by": ["publisher", "country"]}],
        [{"name": "reach", "metric": "reach"}, {"name": "conversions", "by": ["device"]}],
        [{"name": "impressions", "metric": "impressions"}],
    )
    used = {each for measure in measures for each in measure.get("by", [])}
    dimensions = {
        "country": {"column": "country", "values": ["DE", "FR"][: one_of(1, 2)]},
        "device": {"column": "device", "of": "impression", "values": ["phone"]},
    }
    counted = {"measure": measures} if measures else {}
    mechanism = one_of("adsbpc", "personal-budget")
    if any(each.get("metric") in ("reach", "impressions") for each in measures):
        mechanism = "personal-budget"
    waits: dict[str, Any] = one_of({}, {}, {"settle": "6h", "wait": "1d"})
    content = {
        "campaign": {
            "name": name,
            "scope": f"scope-{name}",
            "advertiser": one_of(*ADVERTISERS),
            "start": f"2026-03-0{one_of(1, 1, 2)}",
            "slots": one_of(2, 3),
            "slot": one_of("1d", "1d", "1h"),
            "timezone": one_of("UTC", "UTC", "Europe/Berlin"),
            "publishers": one_of(["P-1", "P-2"], ["P-3"]),
            **own,
        },
        "events": {
            "impressions": str(events / f"impressions.{ending}"),
            "conversions": str(events / f"conversions.{ending}"),
            "timestamps": one_of("auto", "zoned"),
            **waits,
        },
        "attribution": {
            "model": one_of("last_touch", "uniform"),
            "click_lookback": one_of("2d", "2d", "1d"),
            "view_lookback": "1d",
        },
        "privacy": {"rho": 1.0, "mechanism": mechanism},
        "checks": one_of(
            {"min_match_rate": 0, "max_quarantine_rate": 1},
            {"min_match_rate": 0, "max_quarantine_rate": 1},
            {"max_quarantine_rate": 0.2},
        ),
        "dimensions": {key: value for key, value in dimensions.items() if key in used},
        "engine": {"options": {"threads": 1}},
        "ledger": {"location": one_of("ledger.sqlite", f"{name}.sqlite")},
        **counted,
    }
    directory.mkdir(parents=True, exist_ok=True)
    return CampaignSpec.model_validate({**content, "directory": directory})


# What campaigns of one advertiser may differ in: each of these is one change to the others' file.
CHANGES: dict[str, dict[str, dict[str, Any]]] = {
    "nothing": {},
    "publishers": {"campaign": {"publishers": ["P-4", "P-1"]}},
    "model": {"attribution": {"model": "first_touch"}},
    "lookback": {"attribution": {"click_lookback": "6h", "view_lookback": "6h"}},
    "longer lookback": {"attribution": {"view_lookback": "4d"}},
    "touches": {"attribution": {"max_touches": 1}},
    "start": {"campaign": {"start": "2026-03-02"}},
    "zone": {"campaign": {"timezone": "Asia/Tokyo"}},
    "slots": {"campaign": {"slot": "1h"}},
    "kind": {"events": {"impression_kind": "click"}},
    "lateness": {"events": {"max_lateness": "1h"}},
    "metric": {"campaign": {"metric": "value", "value_cap": 50}},
    "advertiser": {"campaign": {"advertiser": "Ad-2"}},
}


def changed_campaign(directory: Path, events: Path, change: str) -> CampaignSpec:
    """One that counts, with uniform credits, and is never refused; with one change."""
    name = change.replace(" ", "-")
    content: dict[str, dict[str, Any]] = {
        "campaign": {
            "name": name,
            "scope": name,
            "advertiser": "Ad-1",
            "start": "2026-03-01",
            "slots": 2,
            "publishers": ["P-1", "P-2"],
        },
        "events": {
            source: str(events / f"{source}.parquet") for source in ("impressions", "conversions")
        },
        "attribution": {"model": "uniform", "click_lookback": "2d", "view_lookback": "2d"},
        "privacy": {"rho": 1.0, "mechanism": "adsbpc"},
        "checks": {"min_match_rate": 0, "max_quarantine_rate": 1},
        "engine": {"options": {"threads": 1}},
    }
    for section, keys in CHANGES[change].items():
        content[section] |= keys
    directory.mkdir(parents=True, exist_ok=True)
    return CampaignSpec.model_validate({**content, "directory": directory})
