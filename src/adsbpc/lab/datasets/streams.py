"""Streams that are hard on mechanisms which learn as they go: made up, with nothing to match.

- daily: everybody converts once on every slot, with the only publisher.
- daily-loyal: the same with 50 publishers, of which everybody has one.
- late: nothing happens until the last slot; then people convert some three times each.
- heavy: twenty people convert a hundred times as often as the rest.
- surge: for three slots in mid-campaign, ten times as much happens as before and after.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from adsbpc.errors import SpecError
from adsbpc.lab.datasets.dataset import Dataset, dataset_of, numbered

Whole = NDArray[np.int64]
Rows = tuple[Whole, Whole, Whole]

DEFAULT_PEOPLE = 50_000
_MANY = 20
_LOYAL = 50
_HEAVY_PEOPLE, _HEAVY_TIMES = 20, 100


def _every_slot(people: int, slots: int) -> tuple[Whole, Whole]:
    return np.repeat(np.arange(people), slots), np.tile(np.arange(slots), people)


def _daily(_rng: Generator, people: int, slots: int) -> Rows:
    user, day = _every_slot(people, slots)
    return user, day, np.zeros_like(user)


def _daily_loyal(_rng: Generator, people: int, slots: int) -> Rows:
    user, day = _every_slot(people, slots)
    return user, day, user % _LOYAL


def _late(rng: Generator, people: int, slots: int) -> Rows:
    user = np.repeat(np.arange(people), rng.geometric(0.3, people))
    return user, np.full_like(user, slots - 1), rng.integers(0, _MANY, user.size)


def _heavy(rng: Generator, people: int, slots: int) -> Rows:
    counts = rng.poisson(3, people)
    counts[:_HEAVY_PEOPLE] = 3 * _HEAVY_TIMES
    user = np.repeat(np.arange(people), counts)
    return user, rng.integers(0, slots, user.size), rng.integers(0, _MANY, user.size)


def _surge(rng: Generator, people: int, slots: int) -> Rows:
    user = np.repeat(np.arange(people), rng.poisson(6, people))
    day = rng.integers(0, slots, user.size)
    first = max(0, slots // 2 - 1)
    often = np.where((day >= first) & (day < first + 3), 10, 1)
    user, day = np.repeat(user, often), np.repeat(day, often)
    return user, day, rng.integers(0, _MANY, user.size)


STREAMS: dict[str, tuple[str, Callable[[Generator, int, int], Rows], int]] = {
    "daily": ("everybody once on every slot, one publisher (made up)", _daily, 1),
    "daily-loyal": ("everybody once on every slot, loyal to one (made up)", _daily_loyal, _LOYAL),
    "late": ("nothing until the last slot (made up)", _late, _MANY),
    "heavy": ("twenty people a hundred times as active (made up)", _heavy, _MANY),
    "surge": ("ten times as much for three slots (made up)", _surge, _MANY),
}


def make_stream(name: str, slots: int, rng: Generator, users: int | None, copies: int) -> Dataset:
    if copies > 1:
        raise SpecError(f"copies = {copies}: {name} is a stream, whose days are what it is about")
    label, rows, publishers = STREAMS[name]
    people = DEFAULT_PEOPLE if users is None else users
    user, day, publisher = rows(rng, people, slots)
    largest = int(np.bincount(user).max()) if user.size else 1
    names = numbered("publisher", publishers)
    return dataset_of(
        name, label, people, slots, names, largest, user=user, day=day, publisher=publisher
    )
