"""The part of the campaign file about attribution: the model, its parameters, where a fit comes
from."""

from __future__ import annotations

from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from adsbpc.model.durations import parse_duration
from adsbpc.model.section import Duration, Name, Rho, Section, Share
from adsbpc.model.toml import MisfitError

# Models whose credits follow from a journey alone.
PlainModelName = Literal[
    "last_touch", "first_touch", "uniform", "time_decay", "position", "shapley_path"
]
# Models with parameters that are fitted to many journeys.
FittedModelName = Literal[
    "shapley", "shapley_ordered", "incremental_value", "probabilistic", "logistic", "markov"
]
ModelName = Literal[PlainModelName, FittedModelName]

_OWNERS = {"half_life": "time_decay", "first_share": "position", "last_share": "position"}
# The orders that a model may have, its usual one first; a model without any has order 1.
ORDERS: dict[str, tuple[int, ...]] = {"probabilistic": (2, 1), "markov": (1, 2, 3)}


class FitSection(Section):
    """Where the parameters of a fitted model come from: noisy counts of this campaign, an earlier
    campaign's fit, or a file that the operator declares public.

    A fit of this campaign costs `rho` of the campaign's budget, and is made when slot `slots` is
    released, from journeys that ended in the slots up to it. Up to then `fallback` attributes.
    Journeys of up to `full_journey` publishers count in full, longer ones for less.
    `holdout` lists users who were kept from seeing anything. `previous` is the folder of an earlier
    campaign's releases, `parameters` a file written by adsbpc fit.
    """

    rho: Rho | None = None
    slots: Annotated[int, Field(ge=1, le=8_784)] | None = None
    fallback: PlainModelName = "shapley_path"
    full_journey: Annotated[int, Field(ge=1, le=1_000)] = 6
    holdout: Name | None = None
    previous: Name | None = None
    parameters: Name | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        own = self.rho is not None or self.slots is not None
        if sum([own, self.previous is not None, self.parameters is not None]) != 1:
            raise ValueError(
                "give either rho and slots, to fit in this campaign, or previous, or parameters"
            )
        if own and (self.rho is None or self.slots is None):
            raise MisfitError("rho and slots belong together: give both", "rho")
        if not own:
            extra = self.model_fields_set & {"fallback", "full_journey", "holdout"}
            if extra:
                raise ValueError(
                    f"{sorted(extra)[0]} belongs to a fit of this campaign, with rho and slots: "
                    "remove it"
                )
        return self


class AttributionSection(Section):
    """`max_touches` of a journey and `max_conversions` of a user in a slot bound what one person
    can make a release cost."""

    model: ModelName = "last_touch"
    click_lookback: Duration = parse_duration("30d")
    view_lookback: Duration = parse_duration("1d")
    max_touches: Annotated[int, Field(ge=1, le=1_000)] = 50
    max_conversions: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    half_life: Duration = parse_duration("7d")
    first_share: Share = 0.4
    last_share: Share = 0.4
    order: int | None = None
    fit: FitSection | None = None

    @model_validator(mode="after")
    def _parameters_belong_to_the_model(self) -> Self:
        used = {self.model, self.fit.fallback if self.fit else self.model}
        for key, owner in _OWNERS.items():
            if key in self.model_fields_set and owner not in used:
                raise ValueError(
                    f'{key} belongs to model = "{owner}", but model is "{self.model}": '
                    f'remove {key} or set model = "{owner}"'
                )
        if self.half_life == 0:
            raise ValueError("half_life must be longer than zero")
        if self.first_share + self.last_share > 1:
            raise ValueError(
                f"first_share + last_share = {self.first_share + self.last_share:g}, "
                "but the shares of one conversion must not pass 1: lower one of them"
            )
        return self

    @model_validator(mode="after")
    def _a_fit_where_one_is_needed(self) -> Self:
        if self.is_fitted and self.fit is None:
            raise MisfitError(
                f'model = "{self.model}" is fitted, which costs privacy: add [attribution.fit] '
                "with rho and slots, or with parameters that are public",
                "model",
            )
        if not self.is_fitted and self.fit is not None:
            fitted = ", ".join(get_args(FittedModelName))
            raise MisfitError(
                f'model = "{self.model}" needs no fit: remove [attribution.fit], or take one of '
                f"{fitted}",
                "model",
            )
        if self.model == "markov" and self.fit is not None and self.fit.holdout is not None:
            raise ValueError("a Markov chain has no use for a holdout group: remove fit.holdout")
        orders = ORDERS.get(self.model, ())
        if self.order is not None and self.order not in orders:
            allowed = " or ".join(str(order) for order in sorted(orders))
            raise ValueError(
                f'order = {self.order}: model = "{self.model}" has '
                + (f"order {allowed}" if orders else "no order: remove it")
            )
        return self

    @property
    def is_fitted(self) -> bool:
        return self.model in get_args(FittedModelName)

    @property
    def order_of_fit(self) -> int:
        """The order of a model that has one, 1 otherwise."""
        return self.order or ORDERS.get(self.model, (1,))[0]

    @property
    def longest_lookback(self) -> int:
        return max(self.click_lookback, self.view_lookback)
