"""How far one user can move what is released. Squares are integers, so nothing is rounded.

Every function takes the adjacency: there is no default.
"""

from __future__ import annotations

from adsbpc.errors import PrivacyError
from adsbpc.model.guarantee import Adjacency
from adsbpc.model.layout import Layout


def check_bound(bound: int) -> int:
    """A contribution bound in grid units; a real number here would break the proof."""
    if isinstance(bound, bool) or not isinstance(bound, int) or bound < 1:
        raise PrivacyError(f"bound = {bound!r}: expected a whole number of grid units, at least 1")
    return bound


def totals_squared(adjacency: Adjacency, layout: Layout, bound: int) -> int:
    """Squared L2 sensitivity of the columns of all views, where a user's weights in cells are >= 0
    and add up to at most `bound`.

    Adding a user adds to each view a vector with L1 norm, hence L2 norm, <= weight bound, and views
    stand side by side, so that squares add up. Substituting one takes a vector away and adds
    another. Distances are convex, so that the largest is between corners: nothing and the bound in
    one cell, which is like adding; or the bound in two cells, that are different columns in every
    view that has several, each of which is moved by sqrt(2) weight bound, and the same in others.
    """
    check_bound(bound)
    added = sum(view.weight**2 for view in layout.views)
    if adjacency is Adjacency.ADD_REMOVE:
        return added * bound**2
    apart = 2 * sum(view.weight**2 for view in layout.views if view.columns > 1)
    return max(added, apart) * bound**2


def histogram_squared(adjacency: Adjacency) -> int:
    """Squared L2 sensitivity of a histogram with each user in one bin at most."""
    return 2 if adjacency is Adjacency.SUBSTITUTE else 1


def weighed_squared(adjacency: Adjacency, norm: int) -> int:
    """Squared L2 sensitivity of a sum of users' vectors >= 0, each with L2 norm <= norm.

    Adding a user adds such a vector. Substituting one moves the sum by x - x', whose square is
    ||x||^2 + ||x'||^2 - 2 x x', and x x' >= 0.
    """
    check_bound(norm)
    return 2 * norm**2 if adjacency is Adjacency.SUBSTITUTE else norm**2


def filtered_squared(adjacency: Adjacency, limit: int) -> int:
    """Squared L2 sensitivity of all rows of a strategy together, where each user's filter keeps
    || B z ||^2 <= limit.

    Adding a user moves the rows by B z. Substituting one moves them by B z - B z', whose square is
    ||B z||^2 + ||B z'||^2 - 2 z^T G z': at most twice the limit, because z, z' and G are >= 0.
    """
    return 2 * limit if adjacency is Adjacency.SUBSTITUTE else limit


def counts_are_monotone(adjacency: Adjacency) -> bool:
    """Whether a user moves all counts "users with ..." the same way: only by being added."""
    return adjacency is Adjacency.ADD_REMOVE
