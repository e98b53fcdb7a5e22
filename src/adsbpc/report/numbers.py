"""Numbers as people read them: no promise looks better and no estimate sharper than it is."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import ceil, floor, log10

from adsbpc.model import Budget
from adsbpc.model.measure_spec import MetricName


def rounded_up(value: float | Fraction, digits: int = 6) -> str:
    """A loss, such as epsilon, with some significant digits and never below its value.

    >>> rounded_up(5.3), rounded_up(1.00000001), rounded_up(200.3, 3)
    ('5.3', '1.00001', '201')
    """
    return _digits(Context(prec=digits, rounding=ROUND_CEILING), value)


def rounded_down(value: float | Fraction, digits: int = 6) -> str:
    """A budget that is left, with some significant digits and never above its value."""
    return _digits(Context(prec=digits, rounding=ROUND_FLOOR), value)


def budget_texts(budget: Budget) -> tuple[str, str, str]:
    """What is spent (rounded up), the limit and what is left (rounded down), to six decimals. A
    limit is as somebody wrote it; that of a campaign that was closed is what it has spent.

    >>> budget_texts(Budget(10**12, 10**12 - 44))
    ('1', '1', '0')
    >>> budget_texts(Budget(651969956393, 651969956393))
    ('0.65197', '0.65197', '0')
    """
    spent = f"{ceil(budget.spent * 10**6) / 10**6:.10g}"
    limit = f"{float(budget.limit):.12g}" if budget.left else spent
    return spent, limit, f"{floor(budget.left * 10**6) / 10**6:.10g}"


def decimals_of(metric: MetricName, standard_error: float) -> int:
    """How many decimals an estimate deserves: counts down to their noise, money cents or none.

    >>> decimals_of("conversions", 12.0), decimals_of("conversions", 0.3)
    (0, 1)
    >>> decimals_of("value", 3.0), decimals_of("value", 250.0)
    (2, 0)
    """
    if metric == "value":
        return 2 if standard_error < 10 else 0
    if standard_error <= 0:
        return 0
    return min(max(-floor(log10(standard_error)), 0), 2)


def amount(value: float, decimals: int) -> str:
    """With thousands apart, and without a minus sign before zero.

    >>> amount(1234.5, 0), amount(-0.2, 0)
    ('1,234', '0')
    """
    return f"{round(value, decimals) + 0.0:,.{decimals}f}".replace("-", "\N{MINUS SIGN}")


def about(size: float) -> str:
    """Two digits of a size that nobody needs exactly.

    >>> about(11.3137), about(0.5236), about(1340.0)
    ('11', '0.52', '1,300')
    """
    return f"{float(f'{size:.1e}'):,.10g}"


def interval(low: float, high: float, decimals: int) -> str:
    return f"{amount(low, decimals)} to {amount(high, decimals)}"


def percent(share: float, digits: int = 0) -> str:
    return f"{100 * share:.{digits}f}%"


def small(chance: float) -> str:
    """As people write it.

    >>> small(1e-6), small(0.001)
    ('1e-6', '0.001')
    """
    return f"{chance:g}".replace("e-0", "e-")


def one_in(chance: float) -> str:
    """A small chance in words, never smaller than it is.

    >>> one_in(1e-6), one_in(3e-5)
    ('1 in 1,000,000', '1 in 33,333')
    """
    return f"1 in {floor(1 / Fraction(str(chance))):,}"


def _digits(context: Context, value: float | Fraction) -> str:
    exact = Fraction(value)
    rounded = context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return f"{float(rounded):.{context.prec}g}"
