"""The first half of a release: from events to credits and contributions, on one engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from adsbpc.attribution import credits_of, journeys_of
from adsbpc.campaign import book_seals, release_folder
from adsbpc.campaign.declared_fits import declared_files
from adsbpc.campaign.fits import model_at
from adsbpc.contributions import (
    Books,
    EngineAccounts,
    EngineContributions,
    contributions_sql,
)
from adsbpc.contributions.long_accounts import LongEngineAccounts
from adsbpc.contributions.long_books import LongBooks
from adsbpc.engines import Engine, Relation, quote_name, quote_text
from adsbpc.errors import SourceError, SpecError
from adsbpc.events import (
    EventTables,
    OpenedSources,
    holdout_source,
    listed_index,
    public_list,
    read_events,
    some_slots,
    source_files,
    with_arms,
)
from adsbpc.model import UNITS_PER_CONVERSION, CampaignSpec, Fit, Layout, Measure
from adsbpc.model.grid import OTHER_PUBLISHER
from adsbpc.model.periods import file_and_period
from adsbpc.model.publisher_list import publisher_file
from adsbpc.model.toml import read_toml
from adsbpc.privacy.decays import DecayingStrategy

# Credits are written as multiples of this part, rounded down: their sums are exact in floating
# point, so the credits of a conversion never add up to more than 1.
_CREDIT_PARTS = 2**40


@dataclass(frozen=True)
class Attributed:
    """Credits, and the events that they are of."""

    spec: CampaignSpec
    events: EventTables
    credits: Relation


def attribute(
    spec: CampaignSpec,
    engine: Engine,
    slot: int | range | None = None,
    fit: Fit | None = None,
    opened: OpenedSources | None = None,
    *,
    kept: bool = False,
) -> Attributed:
    """Read the events and credit them: of all slots, of one or of some. Slots that the fit does
    not serve, or all of them where there is none yet, are attributed with the fallback. Credits are
    `kept` for whoever looks at them more than once; sources were `opened` before, if several
    campaigns share them."""
    events = read_events(spec, engine, slot, opened=opened)
    journeys = journeys_of(spec.attribution)
    slots = range(1, spec.campaign.slots + 1) if slot is None else some_slots(slot)
    first_model, last_model = (model_at(spec, each, fit)[1] for each in (slots[0], slots[-1]))
    credits = credits_of(last_model, journeys, events)
    if first_model != last_model:
        assert spec.attribution.fit is not None
        fitted_from = spec.attribution.fit.slots
        before = credits_of(first_model, journeys, events)
        credits = Relation.of(
            f"""SELECT * FROM {before} WHERE slot <= {fitted_from}
UNION ALL
SELECT * FROM {credits} WHERE slot > {fitted_from}""",
        )
    attributed = [each for each in spec.measures if not each.of_impressions and not each.by_arm]
    if kept or (slot is not None and len(attributed) > 1):
        # Attributed once for all measures.
        credits = engine.table("credits", f"SELECT * FROM {credits}")
    return Attributed(spec, events, credits)


def credited_for(spec: CampaignSpec, shared: Attributed) -> Attributed:
    """The same events and credits for another campaign, whose public list of publishers may be
    another."""
    if spec.campaign.publishers == shared.spec.campaign.publishers:
        return replace(shared, spec=spec)
    events = shared.events
    further = "".join(
        f", credited.{name}"
        for name in (*events.conversion_dimensions, *events.impression_dimensions)
    )
    credits = Relation.of(f"""
SELECT credited.user_id, credited.conversion_number, credited.conversion_id, credited.slot,
  credited.time_us, credited.value, credited.publisher_id,
  {listed_index(spec, "public_list")}{further}, credited.credit_units
