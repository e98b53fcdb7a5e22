"""What a campaign promised, from the ledger's entry for it, and the auditor's own numbers.

Nothing here is taken from the code that releases: where that changes a number, the audit fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

from adsbpc.audit.claims import require
from adsbpc.audit.columns import Columns
from adsbpc.audit.record import Record
from adsbpc.model.release_spec import PrivacySection, kept_privacy

# Amounts in the ledger are whole numbers of this part of rho.
PICO = 10**12
# A conversion is this many grid units.
CONVERSION = 720_720
# What one person may cost over a campaign under personal budgets, || B z ||^2.
LIMIT = 2**88
# The entry that stands for 1 in a strategy.
ONE = 2**10
# Of every budget, the part for what is let in; the rest is for counting what was cut.
KEPT_SHARE = Fraction(19, 20)
# The norm of one person's counts in a fit of the attribution model.
FIT_NORM = 2**20
# The only source of noise that hides anybody.
SOURCE = "opendp"

MEASUREMENT, HISTOGRAM, QUANTILE, SPARSE_VECTOR, FIT = (
    "measurement", "histogram", "quantile", "sparse vector", "attribution fit",
)  # fmt: skip

# Metrics that count everybody once.
_OF_PEOPLE = ("converters", "reach")

Rows = Sequence[Sequence[int]]


@dataclass(frozen=True)
class PromisedPlan:
    """Of one measure, for which there is `rho` of `campaign_rho`, and of that `fit_rho` for a fit.
    `lists` are the public ones by dimension, each with the place for all others; `columns` what is
    published of their cells; `worth` is that of one conversion in the metric; `budgets` is what
    each slot may be charged for measurement, in pico-rho; `rows` is the strategy B of personal
    budgets."""

    campaign_rho: Fraction
    rho: Fraction
    substitution: bool
    lists: dict[str, tuple[str, ...]]
    columns: Columns
    worth: float
    slots: int
    privacy: PrivacySection
    fit_rho: Fraction
    budgets: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]

    @property
    def is_personal(self) -> bool:
        return self.privacy.mechanism == "personal-budget"

    @property
    def two(self) -> int:
        """The squared distance of neighbours, of two people's shifts where one would do: replacing
        a person takes one vector >= 0 away and adds another, whose squares add up."""
        return 2 if self.substitution else 1

    @property
    def split(self) -> dict[str, Fraction]:
        """How much of rho each part may be charged."""
        left = self.rho - self.fit_rho
        parts = {FIT: self.fit_rho} if self.fit_rho else {}
        if self.is_personal:
            section = self.privacy.personal_budget
            share = Fraction(0)
            if section.allowance is None:
                share = Fraction(str(section.histogram_share))
            return parts | {MEASUREMENT: left * (1 - share), HISTOGRAM: left * share}
        chosen = self.privacy.adsbpc
        measured, first, track = (left * Fraction(str(share)) for share in chosen.shares)
        if chosen.bounds == "fixed":
            return parts | {MEASUREMENT: left}
        if chosen.bounds == "histogram":
            return parts | {MEASUREMENT: measured, HISTOGRAM: first + track}
        if self.slots <= chosen.quantile_slots:
            return parts | {MEASUREMENT: measured, QUANTILE: first + track}
        return parts | {MEASUREMENT: measured, QUANTILE: first, SPARSE_VECTOR: track}

    @property
    def cut_ratio(self) -> int:
        """How much more coarsely what was cut is counted."""
        return min(16, 2 + isqrt(self.columns.cells))

    def limits(self, record: Record) -> list[int]:
        """What a person may have cost after each released slot: of the limit, the part that the
        slots so far were charged of what all slots may be."""
        charged, found = 0, []
        for slot in record.in_order():
            charged += slot.charged(MEASUREMENT)
            found.append(LIMIT * charged // sum(self.budgets))
        return found


def plans_of(record: Record) -> dict[str, PromisedPlan]:
    """What the ledger's entry says that the campaign promised, and how it was to spend it, by
    measure. A campaign without declared measures has one, named by its metric."""
    promise: dict[str, Any] = record.opening["promise"]
    privacy = PrivacySection.model_validate(kept_privacy(promise["privacy"]))
    require(
        record.terms["adjacency"] in ("add-remove", "substitute")
        and privacy.adjacency == record.terms["adjacency"],
        f"the scope promises adjacency {record.terms['adjacency']!r}, the campaign "
        f"{privacy.adjacency.value!r}",
    )
    rho, fit_rho = Fraction(promise["exact"]["rho"]), fit_of(record)
    declared = promise.get("measures")
    if declared is None:
        own = {**promise["campaign"], "by": ["publisher"], "weights": [0, 1]}
        name = own.get("metric", "conversions")
        return {name: _plan(record, name, own, privacy, rho, fit_rho)}
    if len(declared) == 1:
        return {
            name: _plan(record, name, own, privacy, rho, fit_rho) for name, own in declared.items()
        }
    stated = [own.get("share") for own in declared.values()]
    equal = Fraction(1, len(declared))
    shares = [equal if share is None else Fraction(str(share)) for share in stated]
    require(sum(shares) == 1, f"the shares of measures add up to {float(sum(shares))}")
    return {
        name: _plan(record, name, own, privacy, (rho - fit_rho) * share, Fraction(0))
        for (name, own), share in zip(declared.items(), shares, strict=True)
    }


def fit_of(record: Record) -> Fraction:
    """What the campaign may spend on a fit of its attribution model."""
    fit = record.opening["promise"].get("attribution", {}).get("fit") or {}
    return Fraction(str(fit["rho"])) if fit.get("rho") is not None else Fraction(0)


def _plan(
    record: Record,
    name: str,
    measure: Mapping[str, Any],
    privacy: PrivacySection,
    rho: Fraction,
    fit_rho: Fraction,
) -> PromisedPlan:
    promise, opening = record.opening["promise"], record.of(name).opening
    public = {"publisher": promise["campaign"]["publishers"]} | {
        dimension: section["values"] for dimension, section in promise.get("dimensions", {}).items()
    }
    lists = {dimension: (*public[dimension], "other") for dimension in measure["by"]}
    plan = PromisedPlan(
        Fraction(promise["exact"]["rho"]),
        rho,
        record.terms["adjacency"] == "substitute",
        lists,
        Columns(
            tuple(map(len, lists.values())),
            tuple(measure["weights"]),
            measure.get("metric") in _OF_PEOPLE,
        ),
        float(measure.get("value_cap") or 1),
        int(promise["campaign"]["slots"]),
        privacy,
        fit_rho,
        tuple(opening["slot_pico_rho"]),
        tuple(tuple(row) for row in opening.get("strategy", ())),
    )
    entries = [
        *plan.budgets, *plan.columns.weights, *(entry for row in plan.rows for entry in row),
    ]  # fmt: skip
    require(
        all(type(entry) is int for entry in entries),
        "budgets, weights or the strategy are no whole numbers",
    )
    return plan


def gram(rows: Rows) -> dict[tuple[int, int], int]:
    """G = B^T B over all rows, those of the future too, by (slot, earlier slot or the same).

    >>> gram([[2], [1, 3]])
    {(1, 1): 5, (2, 1): 3, (2, 2): 9}
    """
    count = len(rows)
    columns = [[rows[t][s] for t in range(s, count)] for s in range(count)]
    return {
        (t + 1, s + 1): sum(a * b for a, b in zip(columns[t], columns[s][t - s :], strict=True))
        for t in range(count)
        for s in range(t + 1)
    }
