"""Shapley values of small games, many at once.

A game of k players is an array of 2^k values, one for each coalition, whose members are the bits of
its index.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]


def dividends(games: Reals) -> Reals:
    """What each coalition adds beyond all its parts (Harsanyi 1963): the inverse of summing over
    subsets. `games` has a game in each row; the empty coalition's value is its first."""
    found = np.array(games, dtype=np.float64)
    for player in range(_players(games)):
        halves = found.reshape(found.shape[0], -1, 2, 1 << player)
        halves[:, :, 1, :] -= halves[:, :, 0, :]
    return found


def shapley_values(games: Reals) -> Reals:
    """Every player's Shapley value in each game: its equal part of the dividend of every coalition
    that it is in.

    >>> shapley_values(np.array([[0.0, 1.0, 2.0, 4.0]])).tolist()
    [[1.5, 2.5]]
    """
    players = _players(games)
    coalitions = np.arange(1 << players)
    sizes = np.array([max(int(coalition).bit_count(), 1) for coalition in coalitions])
    parts = dividends(games) / sizes
    members = (coalitions[:, None] >> np.arange(players)) & 1
    return np.asarray(parts @ members.astype(np.float64))


def _players(games: Reals) -> int:
    players = int(games.shape[1]).bit_length() - 1
    assert games.shape[1] == 1 << players
    return players
