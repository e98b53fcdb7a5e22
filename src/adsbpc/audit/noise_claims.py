"""Claims about noise: its scale is what the charges pay for, in exact fractions, and what was added
to the exact sums looks like noise of that scale."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import log, pi, sqrt

from adsbpc.audit.claims import BrokenClaimError, Claim, claim, require
from adsbpc.audit.promised_plan import (
    CONVERSION,
    FIT,
    FIT_NORM,
    HISTOGRAM,
    LIMIT,
    MEASUREMENT,
    PICO,
    PromisedPlan,
)
from adsbpc.audit.record import Record
from adsbpc.audit.stretches import released_rows

# How often noise that is as it should be fails a claim, at most.
FALSE_ALARM = 1e-9


def scale_of_rows(record: Record, plan: PromisedPlan) -> Claim:
    """Personal budgets: one scale S for all rows, with limit / (2 S^2) <= rho."""

    def check() -> str:
        scales = {slot.release["scale"] for slot in record.in_order()}
        require(len(scales) == 1, f"scales {sorted(scales)}: expected one for all slots")
        (scale,) = scales
        cost = _cost(plan.two * LIMIT, scale)
        rho = Fraction(sum(plan.budgets), PICO)
        require(cost <= rho, f"noise of scale {scale} costs {float(cost):.15g}, above {float(rho)}")
        return f"{plan.two} x 2^88 / (2 S^2) <= {float(rho):.12g} for S = {scale:.6g}"

    return claim("noise scale", f"{len(record.slots):,} slots, in exact fractions", check)


def scales_by_bound(record: Record, plan: PromisedPlan) -> Claim:
    """AdsBPC: a person adds at most the bound to a slot, so moves the columns of a view by at most
    its weight times the bound, or sqrt(2) times that if replaced by one in another column."""

    def check() -> str:
        factor = plan.columns.squared(1, plan.substitution)
        bounds = []
        for number, slot in enumerate(record.in_order(), start=1):
            bound, scale = slot.release["bound"], slot.release["scale"]
            require(
                type(bound) is int and bound >= 1,
                f"slot {number} has a bound of {bound!r}: expected a whole number above 0",
            )
            require(
                (bound, scale) == (slot.step["bound"], float.fromhex(slot.step["scale"])),
                f"slot {number}: bound or scale are not what the mechanism used",
            )
            cost = _cost(factor * (bound * CONVERSION) ** 2, scale)
            charged = Fraction(slot.charged(MEASUREMENT), PICO)
            require(
                cost <= charged,
                f"slot {number}: noise of scale {scale} under a bound of {bound} costs "
                f"{float(cost):.15g}, and {float(charged):.15g} was charged",
            )
            bounds.append(bound)
        return f"{factor} x bound^2 / (2 S^2) <= charge; bounds {min(bounds)} to {max(bounds)}"

    return claim("noise scale", f"{len(record.slots):,} slots, in exact fractions", check)


def fit(record: Record, two: int) -> Claim:
    """Counts of a fit: one person's vector has a norm of at most 2^20. Replacing a person moves
    `two` of them."""

    def check() -> str:
        made = [slot for slot in record.in_order() if FIT in slot.charges]
        require(len(made) <= 1, "a fit was made more than once")
        if not made:
            return "not made yet"
        scale = made[0].release["fit"]["scale"]
        cost, charged = _cost(two * FIT_NORM**2, scale), made[0].charges[FIT]
        require(
            cost <= Fraction(charged, PICO),
            f"noise of scale {scale} costs {float(cost):.15g}, and {charged} pico-rho were charged",
        )
        return f"{two} x 2^40 / (2 S^2) <= {charged} pico-rho for S = {scale:.6g}"

    return claim("attribution fit", "the scale of its noise, in exact fractions", check)


def _cost(squared: int, scale: float) -> Fraction:
    """rho of (discrete) Gaussian noise; the float means exactly the number that it is."""
    require(scale > 0, f"a noise scale of {scale}")
    return Fraction(squared) / (2 * Fraction(scale) ** 2)


def histograms(record: Record, plan: PromisedPlan, newcomers: Sequence[int] | None) -> Claim:
    """A histogram has everybody so far in one bin, so it adds up to their number, but for the noise
    that its charge pays for. `newcomers` counts the people in the books by slot."""

    def check() -> str:
        if newcomers is None:
            raise BrokenClaimError("cannot be checked: the books do not say how many people")
        found, is_fine, chance = [], True, 1.0
        for number, slot in enumerate(record.in_order(), start=1):
            if not slot.release["histogram"]:
                continue
            deviation = sqrt(plan.two / (2 * slot.charges[HISTOGRAM] / PICO))
            # Noise in integers with a smaller deviation is mostly 0: to be small proves nothing.
            is_fine &= deviation >= 1
            bins = slot.release["histogram"]
            noise, spread = sum(bins) - sum(newcomers[:number]), deviation * sqrt(len(bins))
            found.append(noise / spread)
            # At most: of whole numbers that are no larger. A single 0 is nothing strange.
            chance *= min(1.0, (2 * abs(noise) + 1) / (spread * sqrt(2 * pi)))
        if not found:
            return "there is none"
        return _fits(found, even_if_small=not is_fine or chance > FALSE_ALARM)

    checked = "sums of released counts against people in the books, by charged noise"
    return claim("histograms", checked, check)


def noise(record: Record, plan: PromisedPlan) -> Claim:
    """What was published is, row by row, the exact sums of what the row holds, and noise of the
    scale."""

    def check() -> str:
        found, held, cells = [], list[list[int]](), plan.columns.cells
        for slot, row in zip(record.in_order(), released_rows(record, plan), strict=True):
            in_columns = [
                [*plan.columns.of(moved[:cells]), *moved[cells:]] for moved in row.moved()
            ]
            held = in_columns if row.is_renewal else held + in_columns
            entries, values = plan.rows[row.slot - 1], slot.release["values"]
            for value, moved in zip(values, zip(*held, strict=True), strict=True):
                exact = sum(entry * move for entry, move in zip(entries, moved, strict=True))
                found.append((value - exact) / slot.release["scale"])
        return _fits(found, even_if_small=False)

    rows = f"{len(record.slots):,} rows of {plan.columns.count + plan.cuts:,} values"
    return claim("noise", f"{rows} less the exact sums, by the scale", check)


def _fits(deviates: Sequence[float], even_if_small: bool) -> str:
    """Whether numbers may be independent normal deviates: none too large, their mean square neither
    too large nor too small.

    P(one >= k) <= 2 exp(-k^2 / 2), and P(mean square of n beyond x) <= (x e^(1 - x))^(n / 2) on
    either side of 1 (Chernoff). Each of the three has a third of the false alarms.
    """
    count, each = len(deviates), FALSE_ALARM / 3
    most = sqrt(2 * log(2 * count / each))
    largest = max(map(abs, deviates))
    square = sum(deviate**2 for deviate in deviates) / count
    low = _mean_square(count, each, 0.0, 1.0)
    high = _mean_square(count, each, 2 + 4 * log(1 / each) / count, 1.0)
    told = (
        f"largest {largest:.3g} deviations (below {most:.3g}), mean square {square:.3g} "
        f"({low:.3g} to {high:.3g})"
    )
    require(largest <= most and square <= high, f"too large: {told}")
    require(even_if_small or square >= low, f"too small: {told}")
    return f"{told}; false alarms below {FALSE_ALARM:g}"


def _mean_square(count: int, chance: float, outside: float, inside: float) -> float:
    """Where (x e^(1 - x))^(count / 2) = chance, between a point outside and 1."""
    for _ in range(100):
        middle = (outside + inside) / 2
        beyond = count / 2 * (log(middle) + 1 - middle) < log(chance)
        outside, inside = (middle, inside) if beyond else (outside, middle)
    return outside
