"""Campaigns without an end: budgets renew when and as the file says, and never otherwise."""

from __future__ import annotations

import json
from datetime import timedelta
from math import hypot
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from adsbpc.campaign import Campaign
from adsbpc.campaign.series import Series
from adsbpc.cli.main import app
from adsbpc.errors import AdsbpcError, SpecError, TermsError
from adsbpc.ledger import Ledger
from adsbpc.model import PICO_RHO, StoredPlan
from adsbpc.privacy.strategies import MOST_SLOTS
from tests.campaign.files import ADSBPC, FIXED, PERSONAL, edit, write_campaign

BOUND = f'{ADSBPC}\n[privacy.adsbpc]\nbounds = "fixed"\nbound = 2'
END = "2026-05-31"


def write_series(directory: Path, privacy: str = BOUND, renewal: str = "quarter") -> Path:
    """Months from January on; in March, April, May and June everybody does the same."""
    file = write_campaign(directory, slots=3, privacy=privacy)
    edit(file, "slots = 3", f'slots = "open"\nrenewal = "{renewal}"')
    edit(file, 'slot = "1d"', 'slot = "1mo"')
    edit(file, "start = 2026-03-01", "start = 2026-01-01")
    for name in ("impressions", "conversions"):
        path = directory / f"{name}.parquet"
        table = pq.read_table(path)
        place = table.schema.get_field_index("timestamp")
        months = []
        for later in (0, 31, 61, 92):
            moved = pc.add(table["timestamp"], pa.scalar(timedelta(days=later)))
            months.append(table.set_column(place, "timestamp", moved))
        pq.write_table(pa.concat_tables(months), path)
    return file


def series_of(file: Path) -> Series:
    series = Series.load(file)
    assert series is not None
    return series


def released(file: Path, through: str = END) -> list[tuple[str, int, bool]]:
    return [
        (campaign.spec.campaign.name, one.release.slot, one.replayed)
        for campaign, one in series_of(file).releasing(through)
    ]


def spent(file: Path, scope: str) -> int:
    return Ledger("ledger.sqlite", file.parent).spent(scope)


def test_periods_are_released_in_order_each_from_a_budget_of_its_own(tmp_path: Path) -> None:
    file = write_series(tmp_path)
    first = [("spring@2026-Q1", slot, False) for slot in (1, 2, 3)]
    assert released(file) == [*first, ("spring@2026-Q2", 1, False), ("spring@2026-Q2", 2, False)]
    # A complete period is not gone through again.
    again = [("spring@2026-Q2", 1, True), ("spring@2026-Q2", 2, True)]
    assert released(file) == again
    assert spent(file, "acme@2026-Q1") <= PICO_RHO
    assert 0 < spent(file, "acme@2026-Q2") < spent(file, "acme@2026-Q1")
    assert spent(file, "acme") == 0
    for period in ("2026-Q1", "2026-Q2"):
        assert Campaign.load(f"{file}@{period}").audit().held


def test_a_period_waits_for_the_one_before(tmp_path: Path) -> None:
    file = write_series(tmp_path)
    assert [name for name, _, _ in released(file, "2026-02-28")] == ["spring@2026-Q1"] * 2
    series_of(file).first.close()
    assert released(file) == []
    assert spent(file, "acme@2026-Q2") == 0


