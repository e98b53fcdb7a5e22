"""A made-up stand-in for the Criteo Sponsored Search Conversion Log, for those without the log.

Nobody in it is real. It is built to agree with what is published about the log:

- the paper: 1,608,081 users with conversions, 1,732,721 conversions, 287 publishers, and no user
  with more than 44 conversions: all four exactly, at full size;
- 94.15% convert once, the others 2.245 times on average with a standard deviation of 0.752, and
  45 pairs of a user and a publisher have 10 conversions or more. Taken for users, these shares
  contradict the totals (they would make 1,725,201 conversions); taken for pairs of a user and a
  publisher, they agree with them and leave 7,009 users with a second publisher. So they are taken
  for pairs; of users, 93.7% convert once;
- the largest publisher has 40% of the converting users, the next four 4.4%, 3.9%, 3.8% and 2.2%.

Not published, and chosen here: how the other publishers share the rest (a power law), the journeys
before a conversion, and the days. Repeat conversions mostly come in pairs on one day, seldom in
threes: the paper's ablation loses far more on Criteo to a bound of one conversion a day than to
two, and does best with three. Do not read results on journeys or days as results about the log.

Last, first and uniform touch share users, days, conversions and journeys; only credits differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from adsbpc.lab.datasets.dataset import Dataset, dataset_of, numbered
from adsbpc.model import UNITS_PER_CONVERSION

Whole = NDArray[np.int64]
Shares = NDArray[np.float64]

CRITEO_USERS = 1_608_081
CRITEO_PUBLISHERS = 287
CRITEO_LARGEST_USER = 44

# Conversions of a pair of a user and a publisher -> how many pairs have that many.
PAIRS = {
    1: 1_520_607, 2: 80_703, 3: 8_299, 4: 3_292, 5: 1_306, 6: 518, 7: 206, 8: 82, 9: 32, 10: 12,
    11: 9, 12: 6, 13: 5, 14: 3, 15: 2, 16: 2, 18: 1, 20: 1, 22: 1, 25: 1, 30: 1, 44: 1,
}  # fmt: skip
_HEAVY = 10

LARGEST_SHARES = (0.40, 0.044, 0.039, 0.038, 0.022)
_TAIL_EXPONENT = 0.6

# Monday to Sunday.
_WEEKDAYS = np.array([1.02, 1.00, 0.98, 0.97, 0.95, 1.00, 1.08])
# The chance that the next conversion of a user falls on the day of the one before, by how many
# that day has already: one, two, three or more.
_SAME_DAY = np.array([0.85, 0.17, 0.50])
# Otherwise, the chance that it follows within some days instead of on any day.
_SOON = 0.5
_SOON_STEP = 0.4

# Clicks of a journey: most have one; eight at most, so that the grid shares exactly.
_ONE_CLICK = 0.6
_MOST_CLICKS = 8
_SAME_PUBLISHER = 0.5


@dataclass(frozen=True)
class _Conversions:
    """One entry a conversion, a user's next to each other; `per_user` says how many each has."""

    user: Whole
    publisher: Whole
    per_user: Whole


@dataclass(frozen=True)
class _Credits:
    """One entry a credit: which conversion it belongs to, to whom it goes, how much it is."""

    conversion: Whole
    publisher: Whole
    weight: Whole | None


def make_criteo_surrogate(
    name: str, touch: str, slots: int, rng: Generator, users: int | None, copies: int
) -> Dataset:
    """All chance is used before `touch` is looked at: the three sets differ in credits only."""
    people = CRITEO_USERS if users is None else users
    shares = publisher_shares()
    conversions = _conversions(rng, people, shares)
    day = np.stack([_days(rng, conversions.per_user, slots) for _ in range(copies)])
    credits = _credits(rng, conversions, shares, touch)
    return dataset_of(
        name,
        f"Criteo surrogate, {touch} touch (made up to match published statistics)",
        people,
        slots,
        numbered("partner", CRITEO_PUBLISHERS, digits=3),
        CRITEO_LARGEST_USER * copies,
        user=np.tile(conversions.user[credits.conversion], copies),
        day=day[:, credits.conversion].ravel(),
        publisher=np.tile(credits.publisher, copies),
        weight=None if credits.weight is None else np.tile(credits.weight, copies),
    )


