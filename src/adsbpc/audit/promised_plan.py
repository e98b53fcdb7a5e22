"""What a campaign promised, from the ledger's entry for it, and the auditor's own numbers.

Nothing here is taken from the code that releases: where that changes a number, the audit fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from math import isqrt, sqrt
from typing import Any

from adsbpc.audit.claims import require
from adsbpc.audit.columns import Columns
from adsbpc.audit.long_strategy import ShiftedRows
from adsbpc.audit.record import Record
from adsbpc.model.release_spec import PrivacySection, kept_privacy

# Amounts in the ledger are whole numbers of this part of rho.
PICO = 10**12
# A conversion is this many grid units.
CONVERSION = 720_720
# What one person may cost over a campaign under personal budgets, || B z ||^2.
LIMIT = 2**88
# The entry that stands for 1 in a strategy, and in that of a long campaign.
_ONE, _ONE_LONG = 2**10, 2**13
# Of every budget, the part for what is let in; the rest is for counting what was cut. In campaigns
# by slots it is one column that counts. Those by rows have two from so many cells on, the second of
# which may spend so much, or less as the root of cells says, in ten-thousandths.
_KEPT_BY_SLOTS = Fraction(19, 20)
_FIRST_BY_ROWS, _SECOND_BY_ROWS, _SECOND_PER_ROOT = Fraction(2, 100), Fraction(5, 100), 0.22
_SECOND_FROM = 5
# Where everything together has a column, the first of them may spend the root of what that column
# is of what a conversion costs, in hundredths, up to so much.
_MOST_FOR_FINE = 0.2
# Up to so many columns, sums of several views have cells of their own in campaigns by rows.
_MOST_APART = 4096
# Histograms may have these parts of rho: the first, or the last by the number of cells, but no less
# than the second.
_MOST_LOOKED, _LEAST_LOOKED, _LOOKED_BY_CELLS = Fraction(5, 100), Fraction(3, 100), Fraction(3, 2)
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
    budgets, which in a long campaign has the same column again and again, and `by_rows` says that
    its rows may hold the past as it was let in again."""

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
    rows: Rows
    by_rows: bool
    # Whether everybody is in one arm, once: then nothing needs to be found out by histograms, and
    # nobody can be cut.
    one_figure_each: bool = False
    # Which of the lists has arms of a trial, if any.
    arms_list: int | None = None
    # Whether AdsBPC adds what its bounds cut, and whether contributions may be no whole numbers.
    adds_cut: bool = False
    is_value: bool = False
    # What each slot's histogram of needs may be charged, in pico-rho, if the plan names them.
    looks: dict[int, int] | None = None
    # Whether what budgets cut is counted finely, for everything together.
    has_fine_cut: bool = False
    # Whether counts of what budgets cut are added nearly whole or not at all.
    decides_cut: bool = False

    @property
    def is_long(self) -> bool:
        """Whether books have running sums, which charge people no less than they cost."""
        return isinstance(self.rows, ShiftedRows)

    @property
    def one(self) -> int:
        """The entry that stands for 1 in the strategy."""
        return _ONE_LONG if self.is_long else _ONE

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
            if section.allowance is None and not self.one_figure_each:
                share = self._looked
                if section.histogram_share is not None:
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
    def _looked(self) -> Fraction:
        """The part of rho for histograms, where the campaign file leaves that open."""
        if self.is_long:
            return _MOST_LOOKED
        return max(min(_MOST_LOOKED, _LOOKED_BY_CELLS / self.finest_cells), _LEAST_LOOKED)

    @property
    def finest_cells(self) -> int:
        """How many there are, or sums where people are counted once."""
        return self.columns.cells if self.columns.once else self.columns.sizes[-1]

    @property
    def cut_ratio(self) -> int:
        """How much more coarsely what was cut is counted."""
        return min(16, 2 + isqrt(self.columns.cells))

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """Parts of every budget by tier: for what is let in, and for each column after the cells,
        which counts what was cut."""
        if not self.by_rows:
            return _KEPT_BY_SLOTS, 1 - _KEPT_BY_SLOTS
        cuts = [_FIRST_BY_ROWS]
        if self.has_fine_cut:
            weights = self.columns.weights
            part = weights[0] / sqrt(sum(weight**2 for weight in weights))
            cuts = [Fraction(str(min(_MOST_FOR_FINE, round(part, 2))))]
        if self.columns.cells >= _SECOND_FROM:
            rooted = Fraction(str(round(_SECOND_PER_ROOT / sqrt(self.columns.cells), 4)))
            cuts.append(min(_SECOND_BY_ROWS, rooted))
        return 1 - sum(cuts, Fraction(0)), *cuts

    @property
    def cuts(self) -> int:
        """How many columns count what was cut."""
        return len(self.shares) - 1

    def limits(self, record: Record) -> list[tuple[int, ...]]:
        """What a person may have cost after each released slot, by tier: of the limit, the part
        that the slots so far were charged of what all slots may be. Tiers are rounded down, so that
        together they never pass the whole."""
        charged, found = 0, []
        for slot in record.in_order():
            charged += slot.charged(MEASUREMENT)
            whole = Fraction(LIMIT * charged, sum(self.budgets))
            if self.by_rows:
                found.append(tuple(int(whole * share) for share in self.shares))
            else:
                kept = int(int(whole) * self.shares[0])
                found.append((kept, int(whole) - kept))
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
    public |= {"arm": [name for name, _ in promise.get("lift", {}).get("arms", ())]}
    once, by_rows = measure.get("metric") in _OF_PEOPLE, opening.get("by_rows", False) is True
    worth = float(measure.get("value_cap") or 1)
    lists = {dimension: (*public[dimension], "other") for dimension in measure["by"]}
    plan = PromisedPlan(
        Fraction(promise["exact"]["rho"]),
        rho,
        record.terms["adjacency"] == "substitute",
        lists,
        _columns(tuple(map(len, lists.values())), tuple(measure["weights"]), once, by_rows),
        worth**2 if measure.get("metric") == "squared_value" else worth,
        int(promise["campaign"]["slots"]),
        privacy,
        fit_rho,
        tuple(opening["slot_pico_rho"]),
        _rows(opening, int(promise["campaign"]["slots"])),
        by_rows,
        once and measure["by"] == ["arm"],
        measure["by"].index("arm") if "arm" in measure["by"] else None,
        opening.get("adds_cut", False) is True,
        measure.get("value_cap") is not None,
        dict(opening["looks"]) if opening.get("looks") else None,
        opening.get("has_fine_cut", False) is True,
        opening.get("decides_cut", False) is True,
    )
    of_strategy = plan.rows.numbers if isinstance(plan.rows, ShiftedRows) else chain(*plan.rows)
    entries = [*plan.budgets, *plan.columns.weights, *of_strategy]
    require(
        all(type(entry) is int for entry in entries),
        "budgets, weights or the strategy are no whole numbers",
    )
    return plan


def _rows(opening: Mapping[str, Any], slots: int) -> Rows:
    if not opening.get("decays"):
        return tuple(tuple(row) for row in opening.get("strategy", ()))
    (first,), weights, rates = opening["decays"]
    return ShiftedRows(slots, first, tuple(weights), tuple(rates))


def _columns(
    lengths: tuple[int, ...], weights: tuple[int, ...], once: bool, by_rows: bool
) -> Columns:
    found = Columns(lengths, weights, once)
    several = by_rows and not once and len(found.views) > 1
    return replace(found, apart=True) if several and found.count <= _MOST_APART else found