@pytest.mark.parametrize("privacy", [BOUND, FIXED], ids=["adsbpc", "personal-budget"])
def test_a_report_runs_on(tmp_path: Path, privacy: str) -> None:
    """Totals since the start are the sums of what periods have, and so are ranges across them."""
    file = write_series(tmp_path, privacy)
    released(file)
    joined = series_of(file).report()
    parts = [Campaign.load(f"{file}@{period}").report() for period in ("2026-Q1", "2026-Q2")]
    assert joined.spec.campaign.name == "spring"
    assert [release.slot for release in joined.releases] == [1, 2, 3, 4, 5]
    across = joined.between(3, 5)
    own = parts[0].between(3, 3), parts[1].between(1, 2)
    for cell, *both in zip(across, *own, strict=True):
        assert [each.keys for each in both] == [cell.keys] * 2
        if privacy == BOUND:
            assert cell.estimate == pytest.approx(sum(each.estimate for each in both))
            wanted = hypot(*(each.standard_error for each in both))
            assert cell.standard_error == pytest.approx(wanted)
    # What was cut is counted together, and weighed together: without it sums are exact.
    noise = joined.noise_of
    assert noise is not None
    whole = noise("conversions", (0, 5))
    each_noise = [
        part.noise_of("conversions", (0, len(part.releases))) for part in parts if part.noise_of
    ]
    together = [one.of_sum(one.together((0, 1), (0, 1)), 1, 0) for one in (whole, *each_noise)]
    assert together[0] == pytest.approx(sum(together[1:]))
    last = joined.releases[-1].measures[0]
    assert last.running_totals[0].span == (1, 5)
    for total, *of_parts in zip(
        joined.newest_totals(joined.measure),
        *(part.newest_totals(part.measure) for part in parts),
        strict=True,
    ):
        if privacy == BOUND:
            assert total.estimate == pytest.approx(sum(each.estimate for each in of_parts))
            wanted = hypot(*(each.standard_error for each in of_parts))
            assert total.standard_error == pytest.approx(wanted)
    assert {cell.query for cell in joined.rows()} == {f"prefix 1..{slot}" for slot in range(1, 6)}
    assert "2026-Q2" in joined.to_html()
    assert "together rho = 2" in joined.to_html().replace("\n", " ")


def test_noise_of_different_periods_is_not_correlated(tmp_path: Path) -> None:
    file = write_series(tmp_path)
    released(file)
    noise = series_of(file).report().noise_of
    assert noise is not None
    assert sum(noise("conversions", (0, 3, 5)).together((0, 1), (1, 2))) == 0


def test_the_next_period_starts_from_what_the_last_has_shown(tmp_path: Path) -> None:
    file = write_series(tmp_path, PERSONAL)
    released(file)
    plans: list[StoredPlan] = []
    for period in ("2026-Q1", "2026-Q2"):
        record = Ledger("ledger.sqlite", tmp_path).campaign(f"acme@{period}", f"spring@{period}")
        assert record is not None
        plans.append(record.plan)
    assert plans[0].start is None
    assert plans[1].start is not None


def test_a_period_of_hours_follows_another(tmp_path: Path) -> None:
    """Long plans start from no earlier campaign, and a period before is not one that was named."""
    # Of all strategies, this one is planned at once.
    identity = f'{PERSONAL}\n[privacy.personal_budget]\nstrategy = "identity"'
    file = write_series(tmp_path, identity)
    edit(file, 'slot = "1mo"', 'slot = "1h"')
    for period in ("2026-Q1", "2026-Q2"):
        campaign = Campaign.load(f"{file}@{period}")
        assert campaign.spec.campaign.slots > MOST_SLOTS
        assert len(campaign.release(1)) == 1


def test_nothing_renews_silently(tmp_path: Path) -> None:
    """Another renewal, or none, would be another budget for the same people."""
    file = write_series(tmp_path)
    released(file, "2026-01-31")
    edit(file, 'renewal = "quarter"', 'renewal = "month"')
    with pytest.raises(TermsError, match=r"would renew every month, .* they renew every quarter"):
        released(file)
    edit(file, 'slots = "open"\nrenewal = "month"', "slots = 5")
    edit(file, 'name = "spring"', 'name = "summer"')
    with pytest.raises(TermsError, match="would never renew"):
        Campaign.load(file).release(1)
    assert spent(file, "acme") == spent(file, "acme@2026-01") == 0


def test_a_scope_that_never_renews_stays_so(tmp_path: Path) -> None:
    file = write_series(tmp_path / "open")
    fixed = write_campaign(tmp_path / "open")
    Campaign.load(fixed).release(1)
    file = write_series(tmp_path / "open")
    with pytest.raises(TermsError, match="would renew every quarter, and in scope 'acme'"):
        released(file)


