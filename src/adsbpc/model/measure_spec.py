"""The parts of the campaign file about what is counted: `[[measure]]` and `[dimensions.NAME]`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from adsbpc.errors import did_you_mean
from adsbpc.model.grid import ALL_PUBLISHERS, OTHER_PUBLISHER
from adsbpc.model.layout import LARGEST_WEIGHT, Dimension, Layout
from adsbpc.model.section import Key, Name, Section
from adsbpc.model.toml import MisfitError
from adsbpc.model.view_weights import weights_for

Amount = Annotated[float, Field(gt=0, le=1e15)]
MetricName = Literal[
    "conversions", "value", "converters", "impressions", "clicks", "reach",
    "squared_conversions", "squared_value",
]  # fmt: skip
# People, each once in every sum: whoever has been in it before is not counted again.
COUNTED_ONCE = ("converters", "reach")
# Of impressions, whether or not anybody converts.
OF_IMPRESSIONS = ("impressions", "clicks", "reach")
# Squares of what everybody has so far, by which people differ: for the intervals of lift.
SQUARES = {"conversions": "squared_conversions", "value": "squared_value"}
_OF_VALUE = ("value", "squared_value")
# Whoever clicks was reached too, so that reach has impressions of every kind.
_KINDS = {"impressions": "view", "clicks": "click"}
ValueCap = Annotated[float, Field(ge=1e-6, le=1e12)]
PUBLISHER = "publisher"
# Of people, by [lift].
ARM = "arm"
# Of the sum of everything, and of each further dimension: the total costs people who convert once
# next to nothing, and those who convert often not all that they have.
_TOTAL, _OTHERS = 1, 8
# Models that credit every touch by itself.
_BY_TOUCH = ("last_touch", "first_touch", "uniform", "time_decay", "position")


class DimensionSection(Section):
    """A public list of values that a column of events may have; all others are "other"."""

    column: Name
    of: Literal["conversion", "impression"] = "conversion"
    values: Annotated[tuple[Name, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _values_are_a_list(self) -> Self:
        check_listed("values", self.values)
        return self


class MeasureSection(Section):
    """One question. `by` lists the dimensions whose product has the cells; sums that keep the first
    of them, and all of them, have `weights`, from none to all, or an `importance` each from which
    these follow. `share` is that of the budget."""

    name: Key
    metric: MetricName = "conversions"
    value_cap: ValueCap | None = None
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] | None = None
    by: Annotated[tuple[Name, ...], Field(min_length=1, max_length=4)] = (PUBLISHER,)
    share: Annotated[float, Field(ge=0.001, le=1)] | None = None
    weights: tuple[Annotated[int, Field(ge=0, le=LARGEST_WEIGHT)], ...] | None = None
    importance: tuple[Annotated[float, Field(ge=0, le=1_000)], ...] | None = None

    @model_validator(mode="after")
    def _keys_belong_together(self) -> Self:
        check_metric(self.metric, self.value_cap)
        if self.currency is not None and self.metric != "value":
            raise MisfitError(
                'belongs to metric = "value": set that metric or remove it', "currency"
            )
        check_listed("by", self.by)
        for key, given in (("weights", self.weights), ("importance", self.importance)):
            if self.counts_once and given not in (None, (1,) * (len(self.by) + 1)):
                raise MisfitError(
                    f"metric = {self.metric!r} counts people once in every sum, so that each sum "
                    f"has a column of its own, all alike: remove {key}",
                    key,
                    value=str(list(given or ())),
                )
        if self.weights is not None and (
            len(self.weights) != len(self.by) + 1 or self.weights[-1] == 0
        ):
            raise MisfitError(
                f"expected {len(self.by) + 1} whole numbers: of the sum of everything, and of each "
                "dimension that is told apart further; the last one above 0",
                "weights",
                value=str(list(self.weights)),
            )
        self._check_importance()
        if ":" in self.name:
            raise MisfitError("expected a name without a colon", "name", value=repr(self.name))
        return self

    @property
    def counts_once(self) -> bool:
        return self.metric in COUNTED_ONCE

    def _check_importance(self) -> None:
        given = self.importance
        if given is None:
            return
        rule = ""
        if self.weights is not None:
            rule = "weights say already how views stand to one another: remove one of the two"
        elif len(given) != len(self.by) + 1 or not any(given):
            rule = (
                f"expected {len(self.by) + 1} numbers: of the sum of everything, and of each "
                "dimension that is told apart further; one of them above 0"
            )
        if rule:
            raise MisfitError(rule, "importance", value=str(list(given)))

    def layout(self, dimensions: tuple[Dimension, ...]) -> Layout:
        """Its cells and views, of dimensions with these values."""
        if self.counts_once:
            return Layout(dimensions, (1,) * (len(self.by) + 1), once=True)
        weights = self.weights or (_TOTAL, *[_OTHERS] * len(self.by))
        if self.weights is None and self.importance is not None:
            weights = weights_for(self.importance, tuple(len(each.values) for each in dimensions))
        return Layout(dimensions, weights)


def check_metric(metric: str, value_cap: float | None) -> None:
    if metric in _OF_VALUE and value_cap is None:
        raise MisfitError(
            f'metric = "{metric}" needs value_cap, the most that one conversion counts', "metric"
        )
    if metric not in _OF_VALUE and value_cap is not None:
        raise MisfitError(
            'value_cap belongs to metric = "value": set that metric or remove it', "value_cap"
        )


def check_campaign_metric(metric: str, value_cap: float | None) -> None:
    """The same for a file without measures."""
    check_metric(metric, value_cap)
    if metric not in ("conversions", "value"):
        raise MisfitError(
            "people and impressions are counted by measures: declare a [[measure]] with this "
            "metric, and remove it here",
            "metric",
            value=repr(metric),
        )


def check_listed(key: str, names: tuple[str, ...]) -> None:
    """Refuse a list with repeats, or with a name that stands for something else."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise MisfitError(f"{key} lists {twice[0]!r} more than once: remove the repeats", key)
    for kept, meaning in (
        (OTHER_PUBLISHER, "everything that is not listed"),
        (ALL_PUBLISHERS, "the total"),
    ):
        if kept in names:
            raise MisfitError(f"{key} lists {kept!r}, which is kept for {meaning}: remove it", key)


