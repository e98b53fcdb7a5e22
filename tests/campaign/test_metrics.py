"""Reach, converters, impressions and clicks: what is let in is what happened, to the last unit, and
nobody is counted again, whatever comes late, is repeated or is restored."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from adsbpc import Campaign
from adsbpc.ledger import Ledger
from adsbpc.model import UNITS_PER_CONVERSION as UNIT
from adsbpc.model import CampaignSpec
from tests.campaign.audience import (
    DEVICES,
    PUBLISHERS,
    SLOTS,
    START,
    Audience,
    Seen,
    audience,
    write_audience,
    write_impressions,
)
from tests.campaign.files import ADSBPC, FIXED
from tests.campaign.test_measures import BASE
from tests.effort import first

METRICS = ("reach", "converters", "impressions", "clicks")
VIEWS: tuple[list[tuple[str, ...]], ...] = (
    [()],
    [(publisher,) for publisher in PUBLISHERS],
    list(product(PUBLISHERS, DEVICES)),
)


def kept(file: Path) -> dict[str, list[list[int]]]:
    """What was let in, by measure, slot and cell, from the secret state; nothing may be cut."""
    steps = Ledger("adsbpc-ledger.sqlite", file.parent).steps("acme", "audience")
    found: dict[str, list[list[int]]] = {}
    for step in steps:
        for name, own in step.get("measures", {METRICS[0]: step}).items():
            of_cut = len(own["multipliers"]) - 1
            cells, cut = own["kept"][-1][:-of_cut], own["kept"][-1][-of_cut:]
            assert not any(cut), "somebody was cut: this tests something else"
            found.setdefault(name, []).append([cell // UNIT for cell in cells])
            assert all(cell % UNIT == 0 for cell in cells)
    return found


def expected(made: Audience, metric: str, slots: int = SLOTS) -> list[list[int]]:
    """The same from plain Python: every sum, from everything to the finest cells."""
    keys = [key for view in VIEWS for key in view]
    truth = made.counted(metric)
    return [[truth[slot, key] for key in keys] for slot in range(1, slots + 1)]


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_what_is_let_in_is_what_happened(engine: str, tmp_path: Path) -> None:
    made = audience(60)
    file = write_audience(tmp_path, made, METRICS, engine)
    Campaign.load(file).release()
    found = kept(file)
    for metric in METRICS:
        assert found[metric] == expected(made, metric), metric
    reach = made.counted("reach")
    apart = sum(reach[slot, (publisher,)] for slot in range(1, 5) for publisher in PUBLISHERS)
    together = sum(reach[slot, ()] for slot in range(1, 5))
    assert together < apart, "nobody was met by two publishers: this tests little"


@pytest.mark.slow
@given(st.integers(0, 10_000), st.integers(1, 25))
@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)
def test_random_audiences(tmp_path_factory: pytest.TempPathFactory, seed: int, people: int) -> None:
    made = audience(people, seed)
    file = write_audience(tmp_path_factory.mktemp("audience"), made, ("reach", "converters"))
    Campaign.load(file).release()
    found = kept(file)
    for metric in ("reach", "converters"):
        assert found[metric] == expected(made, metric), metric


def test_what_comes_late_counts_when_it_can_and_nobody_counts_again(tmp_path: Path) -> None:
    """An impression of a slot that is out is in no slot. Whoever it was is reached by the next one,
    and who was counted before is not."""
    made = audience(40)
    file = write_audience(tmp_path, made, ("reach", "impressions"))
    Campaign.load(file).release(through="2026-03-02")
    first = min((each for each in made.seen if each.slot == 1), key=lambda each: each.moment)
    late = [
        Seen("latecomer", START + timedelta(hours=3), "P-1", "phone", "view"),
        Seen("latecomer", START + timedelta(days=2, hours=3), "P-1", "phone", "view"),
        replace(first, kind="view", moment=first.moment + timedelta(seconds=0.5)),
        replace(first, kind="view", moment=START + timedelta(days=3, hours=20)),
    ]
    write_impressions(tmp_path, "late", late)
    Campaign.load(file).release()
    in_time = Audience([*made.seen, late[1], late[3]], made.bought)
    found = kept(file)
    assert found["reach"] == expected(in_time, "reach")
    assert found["impressions"] == expected(in_time, "impressions")


def test_a_run_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New books of a run that was not committed count for nothing: nobody in them was counted."""
    made = audience(40)
    file = write_audience(tmp_path, made, ("reach", "converters"))
    Campaign.load(file).release(1)

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "commit", fail)
        with pytest.raises(KeyboardInterrupt):
            Campaign.load(file).release(2)
    Campaign.load(file).release()
    assert kept(file)["reach"] == expected(made, "reach")