def test_another_name_shares_the_budget_of_the_period(tmp_path: Path) -> None:
    file = write_series(tmp_path)
    released(file, "2026-01-31")
    edit(file, 'name = "spring"', 'name = "summer"')
    with pytest.raises(AdsbpcError, match="has no room for campaign 'summer@2026-Q1'"):
        released(file)


def test_a_campaign_with_an_end_spends_the_period_that_it_lies_in(tmp_path: Path) -> None:
    """What it released of April would otherwise be paid for in March."""
    file = write_campaign(tmp_path, slots=40)
    edit(file, 'scope = "acme"', 'scope = "acme@2026-03"')
    for act in (Campaign.load(file).plan, Campaign.load(file).release):
        with pytest.raises(SpecError, match="is for 2026-03-01 to 2026-03-31, and the campaign"):
            act()
    assert spent(file, "acme@2026-03") == 0
    edit(file, "slots = 40", "slots = 31")
    Campaign.load(file).release(1)
    assert spent(file, "acme@2026-03") > 0


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('renewal = "quarter"', "", r"\[campaign\] renewal = missing: a campaign with slots"),
        ('renewal = "quarter"', 'renewal = "week"', "expected month, quarter or year"),
        ('slot = "1mo"', 'slot = "1w"', "weeks"),
        ("start = 2026-01-01", 'start = "soon"', "expected a day"),
        ("[privacy]", "[lift]\n[privacy]", "a trial has an end"),
        ('slots = "open"', "slots = 5", 'belongs to slots = "open"'),
    ],
)
def test_what_does_not_go_together_is_told(
    tmp_path: Path, before: str, after: str, message: str
) -> None:
    file = write_series(tmp_path)
    edit(file, before, after)

    def load() -> Campaign:
        series = Series.load(file)
        return Campaign.load(file) if series is None else series.first

    with pytest.raises(SpecError, match=message):
        load()


@pytest.mark.parametrize(
    ("period", "message"),
    [
        ("", r"the campaign has no end, .* Say which: .*@2026-Q1"),
        ("@2025-Q4", "the campaign has no period 2025-Q4"),
        ("@2026-01", "the campaign has no period 2026-01"),
        ("@soon", "no such campaign file"),
    ],
)
def test_a_period_has_to_be_there(tmp_path: Path, period: str, message: str) -> None:
    file = write_series(tmp_path)
    with pytest.raises(SpecError, match=message):
        Campaign.load(f"{file}{period}")


def test_a_file_with_an_end_has_no_periods(tmp_path: Path) -> None:
    file = write_campaign(tmp_path)
    with pytest.raises(SpecError, match="the file has an end, and no periods"):
        Campaign.load(f"{file}@2026-Q1")


def test_commands(tmp_path: Path) -> None:
    file, runner = str(write_series(tmp_path)), CliRunner()

    def run(*words: str, code: int = 0) -> str:
        done = runner.invoke(app, list(words))
        assert done.exit_code == code, (done.output, done.exception)
        return done.stdout

    lines = run("release", file, "--through", END, "--json").splitlines()
    assert [json.loads(line)["slot"] for line in lines] == [1, 2, 3, 1, 2]
    assert "2 slots had been released before" in run("release", file, "--through", END)
    found = json.loads(run("status", file, "--verify", "--json"))
    assert found["renewal"] == "quarter"
    assert [each["released"] for each in found["periods"]][:2] == [3, 2]
    assert "2026-Q2" in run("status", file)
    assert "after month 5 of 6" in " ".join(run("report", file).split())
    assert json.loads(run("report", file, "--json"))
    assert "after month 3 of 3" in " ".join(run("report", f"{file}@2026-Q1").split())
    page = tmp_path / "page.html"
    run("report", f"{file}@2026-Q1", "--out", str(page))
    assert page.exists()
    run("release", file, "--slot", "1", code=1)
