"""The campaign file: what may stand in it, and messages for what may not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, model_validator

from adsbpc.model.attribution_spec import AttributionSection
from adsbpc.model.durations import MICROSECONDS_PER_HOUR
from adsbpc.model.events_spec import EventsSection
from adsbpc.model.grid import OTHER_PUBLISHER
from adsbpc.model.layout import Dimension, Layout
from adsbpc.model.lift_spec import LiftSection, check_arms
from adsbpc.model.measure import Measure
from adsbpc.model.measure_spec import (
    ARM,
    PUBLISHER,
    Amount,
    DimensionSection,
    MeasureSection,
    MetricName,
    ValueCap,
    check_campaign_metric,
    check_expected,
    check_listed,
    check_measures,
    check_metrics,
    shares_of,
)
from adsbpc.model.periods import OPEN, Period, Renewal, parts_of
from adsbpc.model.publisher_list import with_listed_publishers
from adsbpc.model.release_spec import PrivacySection, WorkloadSection
from adsbpc.model.section import DEFAULTS, Key, Name, Section, Share, Zone, known_zone
from adsbpc.model.slots import SlotGrid, SlotLength, Weekday, grid_of, starts_around
from adsbpc.model.spend import SpendSection
from adsbpc.model.toml import MisfitError

_FIRST_START, _NO_START = date(1980, 1, 1), date(2150, 1, 1)
# Moments of events lie before it.
_NO_DAY = date(2200, 1, 1)
_ONE_DAY = timedelta(days=1)


class CampaignSection(Section):
    name: Key
    scope: Key = "default"
    advertiser: Name
    start: Annotated[date, Field(ge=_FIRST_START, lt=_NO_START)]
    slots: Annotated[int, Field(ge=1, le=8_784)]
    slot: SlotLength = "1d"
    week_starts: Weekday = "monday"
    timezone: Zone = "UTC"
    publishers: Annotated[tuple[Name, ...], Field(min_length=1)]
    metric: MetricName = "conversions"
    value_cap: ValueCap | None = None
    renewal: Renewal | None = None

    @model_validator(mode="before")
    @classmethod
    def _slots_until_the_end(cls, content: Any) -> Any:
        """`end`, the last day, may stand in place of `slots`."""
        if not isinstance(content, dict) or "end" not in content:
            return content
        start, end = content.get("start"), content["end"]
        if "slots" in content:
            raise ValueError("gives both slots and end, the last day: remove one of them")
        if type(start) is not date or type(end) is not date:
            raise ValueError("end needs start, and both are days, for example 2026-03-31")
        if end < start:
            raise ValueError(f"end = {end} is before start = {start}: correct one of them")
        if end >= _NO_DAY:
            raise MisfitError(f"expected a day before {_NO_DAY}. Lower it", "end", value=str(end))
        slots = _slots_through(content, start, end)
        return {**{key: content[key] for key in content if key != "end"}, "slots": slots}

    @model_validator(mode="after")
    def _slots_fit_the_calendar(self) -> Self:
        if "week_starts" in self.model_fields_set and self.slot != "1w":
            raise MisfitError(
                'week_starts belongs to slot = "1w": set that slot or remove it', "week_starts"
            )
        _check_start(self.start, self.slot, self.week_starts)
        if self.slot != "1h" and self.grid.day_after(self.slots) > _NO_DAY:
            raise MisfitError(
                f"the campaign would last until after {_NO_DAY - _ONE_DAY}. Lower it",
                "slots",
                value=str(self.slots),
            )
        return self

    @model_validator(mode="after")
    def _renews_under_its_own_name(self) -> Self:
        if self.renewal is None:
            return self
        period = Period.of(self.start, self.renewal)
        if any(parts_of(name)[1] != period for name in (self.name, self.scope)):
            raise MisfitError(
                f'belongs to slots = "{OPEN}", a campaign without an end: set that, or remove it',
                "renewal",
                value=repr(self.renewal),
            )
        if self.slot == "1w":
            raise MisfitError(
                f'weeks lie across the ends of a {self.renewal}, and slots = "{OPEN}" needs slots '
                "that do not: take days",
                "slot",
                value=repr(self.slot),
            )
        return self

    @model_validator(mode="after")
    def _publishers_and_metric_make_sense(self) -> Self:
        check_listed("publishers", self.publishers)
        check_campaign_metric(self.metric, self.value_cap)
        return self

    @property
    def grid(self) -> SlotGrid:
        return grid_of(self.start, self.slots, self.slot, self.timezone)


def _slots_through(content: dict[str, Any], start: date, end: date) -> int:
    """How many slots there are from one day to another. Keys that are wrong themselves are
    reported where each is read, and not here."""
    length, zone = content.get("slot", "1d"), content.get("timezone", "UTC")
    week_starts = content.get("week_starts", "monday")
    days = (end - start).days + 1
    if length == "1h" and isinstance(zone, str):
        edges = SlotGrid(start, days, "1d", known_zone(zone)).boundaries
        return (edges[-1] - edges[0]) // MICROSECONDS_PER_HOUR
    known = _FIRST_START <= start < _NO_START and week_starts in get_args(Weekday)
    if length not in ("1w", "1mo") or not known:
        return days
    _check_start(start, length, week_starts)
    after = end + _ONE_DAY
    around = starts_around(after, length, week_starts)
    if after not in around:
        last_days = [day - _ONE_DAY for day in around]
        raise _misfit("end", end, length, week_starts, last_days, start)
    if length == "1w":
        return days // 7
    return 12 * (end.year - start.year) + end.month - start.month + 1


def _check_start(start: date, length: SlotLength, week_starts: Weekday) -> None:
    around = starts_around(start, length, week_starts)
    if start not in around:
        raise _misfit("start", start, length, week_starts, around, _FIRST_START)


def _misfit(
    key: Literal["start", "end"],
    day: date,
    length: SlotLength,
    week_starts: Weekday,
    nearest: Sequence[date],
    earliest: date,
) -> MisfitError:
    """What is said of a first or last day that no slot has."""
    if length == "1w":
        rule = f'is a {day:%A}, and with week_starts = "{week_starts}" weeks {key} on a '
        rule += f"{nearest[0]:%A}"
    else:
        rule = f"is not the {'first' if key == 'start' else 'last'} day of a month, and slot = "
        rule += '"1mo" needs that'
    choices = " or ".join(str(each) for each in nearest if each >= earliest)
    return MisfitError(f"{rule}. Say {choices}", key, value=str(day))


class ChecksSection(Section):
    """What events must be like for a campaign to start: conversions with a touch, credit of
    publishers that are not listed, rows of each source that cannot be used, and how many rows lie
    in its slots at all, where sources have others. Once it has started, nothing of it stops a
    release."""

    min_match_rate: Share = 0.001
    max_other_rate: Share = 0.999
    max_quarantine_rate: Share = 0.5
    min_rows: Annotated[int, Field(ge=0)] = 1


class EngineSection(Section):
    options: dict[str, str | int | bool] = Field(default={})


class LedgerSection(Section):
    """`location` is a SQLite file beside the campaign file, or a URL that starts with
    postgresql://. `witness` is a second place for the mark of what was published: a file, meant for
    another disk, or such a URL."""

    location: Name = "adsbpc-ledger.sqlite"
    witness: Annotated[str, Field(min_length=1, max_length=500)] | None = None

    @model_validator(mode="after")
    def _the_witness_is_elsewhere(self) -> Self:
        if self.witness == self.location:
            raise ValueError(
                "witness is the ledger itself, and would be rolled back together with it: name a "
                "place elsewhere"
            )
        return self


class StorageSection(Section):
    """Where books and releases are: a folder, or the URL of an object store."""

    location: Annotated[str, Field(min_length=1, max_length=500)] | None = None


class CampaignSpec(Section):
    """One campaign file. `directory` is where its relative paths start."""

    campaign: CampaignSection
    events: EventsSection
    attribution: AttributionSection = DEFAULTS
    privacy: PrivacySection | None = None
    workload: Annotated[tuple[WorkloadSection, ...], Field(min_length=1)] = Field(
        default=({},), validate_default=True
    )
    measure: tuple[MeasureSection, ...] = ()
    dimensions: dict[Key, DimensionSection] = Field(default={})
    lift: LiftSection | None = None
    spend: SpendSection | None = None
    expected: dict[Key, Amount] = Field(default={})
    checks: ChecksSection = DEFAULTS
    engine: EngineSection = DEFAULTS
    ledger: LedgerSection = DEFAULTS
    storage: StorageSection = DEFAULTS
    directory: Path = Field(default=Path(), exclude=True)

    @model_validator(mode="before")
    @classmethod
    def _publishers_of_a_file(cls, content: Any) -> Any:
        return with_listed_publishers(content)

    @model_validator(mode="after")
    def _the_fit_serves_a_slot(self) -> Self:
        fit = self.attribution.fit
        if fit is not None and fit.slots is not None and fit.slots >= self.campaign.slots:
            raise MisfitError(
                f"the fit serves the slots after it, and the campaign has {self.campaign.slots}. "
                "Lower it",
                *("attribution", "fit", "slots"),
                value=str(fit.slots),
            )
        return self

    @model_validator(mode="after")
    def _one_objective(self) -> Self:
        for position, section in enumerate(self.workload[1:], start=2):
            extra = section.model_fields_set & {"objective", "weights", "targets"}
            if extra:
                raise ValueError(
                    f"workload {position} sets {sorted(extra)[0]}, but the first workload shapes "
                    "the noise: remove it, or put this workload first"
                )
        return self

    @model_validator(mode="after")
    def _measures_make_sense(self) -> Self:
        own = self.campaign.model_fields_set & {"metric", "value_cap"}
        if self.measure and own:
            raise ValueError(
                f"[campaign] {sorted(own)[0]} says what is counted, and so does [[measure]]: move "
                "it into a measure"
            )
        check_measures(self.measure, self.dimensions, self.attribution.model)
        sources = (self.events.impressions, self.events.conversions)
        check_arms(self.lift, self.measure, sources, self.reported_publishers)
        check_expected(self.expected, [each.name for each in self.measures])
        check_metrics(
            self.measure,
            self.events.impression_kind,
            None if self.privacy is None else self.privacy.mechanism,
            self.attribution.fit is not None,
        )
        return self

    @property
    def grid(self) -> SlotGrid:
        return self.campaign.grid

    def settled_at(self, slot: int) -> int:
        """The instant at which a slot that ended was held back long enough."""
        return self.grid.boundaries[slot] + self.events.held_back

    def last_over(self, moment: int) -> int:
        """The last slot that is over at an instant, and was held back long enough."""
        return self.grid.last_ended(moment - self.events.held_back)

    @property
    def reported_publishers(self) -> tuple[str, ...]:
        """The public list and, last, the name for everything else."""
        return (*self.campaign.publishers, OTHER_PUBLISHER)

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """What is counted, and how. A file without measures has one, by publisher."""
        own = self.campaign
        if not self.measure:
            layout = Layout.of_publishers(self.reported_publishers)
            return (Measure(own.metric, own.metric, own.value_cap, None, layout, Fraction(1)),)
        return tuple(
            Measure(
                each.name,
                each.metric,
                each.value_cap,
                each.currency,
                each.layout(tuple(self._dimension(name) for name in each.by)),
                share,
            )
            for each, share in zip(self.measure, shares_of(self.measure), strict=True)
        )

    def _dimension(self, name: str) -> Dimension:
        if name == PUBLISHER:
            return Dimension(name, self.reported_publishers)
        if name == ARM:
            assert self.lift is not None
            return Dimension(name, (*self.lift.names, OTHER_PUBLISHER))
        return Dimension(name, (*self.dimensions[name].values, OTHER_PUBLISHER))

    @property
    def index_columns(self) -> dict[str, str]:
        """The column in which rows carry their place in the list of each dimension."""
        return {PUBLISHER: "publisher_index", ARM: "arm_index"} | {
            name: f"dimension_{number}" for number, name in enumerate(self.dimensions)
        }

    @property
    def counts_value(self) -> bool:
        return any(each.metric in ("value", "squared_value") for each in self.measures)

    @property
    def looks_back(self) -> bool:
        """Whether a slot needs the earlier conversions of its people."""
        return any(each.is_squared for each in self.measures)

    @property
    def counts_impressions(self) -> bool:
        return any(each.of_impressions for each in self.measures)

    @property
    def engine_options(self) -> dict[str, str | int | bool]:
        """The options, with a database's path taken from the campaign file's folder."""
        options = dict(self.engine.options)
        if "database" in options:
            options["database"] = str(self.directory / str(options["database"]))
        return options
