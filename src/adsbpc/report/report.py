"""The report: what a campaign has released so far, in every form that people and tools read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adsbpc.errors import SourceError, SpecError, no_such_choice
from adsbpc.model import Budget, CampaignSpec, Measure, Measured, Promise, Release
from adsbpc.model.measure_spec import PUBLISHER
from adsbpc.model.spend import Spend
from adsbpc.report.adjustment import Adjustment
from adsbpc.report.balance import Balance, balance_of
from adsbpc.report.bands import Bands
from adsbpc.report.calibration import Calibration, calibrations_of
from adsbpc.report.cells import Cell, Lens
from adsbpc.report.formats import (
    arrow_of,
    columns_of,
    csv_of,
    json_of,
    parquet_of,
    with_lift,
    with_ratios,
    write_whole,
)
from adsbpc.report.lift import Lift, lifts_of
from adsbpc.report.looks import look_slots
from adsbpc.report.model_comparison import Models
from adsbpc.report.ranges import Change, NoiseOf, Span, cells_between, changes_between, weekly_csv
from adsbpc.report.ratios import METRICS, Ratio, divides_any_slots, ratios_of
from adsbpc.report.standings import Standings
from adsbpc.report.tabular import Tabular
from adsbpc.report.timeline import Timeline

if TYPE_CHECKING:
    from rich.table import Table

    from adsbpc.report.notebook import FramedPage

FORMATS = ("html", "csv", "parquet", "json", "mmm")
_LOWEST_LEVEL, _HIGHEST_LEVEL = 0.5, 0.9999


@dataclass(frozen=True)
class Report(Tabular):
    """A snapshot of a campaign after its newest slot.

    `releases` are those of the slots 1..k, in order. `level` is that of the intervals. `adjusted`
    makes the numbers consistent, see `Lens` for what that does to intervals. `measure_name` says
    what the page is about, the first measure if left out; files for machines have all of them.
    `spend` is what publishers were paid, where that is known; `noise_of` says how far running
    totals of a measure are off together. `band` adds to running totals what holds for all slots at
    once.
    """

    spec: CampaignSpec
    releases: tuple[Release, ...]
    promise: Promise
    campaign_budget: Budget
    scope_budget: Budget
    level: float = 0.95
    adjusted: bool = False
    measure_name: str | None = None
    spend: Spend | None = None
    noise_of: NoiseOf | None = None
    band: bool = False

    def __post_init__(self) -> None:
        if not _LOWEST_LEVEL <= self.level <= _HIGHEST_LEVEL:
            raise SpecError(
                f"level = {self.level}: expected a number from {_LOWEST_LEVEL} to "
                f"{_HIGHEST_LEVEL}, for example 0.95"
            )
        name = self.spec.campaign.name
        if not self.releases:
            raise SourceError(
                f"campaign {name!r}",
                "no release",
                "slot 1 at least",
                "Nothing is released yet: run adsbpc release FILE first",
            )
        names = [each.name for each in self.spec.measures]
        if self.measure_name not in (None, *names):
            raise no_such_choice(f"measure = {self.measure_name!r}", str(self.measure_name), names)
        slots = [release.slot for release in self.releases]
        if slots != list(range(1, len(slots) + 1)):
            raise SourceError(
                f"campaign {name!r}",
                f"releases of the slots {slots}",
                "the slots from 1 on, in order and without gaps",
                "Hand over every release of the campaign",
            )

    def rows(self) -> tuple[Cell, ...]:
        """A cell for each answer to the campaign's workload, of every measure and view."""
        return self._cells

    def columns(self) -> dict[str, list[Any]]:
        """Cells, and below them ratios and lift."""
        return with_lift(self, with_ratios(self, columns_of(self)))

    def to_arrow(self) -> Any:
        """A pyarrow Table with a row for each cell."""
        return arrow_of(self.columns(), self.spec.campaign.timezone)

    def to_csv(self) -> str:
        return csv_of(self.columns())

    def to_json(self) -> str:
        return json_of(self)

    def to_mmm(self) -> str:
        """Weeks, for marketing mix models, as CSV."""
        return weekly_csv(self)

    def between(self, first: int, last: int) -> tuple[Cell, ...]:
        """The sum over any slots that are released, of the measure that the report is about: where
        people are counted once, those who were not counted before."""
        self._check_range(first, last)
        return cells_between(self, self.measure, first, last)

    def changes(self, after: Span, before: Span) -> list[Change]:
        """What changed from one range of slots to another, each given by its first and its last
        slot, of every sum of the measure that the report is about."""
        for span in (after, before):
            self._check_range(*span)
        return changes_between(self, self.measure, after, before)

    def _check_range(self, first: int, last: int) -> None:
        newest = self.newest.slot
        if not 1 <= first <= last <= newest:
            raise SpecError(
                f"slots {first} to {last}: expected a first and a last one from 1 to {newest}"
            )

    def to_parquet(self, path: Path) -> None:
        self.write(path, "parquet")

    def to_html(self) -> str:
        """One page with everything in it: opening it asks the network for nothing."""
        from adsbpc.report.page import page_of

        return page_of(self)

    def write(self, path: Path, format: str) -> None:
        """In one of the formats html, csv, parquet, json, mmm; whole or not at all."""
        if format not in FORMATS:
            raise no_such_choice(f"format = {format!r}", format, FORMATS)
        if format == "parquet":
            content = parquet_of(self.to_arrow())
        else:
            texts = {
                "html": self.to_html, "csv": self.to_csv, "json": self.to_json, "mmm": self.to_mmm,
            }  # fmt: skip
            content = texts[format]().encode()
        write_whole(Path(path), content)

    def table(self, truth: Mapping[str, float] | None = None) -> Table:
        """Totals after the newest slot, for a terminal. `truth` by publisher, where people are
        made up, stands beside them."""
        from adsbpc.report.table import table_of

        return table_of(self, truth)

    def ratio_table(self) -> Table | None:
        """Ratios so far for a terminal, if there is anything to divide."""
        from adsbpc.report.table import ratio_table_of

        return ratio_table_of(self)

    def lift_table(self) -> Table | None:
        """What the campaign caused so far, for a terminal, if it has arms."""
        from adsbpc.report.lift_words import lift_table_of

        return lift_table_of(self)

    def _repr_html_(self) -> str:
        from adsbpc.report.notebook import fragment_of

        return fragment_of(self)

    def explore(self, height: int = 820) -> FramedPage:
        """In a notebook: the whole page, so many pixels high, with ranges to choose and lines to
        point at."""
        from adsbpc.report.notebook import FramedPage

        return FramedPage(self.to_html(), f"Report of {self.spec.campaign.name}", height)

    @property
    def newest(self) -> Release:
        return self.releases[-1]

    @property
    def measure(self) -> Measure:
        """What the page is about."""
        name = self.measure_name
        if name is None:
            return self.explored[0]
        return next(each for each in self.spec.measures if each.name == name)

    @cached_property
    def explored(self) -> tuple[Measure, ...]:
        """What the page shows by publisher or by another first dimension: measures by arm stand in
        a card of their own, unless there is nothing else or one of them is asked for."""
        apart = tuple(each for each in self.spec.measures if not each.by_arm)
        asked = tuple(
            each for each in self.spec.measures if each.by_arm and each.name == self.measure_name
        )
        return asked + apart or tuple(e for e in self.spec.measures if not e.is_squared)

    @cached_property
    def measured(self) -> tuple[Measured, ...]:
        """What was released of it, slot by slot."""
        return self.of_measure(self.measure)

    def of_measure(self, measure: Measure) -> tuple[Measured, ...]:
        return tuple(release.of(measure.name) for release in self.releases)

    @property
    def _divided(self) -> list[Measure]:
        """What ratios may be of."""
        return [
            each
            for each in self.spec.measures
            if each.metric in METRICS and each.layout.dimensions[0].name == PUBLISHER
        ]

    def newest_totals(self, measure: Measure, deepest: int = 1) -> tuple[Cell, ...]:
        """Totals so far of a measure, of views that keep so many dimensions, everything last."""
        measured = self.of_measure(measure)
        lens = self.lens_of(measured)
        return tuple(lens.cells(measured[-1], measured[-1].running_totals, deepest))

    @cached_property
    def ratios(self) -> list[Ratio]:
        """Costs, returns, rates and frequency so far, as far as measures and spend give them."""
        cells = (
            (each, self.newest_totals(each, len(each.layout.dimensions))) for each in self._divided
        )
        return ratios_of(self, cells, 1, self.newest.slot)

    def ratios_between(self, first: int, last: int) -> list[Ratio]:
        """The same of any slots that are released. Ratios to people are given from the first slot
        on only: who was counted before is in no later slot."""
        self._check_range(first, last)
        cells = (
            (each, cells_between(self, each, first, last))
            for each in self._divided
            if first == 1 or divides_any_slots(each.metric)
        )
        return ratios_of(self, cells, first, last)

    @cached_property
    def lifts(self) -> list[Lift]:
        """What the campaign caused, by measure, arm and slot, where it has arms."""
        return lifts_of(self)

    @property
    def balance(self) -> Balance | None:
        return balance_of(self)

    @property
    def calibrations(self) -> list[Calibration]:
        return calibrations_of(self, self.lifts)

    @property
    def estimates_cut(self) -> bool:
        """Whether releases tell what was cut, so that intervals include it. It is the same for all
        releases of a campaign."""
        newest = self.measured[-1]
        return newest.allowance is not None or bool(newest.spread)

    @cached_property
    def timeline(self) -> Timeline:
        return Timeline(self.spec.grid)

    @cached_property
    def lens(self) -> Lens:
        return self.lens_of(self.measured)

    def lens_of(self, measured: tuple[Measured, ...]) -> Lens:
        adjustment = Adjustment.of(measured) if self.adjusted else None
        return Lens(self.timeline, self.level, adjustment, self._bands.get(measured[0].measure))

    @cached_property
    def _bands(self) -> dict[str, Bands]:
        """By measure, if they are asked for."""
        if not self.band or self.noise_of is None:
            return {}
        slots = self.spec.campaign.slots
        looks = (0, *look_slots(slots))
        return {
            each.name: Bands(self.noise_of(each.name, looks), slots, self.level)
            for each in self.spec.measures
        }

    @cached_property
    def standings(self) -> Standings:
        """Every publisher's total after the newest slot."""
        newest = self.measured[-1]
        totals = self.lens.cells(newest, newest.running_totals)
        return Standings.of(totals, self.lens.reach, adds_up=not self.measure.layout.once)

    @cached_property
    def models(self) -> Models | None:
        """None where attribution follows from a journey alone."""
        return Models.of(self.releases, self.lens.reach)

    def running_totals(self, slots: Iterable[int]) -> tuple[Cell, ...]:
        """From the first slot to each of these, whatever the workload asks."""
        chosen = [self.measured[slot - 1] for slot in slots]
        return tuple(cell for r in chosen for cell in self.lens.cells(r, r.running_totals))

    def slot_totals(self, slots: Iterable[int]) -> tuple[Cell, ...]:
        """Each of these slots alone, whatever the workload asks."""
        chosen = [self.measured[slot - 1] for slot in slots]
        return tuple(cell for r in chosen for cell in self.lens.cells(r, r.slot_totals))

    @cached_property
    def _cells(self) -> tuple[Cell, ...]:
        found = []
        for measure in self.spec.measures:
            measured, deepest = self.of_measure(measure), len(measure.layout.dimensions)
            lens = self.lens_of(measured)
            found += [cell for each in measured for cell in lens.cells(each, each.answers, deepest)]
        return tuple(found)