FROM {shared.credits} AS credited
LEFT JOIN {public_list(spec)} ON public_list.publisher_id = credited.publisher_id""")
    return replace(shared, spec=spec, credits=credits)


@contextmanager
def contributed(attributed: Attributed, measure: Measure) -> Iterator[EngineContributions]:
    """What everybody contributes to a measure, on the integer grid, for bounds."""
    spec, engine = attributed.spec, attributed.events.engine
    with engine.scratch():
        weights = _on_the_grid(attributed, measure)
        yield EngineContributions(engine, weights, spec.campaign.slots, measure.layout)


@contextmanager
def accounted(
    attributed: Attributed, measure: Measure, layout: Layout, books: Books
) -> Iterator[EngineAccounts]:
    """What everybody contributes to a measure, with books, for personal budgets; in the cells of
    its layout, or of the same taken apart."""
    spec, engine = attributed.spec, attributed.events.engine
    with engine.scratch():
        weights = _on_the_grid(attributed, measure)
        yield EngineAccounts(engine, weights, spec.campaign.slots, layout, books)


@contextmanager
def long_accounted(
    attributed: Attributed,
    measure: Measure,
    layout: Layout,
    books: LongBooks,
    strategy: DecayingStrategy,
) -> Iterator[LongEngineAccounts]:
    """The same with the books of a long campaign."""
    engine = attributed.events.engine
    with engine.scratch():
        weights = _on_the_grid(attributed, measure)
        yield LongEngineAccounts(engine, weights, layout, books, strategy)


def _on_the_grid(attributed: Attributed, measure: Measure) -> Relation:
    columns, events = attributed.spec.index_columns, attributed.events
    rows = events.exposures if measure.of_impressions else attributed.credits
    if measure.by_arm and not measure.of_impressions:
        so_far = events.history if measure.is_squared else None
        rows = _all_conversions(so_far or events.arrivals)
    if measure.tells_arms:
        rows = with_arms(attributed.spec, events, rows)
    return events.engine.table("contributions", contributions_sql(measure, columns, rows))


def _all_conversions(conversions: Relation) -> Relation:
    """Whole conversions, touched or not."""
    return Relation.of(
        f"SELECT counted.*, CAST({UNITS_PER_CONVERSION} AS BIGINT) AS credit_units"
        f" FROM {conversions} AS counted"
    )


def write_credits(attributed: Attributed, path: Path) -> int:
    """Write credits before any privacy to a Parquet file and return the number of rows."""
    engine, spec = attributed.events.engine, attributed.spec
    values = "".join(
        f",\n  {_value_at(spec.index_columns[name], section.values)} AS {quote_name(name)}"
        for name, section in spec.dimensions.items()
    )
    engine.write_parquet(
        "write credits",
        f"""SELECT user_id, conversion_id, slot, publisher_id,
  CAST(whole_div(credit_units * {_CREDIT_PARTS}, {UNITS_PER_CONVERSION}) AS DOUBLE)
    / {_CREDIT_PARTS} AS credit{values}
FROM {attributed.credits}""",
        path,
    )
    written = engine.read_files("written_credits", "parquet", [str(path)], None, ["credit"])
    ((count,),) = engine.rows("count credits", f"SELECT count(*) FROM {written}")
    return int(count)


def _value_at(column: str, values: tuple[str, ...]) -> str:
    """The value that stands at a place of a public list."""
    branches = " ".join(f"WHEN {k} THEN {quote_text(value)}" for k, value in enumerate(values))
    return f"CASE {column} {branches} ELSE {quote_text(OTHER_PUBLISHER)} END"


def check_targets(targets: list[Path], spec: CampaignSpec, campaign_file: Path) -> None:
    """Refuse to write where something would be lost, before any work is done."""
    campaign_file, _ = file_and_period(campaign_file)
    kept = {campaign_file.resolve()}
    with suppress(SourceError):
        kept |= source_files(spec)
    fit = spec.attribution.fit
    if fit is not None and fit.holdout is not None:
        with suppress(SourceError):
            kept |= {Path(file).resolve() for file in holdout_source(spec, fit.holdout).files}
    kept |= {file.resolve() for file in declared_files(spec)}
    if spec.lift is not None:
        named = spec.lift.key_file or spec.lift.table or ""
        kept.add((spec.directory / named).resolve())
    listed = publisher_file({**read_toml(campaign_file), "directory": spec.directory})
    if listed is not None:
        kept.add(listed.resolve())
    if spec.ledger.witness is not None:
        kept.add((spec.directory / spec.ledger.witness).resolve())
    ledger = (spec.directory / spec.ledger.location).resolve()
    home = release_folder.home_of(spec)
    kept_folders = [
        (home / folder).resolve()
        for folder in (release_folder.FOLDER, book_seals.FOLDER)
        if isinstance(home, Path)
    ]
    for position, target in enumerate(targets):
        if not target.parent.is_dir():
            raise SpecError(f"{target}: the folder {target.parent} does not exist. Create it first")
        if not target.name or target.is_dir():
            raise SpecError(f"{target}: is a folder. Give the name of a file")
        real = target.resolve()
        if real.parent == ledger.parent and real.name.startswith(ledger.name):
            raise SpecError(f"{target}: is the ledger, which must not be lost. Give another name")
        inside = any(real.is_relative_to(folder) for folder in kept_folders)
        if real in kept or real.suffix == ".toml" or inside:
            raise SpecError(
                f"{target}: is a file of events, a campaign file, a list of publishers, a release, "
                "a book of accounts, a fit that the campaign reads, or says who is in which arm. "
                "Give another name"
            )
        if target in targets[:position]:
            raise SpecError(f"{target}: is asked for twice. Give two names")
