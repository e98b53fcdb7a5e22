"""The part of the campaign file about trials: `[lift]`, who is in which arm."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from adsbpc.errors import did_you_mean
from adsbpc.model.arms import limits_of
from adsbpc.model.measure_spec import ARM, PUBLISHER, SQUARES, MeasureSection, check_listed
from adsbpc.model.section import Key, Name, Section
from adsbpc.model.toml import MisfitError

# By arm: all conversions count, touched or not.
_OF_CONVERSIONS = ("converters", "conversions", "value")
_BY_ARM = (*_OF_CONVERSIONS, "squared_conversions", "squared_value", "reach")
_USUAL_CONTROL = "control"


class LiftSection(Section):
    """Arms by a keyed hash of the user id with `shares`, or by a `table` of people that was fixed
    before the campaign. `people` says how many there are in each arm, where that is known, and
    `withholds` which arms see all publishers but some."""

    key_file: Name | None = None
    table: Name | None = None
    user_column: Name = "user_id"
    arm_column: Name = "arm"
    shares: dict[Key, float] = Field(default={})
    arms: tuple[Key, ...] = ()
    control: Key = _USUAL_CONTROL
    people: dict[Key, Annotated[int, Field(ge=1, le=10**12)]] = Field(default={})
    withholds: dict[Key, Annotated[tuple[Name, ...], Field(min_length=1)]] = Field(default={})

    @model_validator(mode="after")
    def _says_who_is_where(self) -> Self:
        if (self.key_file is None) == (self.table is None):
            raise ValueError(
                "says who is in which arm by key_file, with shares, or by table, with arms: give "
                "one of the two. Arms are never read off events"
            )
        if self.key_file is not None:
            extra = self.model_fields_set & {"arms", "user_column", "arm_column"}
            self._check_shares()
        else:
            extra = self.model_fields_set & {"shares"}
        if extra:
            kind = "a table" if self.key_file is not None else "key_file"
            raise MisfitError(f"belongs to arms by {kind}: remove it", sorted(extra)[0])
        return self

    def _check_shares(self) -> None:
        for arm, share in self.shares.items():
            if not 0 < share <= 1:
                what = "nobody would be in it" if share == 0 else "that is no part of people"
                raise MisfitError(
                    f"expected a number above 0 and up to 1: {what}", "shares", arm,
                    value=f"{share:g}",
                )  # fmt: skip
        total = sum(Fraction(str(share)) for share in self.shares.values())
        if total > 1:
            raise MisfitError(
                f"the shares of arms add up to {float(total):.6g}: expected 1 at most. Whoever is "
                "in no arm is left out of the trial",
                "shares",
            )

    @model_validator(mode="after")
    def _has_a_control(self) -> Self:
        names, key = self.names, "shares" if self.table is None else "arms"
        if len(names) < 2:
            raise MisfitError(
                f"expected two arms or more, of which one is the control; found {len(names)}", key
            )
        check_listed(key, names)
        if self.control not in names:
            raise MisfitError(
                f"there is no such arm: expected one of {', '.join(names)}."
                f"{did_you_mean(self.control, set(names))} Say which arm sees nothing",
                "control",
                value=repr(self.control),
            )
        if self.people and set(self.people) != set(names):
            odd = sorted(set(self.people) ^ set(names))[0]
            raise MisfitError(
                f"{odd!r} is in one of people and {key}, and not in the other: give the people of "
                "every arm, or of none",
                "people",
            )
        return self

    @model_validator(mode="after")
    def _withholds_from_some(self) -> Self:
        for arm, publishers in self.withholds.items():
            if arm not in self.names:
                raise MisfitError(
                    f"there is no such arm: expected one of {', '.join(self.treated)}."
                    f"{did_you_mean(arm, set(self.treated))} Rename or remove it",
                    *("withholds", arm),
                )
            if arm == self.control:
                raise MisfitError(
                    "is the control, which sees nothing: remove it", *("withholds", arm)
                )
            twice = next((name for name in publishers if publishers.count(name) > 1), None)
            if twice is not None:
                raise MisfitError(
                    f"lists {twice!r} more than once: remove the repeats", *("withholds", arm)
                )
        if self.withholds and not self.complete:
            raise MisfitError(
                "every arm but the control withholds something, and what a publisher causes shows "
                "beside people who see everything: add an arm that withholds nothing",
                "withholds",
            )
        return self

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.shares) or self.arms

    @property
    def treated(self) -> tuple[str, ...]:
        """All arms but the control."""
        return tuple(name for name in self.names if name != self.control)

    @property
    def complete(self) -> tuple[str, ...]:
        """Arms that see everything."""
        return tuple(name for name in self.treated if name not in self.withholds)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Arms that are compared, each with the one that says what would have happened without:
        all with the control, and those that see everything with those that see less."""
        return (
            *((arm, self.control) for arm in self.treated),
            *((arm, less) for less in self.withholds for arm in self.complete),
        )

    def shows(self, arm: str, publisher: str) -> bool:
        return arm != self.control and publisher not in self.withholds.get(arm, ())

    def promised(self) -> dict[str, Any]:
        """What stays as it is once a campaign has started. Who the control is, and how many people
        there are, changes nothing that is released. What arms withhold does not either, and is kept
        all the same: it says what is compared, and that is chosen before anything is seen. A list,
        because the order of arms counts."""
        arms = limits_of(self.shares) or [(name, None) for name in self.arms]
        found: dict[str, Any] = {"arms": [list(each) for each in arms]}
        if self.withholds:
            found["withholds"] = {arm: sorted(names) for arm, names in self.withholds.items()}
        return found


