"""Numbers about privacy as people read them: rounded so that no promise looks better than it is."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context


def rounded_up(value: float, digits: int = 6) -> str:
    """A loss, such as epsilon, with some significant digits and never below its value."""
    return f"{Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(value):g}"


def rounded_down(value: float, digits: int = 6) -> str:
    """A budget, such as rho, with some significant digits and never above its value."""
    return f"{Context(prec=digits, rounding=ROUND_FLOOR).create_decimal_from_float(value):g}"
