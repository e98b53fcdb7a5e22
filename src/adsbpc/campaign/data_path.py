"""The first half of a release: from events to credits and contributions, on one engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from adsbpc.attribution import AttributionModel, FittedModel, credits_sql, journeys_of
from adsbpc.campaign import books as book_folder
from adsbpc.campaign import release_folder
from adsbpc.campaign.declared_fits import declared_files
from adsbpc.campaign.fits import model_at
from adsbpc.contributions import (
    Books,
    EngineAccounts,
    EngineContributions,
    contributions_sql,
)
from adsbpc.engines import Engine
from adsbpc.errors import SourceError, SpecError
from adsbpc.events import EventTables, holdout_source, read_events, source_files
from adsbpc.model import UNITS_PER_CONVERSION, CampaignSpec, Fit

# Credits are written as multiples of this part, rounded down: their sums are exact in floating
# point, so the credits of a conversion never add up to more than 1.
_CREDIT_PARTS = 2**40

_TABLES = count(1)


def attribute(
    spec: CampaignSpec, engine: Engine, slot: int | None = None, fit: Fit | None = None
) -> EventTables:
    """Read the events and define the view `credits`: of all slots, or of one. Slots that the fit
    does not serve, or all of them where there is none yet, are attributed with the fallback."""
    events = read_events(spec, engine, slot)
    if slot is not None:
        engine.view("credits", _credits_of(spec, events, model_at(spec, slot, fit)[1]))
        return events
    last = spec.campaign.slots
    first_model, last_model = (model_at(spec, each, fit)[1] for each in (1, last))
    if first_model == last_model:
        engine.view("credits", _credits_of(spec, events, last_model))
        return events
    assert spec.attribution.fit is not None
    fitted_from = spec.attribution.fit.slots
    engine.view("credits_before_fit", _credits_of(spec, events, first_model))
    engine.view("credits_after_fit", _credits_of(spec, events, last_model))
    engine.view(
        "credits",
        f"""SELECT * FROM credits_before_fit WHERE slot <= {fitted_from}
UNION ALL
SELECT * FROM credits_after_fit WHERE slot > {fitted_from}""",
    )
    return events


def _credits_of(spec: CampaignSpec, events: EventTables, model: AttributionModel) -> str:
    if isinstance(model, FittedModel):
        for name, columns in model.tables().items():
            events.engine.numbers(name, columns)
    return credits_sql(model, journeys_of(spec.attribution), events.publisher_count)


@contextmanager
def _on_the_grid(spec: CampaignSpec, engine: Engine) -> Iterator[str]:
    """A table of the view `credits` on the integer grid, which is dropped at the end."""
    table = f"contributions_{next(_TABLES)}"
    engine.table(table, contributions_sql(spec, "credits"))
    try:
        yield table
    finally:
        engine.drop(table)


@contextmanager
def contributed(spec: CampaignSpec, engine: Engine) -> Iterator[EngineContributions]:
    """What everybody contributes, for bounds."""
    with _on_the_grid(spec, engine) as table:
        contributions = EngineContributions(engine, table, spec.campaign.slots, spec.layout)
        try:
            yield contributions
        finally:
            contributions.close()


@contextmanager
def accounted(spec: CampaignSpec, engine: Engine, books: Books) -> Iterator[EngineAccounts]:
    """What everybody contributes, with books, for personal budgets."""
    with _on_the_grid(spec, engine) as table:
        accounts = EngineAccounts(engine, table, spec.campaign.slots, spec.layout, books)
        try:
            yield accounts
        finally:
            accounts.close()


def write_credits(engine: Engine, path: Path) -> int:
    """Write credits before any privacy to a Parquet file and return the number of rows."""
    engine.write_parquet(
        "write credits",
        f"""SELECT user_id, conversion_id, slot, publisher_id,
  CAST(whole_div(credit_units * {_CREDIT_PARTS}, {UNITS_PER_CONVERSION}) AS DOUBLE)
    / {_CREDIT_PARTS} AS credit
FROM credits""",
        path,
    )
    engine.read_files("written_credits", "parquet", [str(path)], None, ["credit"])
    ((count,),) = engine.rows("count credits", "SELECT count(*) FROM written_credits")
    return int(count)


def check_targets(targets: list[Path], spec: CampaignSpec, campaign_file: Path) -> None:
    """Refuse to write where something would be lost, before any work is done."""
    kept = {campaign_file.resolve()}
    with suppress(SourceError):
        kept |= source_files(spec)
    fit = spec.attribution.fit
    if fit is not None and fit.holdout is not None:
        with suppress(SourceError):
            kept |= {Path(file).resolve() for file in holdout_source(spec, fit.holdout).files}
    kept |= {file.resolve() for file in declared_files(spec)}
    if spec.ledger.witness is not None:
        kept.add((spec.directory / spec.ledger.witness).resolve())
    ledger = (spec.directory / spec.ledger.location).resolve()
    kept_folders = [
        (spec.directory / folder).resolve()
        for folder in (release_folder.FOLDER, book_folder.FOLDER)
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
                f"{target}: is a file of events, a campaign file, a release, a book of accounts or "
                "a fit that the campaign reads. "
                "Give another name"
            )
        if target in targets[:position]:
            raise SpecError(f"{target}: is asked for twice. Give two names")
