"""The fit of an attribution model as it is stored, published and read again: nothing in it is
secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from adsbpc.model.attribution_spec import FittedModelName

Whole = Annotated[int, Field(gt=-(2**62), lt=2**62)]


@dataclass(frozen=True)
class ModelShare:
    """A publisher's share of people's first conversions up to the fit, under a model, from 0 to
    1."""

    model: str
    publisher: str
    share: float
    standard_error: float


class Fit(BaseModel):
    """Noisy counts, and the parameters that follow from them.

    `counts` names the declared set of counts, and `values` are those with noise of `scale`, in
    units of which a user with a short journey adds `full_weight`. `parameters` are whole numbers:
    credits follow from them and a journey alone. `comparison` has shares of further models that
    the same counts give, and `relative_noise` is how far noise alone moves what publishers get, as
    a part of it; None where that is not known. A file may leave out everything but model, order,
    publishers and parameters.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    model: FittedModelName
    order: Annotated[int, Field(ge=1, le=3)] = 1
    publishers: Annotated[tuple[str, ...], Field(min_length=2)]
    counts: Literal["coalitions", "pairs", "transitions"] | None = None
    slots: Annotated[int, Field(ge=0, le=8_784)] = 0
    full_weight: Annotated[int, Field(ge=1, le=2**40)] = 1
    scale: Annotated[float, Field(ge=0, le=2.0**50)] = 0.0
    values: tuple[Whole, ...] = ()
    parameters: dict[str, tuple[Whole, ...]]
    comparison: tuple[ModelShare, ...] = ()
    relative_noise: Annotated[float, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _every_publisher_is_compared(self) -> Self:
        models = {share.model for share in self.comparison}
        found = {(share.model, share.publisher) for share in self.comparison}
        if found != {(model, publisher) for model in models for publisher in self.publishers}:
            raise ValueError("comparison: expected every publisher under every model")
        return self

    def essentials(self) -> Fit:
        """What credits follow from, without the counts that it came from."""
        return Fit(
            model=self.model,
            order=self.order,
            publishers=self.publishers,
            parameters=self.parameters,
        )

    def to_text(self) -> str:
        return self.model_dump_json()

    @classmethod
    def from_text(cls, text: str) -> Fit:
        return cls.model_validate_json(text)
