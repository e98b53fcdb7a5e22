"""How much one user's journey counts in a set of counts that is released once.

A user adds a vector of whole numbers >= 0: which coalition it saw, which pairs, which transitions.
All of it is multiplied by one weight, so that its L2 norm is at most COUNT_UNITS, in integers.

Must never: give a user a weight that depends on anybody else, or round one up.
"""

from __future__ import annotations

from math import isqrt

from adsbpc.errors import PrivacyError

# The L2 norm that a user's vector may have after weighing.
COUNT_UNITS = 2**20


def full_weight(full_squared: int) -> int:
    """The weight of every user whose vector has a squared norm of `full_squared` or less: the
    largest that holds such a vector to COUNT_UNITS. Public, fixed before any data is seen."""
    if not 1 <= full_squared <= COUNT_UNITS**2:
        raise PrivacyError(f"a squared norm of {full_squared}: expected 1 to {COUNT_UNITS**2}")
    return isqrt(COUNT_UNITS**2 // full_squared)


def user_weight(squared: int, full_squared: int) -> int:
    """The weight of a user whose own vector has a squared norm of `squared`: never above the full
    one, and weight^2 squared <= COUNT_UNITS^2.

    >>> user_weight(4, 4), user_weight(1, 4), user_weight(16, 4)
    (524288, 524288, 262144)
    """
    return min(full_weight(full_squared), isqrt(COUNT_UNITS**2 // max(squared, 1)))