def test_a_restored_ledger_counts_nobody_again(tmp_path: Path) -> None:
    made = audience(40)
    file = write_audience(tmp_path, made, ("reach", "converters"))
    Campaign.load(file).release(1)
    ledger = tmp_path / "adsbpc-ledger.sqlite"
    backup = ledger.read_bytes()
    Campaign.load(file).release(2)
    for mark in (*tmp_path.glob("adsbpc-ledger.sqlite?*"), ledger):
        mark.unlink()
    ledger.write_bytes(backup)
    Campaign.load(file).restore()
    Campaign.load(file).release()
    assert kept(file)["converters"] == expected(made, "converters")
    assert Campaign.load(file).audit().held


@pytest.mark.slow
def test_removing_anybody_leaves_all_others_as_they_are(tmp_path: Path) -> None:
    made = audience(25)
    without = Audience(
        [each for each in made.seen if each.user != "u3"],
        [each for each in made.bought if each.user != "u3"],
    )
    alone = Audience(
        [each for each in made.seen if each.user == "u3"],
        [each for each in made.bought if each.user == "u3"],
    )
    found = []
    for name, part in (("all", made), ("less", without), ("one", alone)):
        file = write_audience(tmp_path / name, part, METRICS)
        Campaign.load(file).release()
        found.append(kept(file))
    everybody, others, one = found
    for metric in METRICS:
        for whole, theirs, mine in zip(everybody[metric], others[metric], one[metric], strict=True):
            assert whole == [a + b for a, b in zip(theirs, mine, strict=True)]


@pytest.mark.parametrize("privacy", first(1, [FIXED, 'adjacency = "substitute"']))
def test_from_files_to_the_report_and_the_audit(privacy: str, tmp_path: Path) -> None:
    """With budgets that cut everybody, and with allowances that follow histograms."""
    made = audience(120)
    file = write_audience(tmp_path, made, ("reach", "conversions", "impressions"), privacy=privacy)
    campaign = Campaign.load(file)
    released = campaign.release()
    findings = campaign.audit()
    assert findings.held, findings.broken
    assert "reach: people counted once" in [claim.name for claim in findings.claims]
    assert [one.text for one in campaign.release()] == [one.text for one in released]
    report = campaign.report(level=0.9999)
    truth = made.counted("reach")
    for cell in report.rows():
        if cell.measure == "reach":
            true = sum(truth[slot, cell.keys] for slot in range(1, cell.slot + 1))
            room = 2 * cell.standard_error
            assert cell.low - room <= true, cell
            # Of people far beyond their budget not everything that is cut is counted.
            assert privacy == FIXED or true <= cell.high + room, cell
    names = {each.name for each in report.ratios}
    assert names == {"conversion rate", "frequency"}
    found = report.to_polars()
    reached = found.filter(found["measure"] == "reach")
    assert reached.group_by("view").len().sort("len").rows() == [
        ("total", 4), ("publisher", 12), ("publisher x device", 24),
    ]  # fmt: skip
    # Both measures of it are by device too.
    assert found.filter(found["measure"] == "frequency")["publisher"].to_list() == [
        "(all)", *PUBLISHERS, *(name for name in PUBLISHERS for _ in range(2)),
    ]  # fmt: skip
    assert "people reached" in campaign.report(measure="reach").to_html()
    # Adjusted, every sum has a series of its own that never falls.
    adjusted = campaign.report(measure="reach", adjusted=True)
    totals = [c.estimate for c in adjusted.running_totals(range(1, 5)) if not c.keys]
    assert totals == sorted(totals)