def check_arms(
    lift: LiftSection | None,
    measures: Sequence[MeasureSection],
    sources: Sequence[str],
    publishers: Sequence[str],
) -> None:
    """Refuse measures by arm that have no arms or no meaning, arms that come from events, and arms
    that withhold what there is not."""
    of_arms = [each for each in measures if ARM in each.by]
    squared = [each for each in measures if each.metric in SQUARES.values()]
    if lift is None:
        if of_arms:
            raise ValueError(
                f"measure {of_arms[0].name!r} is by {ARM!r}, and there is no [lift], which says "
                "who is in which arm: add it"
            )
        if squared:
            raise ValueError(
                f"measure {squared[0].name!r} counts {squared[0].metric}, which are for the "
                "intervals of lift: add [lift], or remove it"
            )
        return
    if lift.table in sources:
        raise MisfitError(
            "is a source of events, and arms are never read off events: who is in which arm is "
            "fixed before the campaign. Name a table of people",
            *("lift", "table"),
            value=repr(lift.table),
        )
    _check_withheld(lift, publishers)
    # Credits of arms are no part of a trial: they have publishers.
    credited = [each for each in of_arms if each.by[0] == PUBLISHER]
    of_arms = [each for each in of_arms if each not in credited]
    counted = any(each.metric == "reach" for each in of_arms)
    if lift.table is not None and not lift.people and not counted:
        raise MisfitError(
            "how many people are in each arm is not known: give [lift.people], or count them by a "
            '[[measure]] with metric = "reach" and by = ["arm"]',
            "lift",
        )
    if not any(each.metric in _OF_CONVERSIONS for each in of_arms):
        found = of_arms[0].metric if of_arms else "nothing"
        raise MisfitError(
            f"measures by arm count {found}, and lift needs what people did: add a [[measure]] "
            'with metric = "converters" and by = ["arm"]',
            "lift",
        )
    for each in squared:
        if each not in of_arms:
            raise ValueError(f'measure {each.name!r} counts {each.metric}: set by = ["arm"]')
    for each in of_arms:
        _check_measure(each, measures)
    for each in credited:
        if each.by[1] != ARM or each.metric not in ("conversions", "value"):
            raise ValueError(
                f"measure {each.name!r} counts {each.metric} by {', '.join(each.by)}: credits of "
                "arms are conversions or value, by publisher first and arm next"
            )


def _check_withheld(lift: LiftSection, publishers: Sequence[str]) -> None:
    for arm, names in lift.withholds.items():
        unknown = next((name for name in names if name not in publishers), None)
        if unknown is not None:
            raise MisfitError(
                f"{unknown!r} is no publisher of the campaign: expected some of "
                f"{', '.join(publishers)}.{did_you_mean(unknown, set(publishers))} Correct it",
                *("lift", "withholds", arm),
            )
        if set(names) == set(publishers):
            raise MisfitError(
                "withholds everything, as the control does: leave a publisher out of the list",
                *("lift", "withholds", arm),
            )


def _check_measure(measure: MeasureSection, measures: Sequence[MeasureSection]) -> None:
    what = f"measure {measure.name!r}"
    if measure.metric not in _BY_ARM:
        raise ValueError(
            f"{what} counts {measure.metric} by arm: expected one of {', '.join(_BY_ARM)}"
        )
    if measure.by[0] != ARM or PUBLISHER in measure.by:
        raise ValueError(
            f"{what} is by {', '.join(measure.by)}: of a trial all conversions count, touched or "
            "not, so that they have no publisher. Name arm first, then columns of conversions; for "
            'credits of arms, by = ["publisher", "arm"]'
        )
    if len(measure.by) > 1 and measure.metric != "converters":
        raise ValueError(
            f"{what} counts {measure.metric} by {', '.join(measure.by)}: lift tells further "
            'dimensions apart for converters only. Set by = ["arm"]'
        )
    squares = SQUARES.get(measure.metric)
    if squares is not None and not any(
        each.metric == squares and each.value_cap == measure.value_cap for each in measures
    ):
        cap = f", value_cap = {measure.value_cap:g}" if measure.value_cap else ""
        raise ValueError(
            f"{what} counts {measure.metric} by arm, and how much people differ is not known: add "
            f'a [[measure]] with metric = "{squares}"{cap} and by = ["arm"]'
        )