def publisher_shares() -> Shares:
    """Of converting users, by publisher: five published shares, then a power law below them."""
    tail = np.arange(1, CRITEO_PUBLISHERS - len(LARGEST_SHARES) + 1) ** -_TAIL_EXPONENT
    rest = 1 - sum(LARGEST_SHARES)
    return np.concatenate([LARGEST_SHARES, tail * (rest / tail.sum())])


def _conversions(rng: Generator, users: int, shares: Shares) -> _Conversions:
    """Everyone has one publisher, the heaviest first; a few have one conversion with a second."""
    all_pairs = sum(PAIRS.values())
    pairs = round(users * all_pairs / CRITEO_USERS)
    second_pairs = pairs - users
    sizes = np.array(sorted(PAIRS, reverse=True))
    # Rounding the running totals keeps every scale's number of pairs, and full size exact.
    upto = np.rint(np.cumsum([PAIRS[size] for size in sizes]) * (pairs / all_pairs))
    counts = np.repeat(sizes, np.diff(upto, prepend=0.0).astype(np.int64))
    publisher = rng.choice(shares.size, pairs, p=shares)

    # The heaviest users get no second publisher, so that nobody passes the largest.
    heavy = int(np.count_nonzero(counts >= _HEAVY))
    owner = heavy + rng.choice(users - heavy, second_pairs, replace=False)
    second = publisher[users:]
    while (same := second == publisher[owner]).any():
        second[same] = rng.choice(shares.size, np.count_nonzero(same), p=shares)

    user_of_pair = np.concatenate([np.arange(users), owner])
    by_user = np.argsort(user_of_pair, kind="stable")
    counts, user_of_pair, publisher = counts[by_user], user_of_pair[by_user], publisher[by_user]
    user = np.repeat(user_of_pair, counts)
    return _Conversions(user, np.repeat(publisher, counts), np.bincount(user, minlength=users))


def _days(rng: Generator, per_user: Whole, slots: int) -> Whole:
    """A day for each conversion, from 0: by weekday, and repeats near the conversion before."""
    weekday = _WEEKDAYS[np.arange(slots) % 7]
    day = rng.choice(slots, int(per_user.sum()), p=weekday / weekday.sum())
    first = np.cumsum(per_user) - per_user
    repeating = np.flatnonzero(per_user > 1)
    on_this_day = np.ones(repeating.size, dtype=np.int64)
    place = 1
    while repeating.size:
        here = first[repeating] + place
        before = day[here - 1]
        stays = rng.random(here.size) < _SAME_DAY[np.minimum(on_this_day, _SAME_DAY.size) - 1]
        later = before + rng.geometric(_SOON_STEP, here.size)
        soon = (rng.random(here.size) < _SOON) & (later < slots)
        day[here] = np.where(stays, before, np.where(soon, later, day[here]))
        on_this_day = np.where(stays, on_this_day + 1, 1)
        place += 1
        more = per_user[repeating] > place
        repeating, on_this_day = repeating[more], on_this_day[more]
    return day


def _credits(rng: Generator, conversions: _Conversions, shares: Shares, touch: str) -> _Credits:
    """A journey ends at the publisher of its conversion; earlier clicks are there or elsewhere."""
    count = conversions.user.size
    clicks = np.minimum(rng.geometric(_ONE_CLICK, count), _MOST_CLICKS)
    end = np.cumsum(clicks)
    conversion = np.repeat(np.arange(count), clicks)
    own = conversions.publisher[conversion]
    # Many are clicked who sell little: flatter shares move credit away from the largest.
    flatter = np.sqrt(shares)
    elsewhere = rng.choice(shares.size, own.size, p=flatter / flatter.sum())
    clicked = np.where(rng.random(own.size) < _SAME_PUBLISHER, own, elsewhere)
    clicked[end - 1] = conversions.publisher
    if touch == "uniform":
        return _Credits(conversion, clicked, UNITS_PER_CONVERSION // clicks[conversion])
    chosen = end - 1 if touch == "last" else end - clicks
    return _Credits(conversion[chosen], clicked[chosen], None)