def test_ranges_count_people_who_are_new(tmp_path: Path) -> None:
    made = audience(60)
    file = write_audience(tmp_path, made, ("reach", "conversions", "clicks"))
    Campaign.load(file).release()
    report = Campaign.load(file).report(measure="reach")
    truth = made.counted("reach")
    for cell in report.between(2, 3):
        true = truth[2, cell.keys] + truth[3, cell.keys]
        assert abs(cell.estimate - true) <= 6 * cell.standard_error
    # What is divided by people is told from the first slot on only.
    assert {each.name for each in report.ratios_between(2, 3)} == {"conversions per click"}
    assert {each.name for each in report.ratios_between(1, 3)} == {
        "conversions per click",
        "conversion rate",
    }
    assert {(each.first_slot, each.slot) for each in report.ratios_between(2, 3)} == {(2, 3)}


def test_impressions_and_clicks_under_bounds(tmp_path: Path) -> None:
    made = audience(120)
    privacy = f'{ADSBPC}\n[privacy.adsbpc]\nbounds = "fixed"\nbound = 12'
    file = write_audience(tmp_path, made, ("impressions", "clicks"), privacy=privacy)
    Campaign.load(file).release()
    assert Campaign.load(file).audit().held
    report = Campaign.load(file).report()
    for metric in ("impressions", "clicks"):
        truth = made.counted(metric)
        for cell in report.newest_totals(
            next(each for each in report.spec.measures if each.name == metric), 2
        ):
            true = sum(truth[slot, cell.keys] for slot in range(1, SLOTS + 1))
            assert abs(cell.estimate - true) <= 6 * cell.standard_error


def of(**sections: Any) -> dict[str, Any]:
    return {**BASE, **sections}


DEVICE = {"device": {"column": "device", "of": "impression", "values": ["phone"]}}
COUNTRY = {"country": {"column": "country", "values": ["DE"]}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (of(campaign={**BASE["campaign"], "metric": "reach"}), r"declare a \[\[measure\]\]"),
        (of(measure=[{"name": "a", "metric": "reech"}]), "reech|conversions"),
        (of(measure=[{"name": "a", "metric": "reach", "weights": [1, 4]}]), "remove weights"),
        (of(measure=[{"name": "a", "metric": "reach", "value_cap": 3.0}]), "value_cap belongs to"),
        (of(measure=[{"name": "a", "metric": "clicks", "currency": "EUR"}]), "belongs to metric"),
        (
            of(measure=[{"name": "a", "metric": "reach", "by": ["publisher", "country"]}],
               dimensions=COUNTRY),
            'is a column of conversions: declare a dimension with of = "impression"',
        ),
        (
            of(measure=[{"name": "a", "metric": "converters"}],
               privacy={"rho": 1.0, "mechanism": "adsbpc"}),
            "AdsBPC keeps none: set mechanism",
        ),
        (
            of(measure=[{"name": "a", "metric": "impressions"}],
               events={**BASE["events"], "impression_kind": "click"}),
            "impressions of kind 'view', and this says that there are none",
        ),
        (
            of(measure=[{"name": "a", "metric": "reach"}],
               attribution={"model": "shapley", "fit": {"rho": 0.05, "slots": 2}}),
            "no measure counts conversions",
        ),
        (
            of(measure=[{"name": "a", "metric": "reach", "by": ["publisher", "device"]}],
               dimensions=DEVICE, attribution={"model": "shapley_path"}),
            "credits publishers, not touches",
        ),
    ],
)  # fmt: skip
def test_metrics_that_make_no_sense(content: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        CampaignSpec.model_validate(content)


def test_bad_rows_count_for_nobody(tmp_path: Path) -> None:
    made = audience(20)
    file = write_audience(tmp_path, made, ("reach", "clicks"))
    table = pq.read_table(tmp_path / "impressions" / "first.parquet")
    assert "tap" in table["kind"].to_pylist(), "there are no bad rows: this tests nothing"
    found = Campaign.load(file).release()
    assert sum(sum(one.quarantined.values()) for one in found) > 0
    assert kept(file)["clicks"] == expected(made, "clicks")