def check_measures(
    measures: tuple[MeasureSection, ...], dimensions: Mapping[str, DimensionSection], model: str
) -> None:
    """Refuse measures and dimensions that do not go with one another or with attribution."""
    names = [each.name for each in measures]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two measures have the name {twice!r}: rename one of them")
    if PUBLISHER in dimensions:
        raise ValueError(
            "[dimensions.publisher]: publishers are listed in [campaign] publishers. Remove it"
        )
    if ARM in dimensions:
        raise ValueError(
            "[dimensions.arm]: arms are those of people, by [lift], and never read off events. "
            "Remove it, or give the dimension another name"
        )
    for each in measures:
        for name in each.by:
            if name not in (PUBLISHER, ARM) and name not in dimensions:
                raise ValueError(
                    f"measure {each.name!r} is by {name!r}, and there is no [dimensions.{name}]"
                    f".{did_you_mean(name, {PUBLISHER, *dimensions})} Declare it: its "
                    "column, and the public list of its values"
                )
        _check_columns(each, dimensions)
    unused = sorted(dimensions.keys() - {name for each in measures for name in each.by})
    if unused:
        raise ValueError(f"[dimensions.{unused[0]}]: no measure is by it. Use or remove it")
    touched = sorted(name for name, each in dimensions.items() if each.of == "impression")
    if touched and model not in _BY_TOUCH:
        raise ValueError(
            f"[dimensions.{touched[0]}] is of impressions, and {model} credits publishers, not "
            f"touches: take one of the models {', '.join(_BY_TOUCH)}, or a column of conversions"
        )
    if measures:
        shares_of(measures)


def check_metrics(
    measures: tuple[MeasureSection, ...],
    impression_kind: str | None,
    mechanism: str | None,
    is_fitted: bool,
) -> None:
    """Refuse metrics that events, mechanism or attribution give no meaning."""
    for each in measures:
        if each.counts_once and mechanism == "adsbpc":
            raise MisfitError(
                f"measure {each.name!r} counts {each.metric}, every person once, which takes books "
                "of who was counted before, and AdsBPC keeps none: set mechanism = "
                '"personal-budget", or remove the measure',
                *("privacy", "mechanism"),
                value=repr(mechanism),
            )
        counted = _KINDS.get(each.metric)
        if impression_kind is not None and counted not in (None, impression_kind):
            raise MisfitError(
                f"measure {each.name!r} counts {each.metric}, which are impressions of kind "
                f"{counted!r}, and this says that there are none: remove one of them",
                *("events", "impression_kind"),
                value=repr(impression_kind),
            )
    if (
        is_fitted
        and measures
        and all(each.metric in OF_IMPRESSIONS or each.by[0] == ARM for each in measures)
    ):
        raise MisfitError(
            "no measure counts conversions that are attributed, so that a fit of the model "
            "would serve nothing: remove it, or add such a measure",
            *("attribution", "fit"),
        )


def _check_columns(measure: MeasureSection, dimensions: Mapping[str, DimensionSection]) -> None:
    if measure.metric not in OF_IMPRESSIONS:
        return
    for name in measure.by:
        if name not in (PUBLISHER, ARM) and dimensions[name].of == "conversion":
            raise ValueError(
                f"measure {measure.name!r} counts {measure.metric} by {name!r}, and "
                f"[dimensions.{name}] is a column of conversions: declare a dimension with "
                'of = "impression"'
            )


def shares_of(measures: tuple[MeasureSection, ...]) -> tuple[Fraction, ...]:
    """Of the budget; equal ones where none is given."""
    given = [each.share for each in measures if each.share is not None]
    if not given:
        return tuple(Fraction(1, len(measures)) for _ in measures)
    if len(given) < len(measures):
        missing = next(each.name for each in measures if each.share is None)
        raise MisfitError(
            f"measure {missing!r} has no share, and others have: give all or none", "measure"
        )
    shares = tuple(Fraction(str(share)) for share in given)
    if sum(shares) != 1:
        raise MisfitError(
            f"the shares of measures add up to {float(sum(shares)):.6g}: expected 1. Correct them, "
            "or leave all of them out for equal ones",
            "measure",
        )
    return shares


def check_expected(expected: Mapping[str, float], names: Sequence[str]) -> None:
    """Refuse to expect something of a measure that there is not."""
    for name in expected:
        if name not in names:
            raise MisfitError(
                f"there is no such measure: expected one of {', '.join(names)}."
                f"{did_you_mean(name, set(names))} Rename or remove it",
                "expected",
                name,
            )
