"""One benchmark case a function: seconds of a floor, mostly a plain scan, and of the work itself.

Each case runs in a process of its own, so that its peak memory is its own too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from adsbpc.campaign import Campaign, attribute
from adsbpc.campaign.fits import fit_to_events
from adsbpc.campaign.together import Asked, releasing_together
from adsbpc.contributions import EngineContributions
from adsbpc.engines import Engine, Relation, open_engine
from adsbpc.events import read_events
from adsbpc.model import UNITS_PER_CONVERSION, CampaignSpec, Layout
from adsbpc.privacy import SeededRandomness
from adsbpc.workloads import MaxVariance, sliding_windows
from bench.data import CONTRIBUTION_PUBLISHERS, DAYS, LOOKBACK_DAYS, PUBLISHERS, SLOTS
from bench.long_year import HOURS, hour_of_a_year, plan_of_hours
from bench.measured import Measured, peak_mib, seconds_of
from bench.released import BY_COUNTRY, release_every_slot, released_spec

# Slots that are released from events.
_RELEASED = 4


def _scan_seconds(engine: Engine, relations: Sequence[object]) -> float:
    """Read every value of every column once; the second of two runs, when files are cached."""

    def scan_all() -> None:
        for relation in relations:
            scan(engine, relation)

    scan_all()
    return seconds_of(scan_all)


def scan(engine: Engine, relation: object) -> None:
    engine.rows("scan", f"SELECT bit_xor(hash(COLUMNS(*))) FROM {relation}")


def _measured(floor: float, seconds: float) -> Measured:
    return Measured.of(floor, seconds, peak_mib())


def events_content(
    data: Path, model: str, more: dict[str, Any] | None = None, events: str = "events"
) -> dict[str, Any]:
    """What a campaign file over the made-up events says."""
    return {
        "campaign": {
            "name": "bench",
            "advertiser": "Ad-1",
            "start": "2026-03-01",
            "slots": SLOTS,
            "publishers": [f"P-{k}" for k in range(PUBLISHERS - 2)],
        },
        "events": {
            name: str(data / events / f"{name}.parquet") for name in ("impressions", "conversions")
        },
        "attribution": {
            "model": model,
            "click_lookback": f"{LOOKBACK_DAYS}d",
            "view_lookback": f"{LOOKBACK_DAYS}d",
            **(more or {}),
        },
        "privacy": {"rho": 1.0},
    }


def _events_spec(data: Path, model: str, more: dict[str, Any] | None = None) -> CampaignSpec:
    return CampaignSpec.model_validate(events_content(data, model, more))


def _open(memory: str) -> Engine:
    return open_engine("duckdb", {"threads": 2, "memory_limit": memory})


def _event_files(data: Path) -> list[str]:
    return [f"'{data / 'events' / name}.parquet'" for name in ("impressions", "conversions")]


def _attribution(data: Path, model: str) -> Measured:
    """From opened and checked events to a table of credits; rows are read, parsed and checked
    from the files again in this step, because impressions stay a view."""
    engine = _open("1GiB")
    floor = _scan_seconds(engine, _event_files(data))
    credits = attribute(_events_spec(data, model), engine).credits
    return _measured(
        floor, seconds_of(lambda: engine.table("credits_made", f"SELECT * FROM {credits}"))
    )


def attribution_last_touch(data: Path) -> Measured:
    return _attribution(data, "last_touch")


def attribution_uniform(data: Path) -> Measured:
    return _attribution(data, "uniform")


def events_checked(data: Path) -> Measured:
    """Opening and checking alone, with the search for repeated event ids in both tables."""
    engine = _open("1GiB")
    floor = _scan_seconds(engine, _event_files(data))
    return _measured(floor, seconds_of(lambda: attribute(_events_spec(data, "last_touch"), engine)))


def _fit(data: Path, model: str) -> Measured:
    """From opened and checked events to public parameters: a million journeys, all slots."""
    engine = _open("1GiB")
    floor = _scan_seconds(engine, _event_files(data))
    spec = _events_spec(data, model, {"fit": {"rho": 0.05, "slots": SLOTS - 1}})
    events = read_events(spec, engine)
    return _measured(floor, seconds_of(lambda: fit_to_events(spec, events, SeededRandomness(0))))


def fit_of_shapley(data: Path) -> Measured:
    return _fit(data, "shapley")


def fit_of_second_order_probabilities(data: Path) -> Measured:
    return _fit(data, "probabilistic")


def fit_of_a_markov_chain(data: Path) -> Measured:
    return _fit(data, "markov")


def rows_by_slot(data: Path, made: str = "contributions") -> Relation:
    return Relation.of(
        "SELECT user_id, CAST(slot AS INT) AS slot, time_us, conversion_number,"
        " publisher_index AS cell_index, weight"
        f" FROM read_parquet('{data}/{made}/*/*.parquet', hive_partitioning = true)",
    )


def _contributions(data: Path, memory: str) -> Measured:
    """For every slot a histogram of users and the totals per cell under a bound."""
    engine = _open(memory)
    relation = rows_by_slot(data)
    floor = _scan_seconds(engine, [relation])
    layout = Layout.of_publishers([f"P-{k}" for k in range(CONTRIBUTION_PUBLISHERS)])
    contributions = EngineContributions(engine, relation, SLOTS, layout)
    edges = [k * UNITS_PER_CONVERSION for k in range(1, 11)]

    def every_slot() -> None:
        for slot in range(1, SLOTS + 1):
            contributions.histogram(slot, edges)
            contributions.totals(slot, 4 * UNITS_PER_CONVERSION)

    return _measured(floor, seconds_of(every_slot))


def contributions_by_slot(data: Path) -> Measured:
    return _contributions(data, "4GiB")


def contributions_by_slot_in_1gib(data: Path) -> Measured:
    return _contributions(data, "1GiB")


def personal_budgets_by_slot(data: Path) -> Measured:
    """For every slot everybody's need, what the filter keeps, books that are written and named in a
    ledger. They stay for the audit."""
    engine = _open("3GiB")
    relation = rows_by_slot(data)
    floor = _scan_seconds(engine, [relation])
    return _measured(floor, seconds_of(lambda: release_every_slot(data, engine, relation)))


def personal_budgets_by_day_of_a_year(data: Path) -> Measured:
    """As many contributions in as many slots as a year has days; the floor is the month."""
    engine = _open("3GiB")
    floor = seconds_of(lambda: release_every_slot(data, engine, rows_by_slot(data)))
    year, relation = data / "of-a-year", rows_by_slot(data, "year")
    return _measured(floor, seconds_of(lambda: release_every_slot(year, engine, relation, DAYS)))


def publishers_by_country_by_slot(data: Path) -> Measured:
    """The same for publishers and countries, with sums of their own for everything and publishers:
    a thousand cells, in which 50 million conversions fall."""
    engine = _open("3GiB")
    relation = rows_by_slot(data)
    floor = _scan_seconds(engine, [relation])
    work = partial(release_every_slot, data, engine, relation, by_country=True)
    return _measured(floor, seconds_of(work))


def release_of_a_thousand_cells(data: Path) -> Measured:
    """Slots from events to the ledger, by publishers and countries; the floor is the same campaign
    by publishers alone, without sums of their own."""
    return _measured(_release_seconds(data, {}), _release_seconds(data, BY_COUNTRY))


def _release_seconds(data: Path, measures: dict[str, Any]) -> float:
    with TemporaryDirectory(dir=data) as directory:
        content = events_content(data, "last_touch") | measures
        campaign = Campaign(CampaignSpec.model_validate({**content, "directory": Path(directory)}))
        # The first slot plans the campaign and shows its events, whatever it counts.
        campaign.release(1)
        return seconds_of(lambda: [campaign.release(slot) for slot in range(2, _RELEASED + 1)])


def two_hundred_campaigns(data: Path) -> Measured:
    """A morning of as many campaigns as there are advertisers, over the same impressions and
    conversions, in one ledger; the floor is the same morning of one of them alone."""
    with TemporaryDirectory(dir=data) as directory:
        count = int((data / "market" / "advertisers").read_text())
        together = [_of_the_market(data, Path(directory), k) for k in range(count)]
        alone = [_of_the_market(data, Path(directory) / "alone", 0)]
        # The first slots plan the campaigns, whatever they read.
        _release_slot(alone, 1)
        _release_slot(together, 1)
        floor = seconds_of(lambda: _release_slot(alone, 2))
        return _measured(floor, seconds_of(lambda: _release_slot(together, 2)))


def _of_the_market(data: Path, directory: Path, number: int) -> Campaign:
    content = events_content(data, "last_touch", events="market")
    named = {"name": f"bench-{number}", "scope": f"of-{number}", "advertiser": f"Ad-{number}"}
    content["campaign"] |= named
    content["engine"] = {"options": {"threads": 2, "memory_limit": "4GiB"}}
    content["checks"] = {"min_match_rate": 0, "max_quarantine_rate": 1}
    directory.mkdir(exist_ok=True)
    return Campaign(CampaignSpec.model_validate({**content, "directory": directory}))


def _release_slot(campaigns: Sequence[Campaign], slot: int) -> None:
    for outcome in releasing_together(Asked(campaign, slot) for campaign in campaigns):
        if outcome.failure is not None:
            raise outcome.failure


def audit(data: Path) -> Measured:
    """Everything that those books and that ledger claim, recomputed; the floor is a scan of the
    contributions that went into them."""
    engine = _open("3GiB")
    relation = rows_by_slot(data)
    floor = _scan_seconds(engine, [relation])
    campaign = Campaign(released_spec(data))
    if campaign.status().released < SLOTS:
        release_every_slot(data, engine, relation)
    engine.close()
    findings = []
    measured = _measured(floor, seconds_of(lambda: findings.append(campaign.audit())))
    if not findings[0].held:
        raise RuntimeError(f"the audit fails: {findings[0].broken}")
    return measured


def scales_of_a_year_of_hours(data: Path) -> Measured:
    """Least maximum variance of a week's sliding window; the floor is a quarter of the year, so
    that a ratio of 4 is linear growth."""

    def solve(hours: int) -> None:
        MaxVariance().scales(sliding_windows(hours, 168), 1.0)

    solve(2_190)
    return _measured(seconds_of(lambda: solve(2_190)), seconds_of(lambda: solve(8_760)))


def plan_of_a_year_of_hours(data: Path) -> Measured:
    """A strategy of decaying powers for running totals of personal budgets; the floor is that of a
    quarter of the year."""
    return _measured(
        seconds_of(lambda: plan_of_hours(2_196)), seconds_of(lambda: plan_of_hours(HOURS))
    )


def hour_8000_of_a_year(data: Path) -> Measured:
    """What hour 8,000 costs more than hour 100 under personal budgets, in seconds of all cores,
    where a million people convert 20 million times in the year; the floor is a plain pass over the
    books, so that a ratio of 1 is one of them."""
    engine = _open("2GiB")
    data.mkdir(parents=True, exist_ok=True)
    early, late = (hour_of_a_year(engine, data, hour) for hour in (100, 8_000))
    return _measured(late.plain_pass, late.seconds - early.seconds)


CASES: dict[str, Callable[[Path], Measured]] = {
    case.__name__: case
    for case in (
        attribution_last_touch,
        attribution_uniform,
        events_checked,
        fit_of_shapley,
        fit_of_second_order_probabilities,
        fit_of_a_markov_chain,
        contributions_by_slot,
        contributions_by_slot_in_1gib,
        personal_budgets_by_slot,
        personal_budgets_by_day_of_a_year,
        publishers_by_country_by_slot,
        release_of_a_thousand_cells,
        two_hundred_campaigns,
        audit,
        scales_of_a_year_of_hours,
        plan_of_a_year_of_hours,
        hour_8000_of_a_year,
    )
}
