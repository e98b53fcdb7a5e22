"""The parts of the campaign file about what is released: `[privacy]` and `[[workload]]`."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from adsbpc.model.guarantee import Adjacency
from adsbpc.model.section import DEFAULTS, Moderate, Rho, Section

Part = Annotated[float, Field(ge=0.001, le=1)]
BetweenZeroAndOne = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]


MechanismName = Literal["adsbpc", "personal-budget"]


class AdsBPCSection(Section):
    """Parameters of AdsBPC; the defaults are the paper's, except that `histogram` tracks bounds.

    `shares` splits rho among measurement, first bounds and tracking.
    """

    bounds: Literal["histogram", "svt", "fixed"] = "histogram"
    bound: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    shares: tuple[Part, Part, Part] = (0.7, 0.15, 0.15)
    quantile: BetweenZeroAndOne = 0.99
    quantile_slots: Annotated[int, Field(ge=1)] = 7
    quantile_limit: Annotated[int, Field(ge=1, le=100_000)] | Literal["none"] = 10
    scale_up: Annotated[float, Field(gt=1, le=100)] = 1.3
    scale_down: BetweenZeroAndOne = 0.8
    threshold: Annotated[int, Field(ge=0)] = 50
    max_reports: Annotated[int, Field(ge=1)] = 7

    @model_validator(mode="after")
    def _bound_and_shares_make_sense(self) -> Self:
        if (self.bounds == "fixed") != (self.bound is not None):
            raise ValueError(
                'bound, in conversions per user and slot, belongs to bounds = "fixed": '
                "set both or neither"
            )
        if sum(Fraction(str(share)) for share in self.shares) != 1:
            raise ValueError(f"shares add up to {sum(self.shares):.12g}: expected exactly 1")
        if Fraction(str(self.quantile)).denominator > 10**6:
            raise ValueError(f"quantile = {self.quantile}: expected at most six decimals")
        return self


class PersonalBudgetSection(Section):
    """Parameters of personal budgets.

    `heavy_user` is a public guess: how many conversions a person has in the campaign who converts
    often; left out, what is released says it. `allowance` fixes how many conversions with one
    publisher on one slot everybody's budget is large enough for; without it, it follows noisy
    histograms, for `histogram_share` of rho, which follows from the number of cells if it is left
    out. `previous` is the folder of an earlier campaign's
    releases, whose histograms say where to start. `beta` belongs to the strategy "toeplitz".
    """

    strategy: Literal["optimised", "toeplitz", "square-root", "identity"] = "optimised"
    beta: Annotated[float, Field(ge=0, le=1)] | None = None
    heavy_user: Annotated[int, Field(ge=1, le=100_000)] | None = None
    allowance: Annotated[float, Field(ge=0.5, le=10_000)] | None = None
    previous: str | None = None
    histogram_share: Annotated[float, Field(ge=0.001, le=0.5)] | None = None

    @model_validator(mode="after")
    def _keys_belong_together(self) -> Self:
        if self.beta is not None and self.strategy != "toeplitz":
            raise ValueError('beta belongs to strategy = "toeplitz": set that or remove beta')
        if self.allowance is not None and self.previous is not None:
            raise ValueError("allowance is fixed: remove it, or previous")
        return self


class PrivacySection(Section):
    """`scope_rho` is the budget of the whole scope; this campaign's own if left out."""

    rho: Rho | None = None
    scope_rho: Rho | None = None
    epsilon: Moderate | None = None
    delta: BetweenZeroAndOne = 1e-6
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    mechanism: MechanismName = "personal-budget"
    adsbpc: AdsBPCSection = DEFAULTS
    personal_budget: PersonalBudgetSection = DEFAULTS

    @model_validator(mode="before")
    @classmethod
    def _parameters_name_their_mechanism(cls, content: Any) -> Any:
        """Who sets parameters of AdsBPC, and no others, means AdsBPC."""
        if isinstance(content, dict) and "adsbpc" in content and "personal_budget" not in content:
            return {"mechanism": "adsbpc", **content}
        return content

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        if (self.rho is None) == (self.epsilon is None):
            raise ValueError("give either rho, or epsilon and delta")
        if self.epsilon is not None and "delta" not in self.model_fields_set:
            raise ValueError("epsilon needs delta, for example delta = 1e-6")
        return self


def stored_privacy(section: PrivacySection) -> dict[str, Any]:
    """As it is kept: what was left out and may mean something else to a later version is stated."""
    content = section.model_dump(mode="json", exclude_unset=True)
    own = section.personal_budget
    choices = {"heavy_user": own.heavy_user, "histogram_share": own.histogram_share}
    return content | {
        "mechanism": section.mechanism,
        "personal_budget": content.get("personal_budget", {}) | choices,
    }


def kept_privacy(stored: Mapping[str, Any]) -> dict[str, Any]:
    """What was kept, in the words of today: where it states nothing, it was kept when that meant
    AdsBPC, a heavy user of thirty conversions and a twentieth of rho for histograms."""
    personal = {"heavy_user": 30, "histogram_share": 0.05, **stored.get("personal_budget", {})}
    return {"mechanism": "adsbpc", **stored, "personal_budget": personal}


class WorkloadSection(Section):
    """Questions that are answered. The first workload of a file shapes the noise."""

    queries: Literal["prefix", "sliding", "slot", "ranges", "matrix"] = "prefix"
    window: Annotated[int, Field(ge=1)] | None = None
    ranges: tuple[tuple[int, int], ...] | None = None
    matrix: str | None = None
    objective: Literal["weighted-squared-error", "max-variance", "variance-targets"] = (
        "weighted-squared-error"
    )
    weights: tuple[Moderate, ...] | None = None
    targets: tuple[Annotated[float, Field(ge=1e-9, le=1e18)], ...] | None = None

    @model_validator(mode="after")
    def _keys_belong_together(self) -> Self:
        """Also refuses what would be ignored."""
        owners = {
            "window": ("queries", "sliding"),
            "ranges": ("queries", "ranges"),
            "matrix": ("queries", "matrix"),
            "targets": ("objective", "variance-targets"),
        }
        for key, (choice, owner) in owners.items():
            given, chosen = getattr(self, key) is not None, getattr(self, choice) == owner
            if given and not chosen:
                raise ValueError(f'{key} belongs to {choice} = "{owner}": set that or remove {key}')
            if chosen and not given:
                raise ValueError(f'{choice} = "{owner}" needs {key}')
        if self.weights is not None and self.objective != "weighted-squared-error":
            raise ValueError('weights belong to objective = "weighted-squared-error"')
        return self
