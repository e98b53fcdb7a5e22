"""The fit of an attribution model as it is stored, published and read again: nothing in it is
secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from adsbpc.model.attribution_spec import FittedModelName


@dataclass(frozen=True)
class ModelShare:
    """A publisher's share of the fit's conversions under a model, between 0 and 1."""

    model: str
    publisher: str
    share: float
    standard_error: float


class Fit(BaseModel):
    """Noisy counts, and the parameters that follow from them.

    `counts` names the declared set of counts, and `values` are those with noise of `scale`, in
    units of which a user with a short journey adds `full_weight`. `parameters` are whole numbers:
    credits follow from them and a journey alone. `comparison` has shares of further models that
    the same counts give. A file may leave out everything but model, order, publishers and
    parameters.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: FittedModelName
    order: int = 1
    publishers: tuple[str, ...]
    counts: Literal["coalitions", "pairs", "transitions"] | None = None
    slots: int = 0
    full_weight: int = 1
    scale: float = 0.0
    values: tuple[int, ...] = ()
    parameters: dict[str, tuple[int, ...]]
    comparison: tuple[ModelShare, ...] = ()

    def to_text(self) -> str:
        return self.model_dump_json()

    @classmethod
    def from_text(cls, text: str) -> Fit:
        return cls.model_validate_json(text)
