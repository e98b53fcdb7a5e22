"""Data sets that are known by how many conversions each user has: three made up, one published.

The made-up ones follow the paper: 1,000,000 users and 1,000 publishers; a user's conversions are
drawn from a distribution, and each falls on a day and a publisher of its own, uniformly at random.

- zipf: Zipf(3) + 10, with GS = 50. The mean is 10 + zeta(2)/zeta(3) = 11.3684; the paper counts
  11,361,742 conversions. The tail of Zipf has no end: at this size some 250 users have more than
  50, the largest several hundred.
- normal: Normal(50, 30) rounded down, at least 0, with GS = 150. The mean is 50.12, the nearest
  to the paper's 50,193,976 conversions (rounded to the nearest, it would be 50.59). Some 400 users
  have more than 150.
- uniform: whole numbers from 1 to 256, with GS = 256. One million users have 128.5 million
  conversions; the paper counts 51,180,247, which no reading of "Uniform(1, 256)" for a million
  users gives. The distribution and the number of users are kept, the total is not; 398,290 users
  would come close to it.

A user above GS keeps all conversions here: to cap them is a mechanism's work.

The published one, facebook, is "Facebook sales conversion" from Kaggle (column Total_Conversion): a
row is a group of users, and the paper takes a group for a user. It has no days that could be used;
the paper distributes the conversions over n days.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from adsbpc.errors import SpecError
from adsbpc.lab.datasets.dataset import Dataset, dataset_of, numbered

Counts = NDArray[np.int64]

PAPER_USERS = 1_000_000


@dataclass(frozen=True)
class CountedSet:
    """A distribution of conversions per user, with the paper's public facts about it."""

    label: str
    draw: Callable[[Generator, int], Counts]
    largest_user: int
    quantile_limit: int
    publishers: tuple[str, ...] = numbered("publisher", 1_000)


def _zipf(rng: Generator, users: int) -> Counts:
    return rng.zipf(3.0, users) + 10


def _normal(rng: Generator, users: int) -> Counts:
    return np.maximum(rng.normal(50, 30, users), 0).astype(np.int64)


def _uniform(rng: Generator, users: int) -> Counts:
    return rng.integers(1, 256, users, endpoint=True)


# Conversions of a group -> how many groups have that many.
FACEBOOK_GROUPS = {
    0: 8, 1: 666, 2: 162, 3: 78, 4: 61, 5: 41, 6: 22, 7: 16, 8: 13, 9: 7, 10: 8, 11: 13, 12: 4,
    13: 9, 14: 4, 15: 1, 16: 4, 17: 4, 18: 1, 19: 1, 20: 2, 21: 1, 22: 4, 23: 3, 24: 1, 26: 2,
    28: 1, 30: 1, 31: 2, 38: 1, 40: 1, 60: 1,
}  # fmt: skip


def _facebook(_rng: Generator, _users: int) -> Counts:
    return np.repeat(np.array(list(FACEBOOK_GROUPS)), list(FACEBOOK_GROUPS.values()))


COUNTED_SETS = {
    "zipf": CountedSet("Zipf(3) + 10 conversions a user (made up)", _zipf, 50, 10),
    "normal": CountedSet("Normal(50, 30) conversions a user (made up)", _normal, 150, 20),
    "uniform": CountedSet("Uniform(1, 256) conversions a user (made up)", _uniform, 256, 20),
    "facebook": CountedSet(
        "Facebook sales conversion groups (published counts, made-up days)",
        _facebook, max(FACEBOOK_GROUPS), 10, ("facebook",),
    ),
}  # fmt: skip


def make_counted(name: str, slots: int, rng: Generator, users: int | None, copies: int) -> Dataset:
    """At the paper's size unless told otherwise. Each conversion is on a publisher of its own, each
    copy of it on a day of its own."""
    facts = COUNTED_SETS[name]
    counts = facts.draw(rng, PAPER_USERS if users is None else users)
    if users is not None and name == "facebook":
        raise SpecError(
            f"users = {users}: facebook is a fixed set of {counts.size} groups. Leave users out, "
            "or take a made-up set"
        )
    conversions, publishers = int(counts.sum()), facts.publishers
    day = rng.integers(0, slots, conversions * copies, dtype=np.uint16)
    return dataset_of(
        name,
        facts.label,
        counts.size,
        slots,
        publishers,
        facts.largest_user * copies,
        user=np.tile(np.repeat(np.arange(counts.size, dtype=np.int32), counts), copies),
        day=day,
        publisher=np.tile(rng.integers(0, len(publishers), conversions, dtype=np.int16), copies),
        quantile_limit=facts.quantile_limit,
    )
