"""Streams that are hard on mechanisms which learn as they go: made up, with nothing to match.

- daily: everybody converts once on every slot, with the only publisher.
- daily-loyal: the same with 50 publishers, of which everybody has one.
- late: nothing happens until the last slot; then people convert some three times each.
- heavy: twenty people convert a hundred times as often as the rest.
- surge: for three slots in mid-campaign, ten times as much happens as before and after.

And such as nothing was tuned for, where publishers are not alike:

- unlike: with half of 100 publishers people convert ten times as often as with the others.
- middling: sizes fall off like 1 / rank, and active people are with publishers of middling size.
- season: weekends are busy, and every publisher has a trend of its own.
- bursts: every publisher has its own days, in which most of its conversions fall.
- small: 5,000 people with twelve publishers, of which a third have active people.
- baskets: people who buy something every day or two, mostly from five large publishers.

And one that tells more apart:

- countries: 50 publishers in 20 countries; everybody converts once, with one publisher in one.
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
_UNLIKE, _MIDDLING, _SEASON, _BURSTS, _SMALL, _BASKETS = 100, 200, 300, 200, 12, 20


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


def _spread(rng: Generator, counts: Whole, slots: int) -> tuple[Whole, Whole]:
    """So many conversions of each person, on any slot."""
    user = np.repeat(np.arange(counts.size), counts)
    return user, rng.integers(0, slots, user.size)


def _at_home(rng: Generator, user: Whole, home: Whole, chance: float, elsewhere: Whole) -> Whole:
    """Publishers of conversions: mostly the person's own, else any."""
    return np.where(rng.random(user.size) < chance, home[user], elsewhere)


def _falling(publishers: int) -> NDArray[np.float64]:
    """Sizes that fall off like 1 / rank."""
    sizes = 1 / np.arange(1, publishers + 1)
    return np.asarray(sizes / sizes.sum())


def _heavy_tailed(rng: Generator, publishers: int) -> NDArray[np.float64]:
    sizes = rng.pareto(1.2, publishers) + 0.2
    return np.asarray(sizes / sizes.sum())


def _unlike(rng: Generator, people: int, slots: int) -> Rows:
    home = rng.integers(0, _UNLIKE, people)
    rate = np.where(home < _UNLIKE // 2, 20.0, 2.0) * rng.gamma(2, 0.5, people)
    user, day = _spread(rng, rng.poisson(rate), slots)
    return user, day, _at_home(rng, user, home, 0.7, rng.integers(0, _UNLIKE, user.size))


def _middling(rng: Generator, people: int, slots: int) -> Rows:
    active = rng.random(people) < 0.03
    rate = rng.lognormal(0.3, 0.8, people) * np.where(active, 12, 1)
    user, day = _spread(rng, rng.poisson(rate), slots)
    middle = rng.integers(_MIDDLING // 10, _MIDDLING // 3, user.size)
    anywhere = rng.choice(_MIDDLING, user.size, p=_falling(_MIDDLING))
    is_middle = active[user] & (rng.random(user.size) < 0.8)
    return user, day, np.where(is_middle, middle, anywhere)


def _season(rng: Generator, people: int, slots: int) -> Rows:
    user = np.repeat(np.arange(people), rng.zipf(3.0, people) + 4)
    publisher = rng.choice(_SEASON, user.size, p=_heavy_tailed(rng, _SEASON))
    week = np.resize([1.0, 0.9, 0.9, 1.0, 1.3, 1.8, 1.5], slots)
    trend = np.exp(np.outer(rng.normal(0, 0.6, _SEASON), np.linspace(-1, 1, slots))) * week
    reached = np.cumsum(trend, axis=1)
    reached /= reached[:, -1:]
    drawn, day = rng.random(user.size), np.zeros(user.size, dtype=np.int64)
    for slot in range(slots - 1):
        day += drawn > reached[publisher, slot]
    return user, day, publisher


def _bursts(rng: Generator, people: int, slots: int) -> Rows:
    user, any_day = _spread(rng, rng.geometric(0.2, people), slots)
    publisher = rng.choice(_BURSTS, user.size, p=_heavy_tailed(rng, _BURSTS))
    first = rng.integers(0, max(slots - 3, 1), _BURSTS)
    length = rng.integers(2, 12, _BURSTS)
    own = first[publisher] + (rng.random(user.size) * length[publisher]).astype(np.int64)
    inside = rng.random(user.size) < 0.7
    return user, np.where(inside, np.minimum(own, slots - 1), any_day), publisher


def _small(rng: Generator, people: int, slots: int) -> Rows:
    home = rng.choice(_SMALL, people, p=_falling(_SMALL))
    rate = np.exp(rng.normal(0.5, 1.0, people)) * np.where(home % 3 == 0, 3, 1)
    user, day = _spread(rng, rng.poisson(rate), slots)
    elsewhere = rng.choice(_SMALL, user.size, p=_falling(_SMALL))
    return user, day, _at_home(rng, user, home, 0.8, elsewhere)


def _baskets(rng: Generator, people: int, slots: int) -> Rows:
    visits = rng.lognormal(np.log(slots * 0.6), 0.7, people)
    user, day = _spread(rng, rng.poisson(visits), slots)
    sizes = np.r_[np.full(5, 0.16), np.full(_BASKETS - 5, 0.2 / (_BASKETS - 5))]
    return user, day, rng.choice(_BASKETS, user.size, p=sizes)


def _countries(rng: Generator, people: int, slots: int) -> Rows:
    user, cells = np.arange(people), _LOYAL * COUNTRIES["countries"]
    return user, rng.integers(0, slots, people), rng.integers(0, cells, people)


# How many there are, where publishers are told apart by them: rows then number both.
COUNTRIES = {"countries": 20}
STREAMS: dict[str, tuple[str, Callable[[Generator, int, int], Rows], int]] = {
    "daily": ("everybody once on every slot, one publisher (made up)", _daily, 1),
    "daily-loyal": ("everybody once on every slot, loyal to one (made up)", _daily_loyal, _LOYAL),
    "late": ("nothing until the last slot (made up)", _late, _MANY),
    "heavy": ("twenty people a hundred times as active (made up)", _heavy, _MANY),
    "surge": ("ten times as much for three slots (made up)", _surge, _MANY),
    "unlike": ("publishers with active people and others (made up)", _unlike, _UNLIKE),
    "middling": ("active people with middling publishers (made up)", _middling, _MIDDLING),
    "season": ("weekends, and trends of publishers (made up)", _season, _SEASON),
    "bursts": ("every publisher on days of its own (made up)", _bursts, _BURSTS),
    "small": ("few people, twelve unlike publishers (made up)", _small, _SMALL),
    "baskets": ("people who buy nearly every day (made up)", _baskets, _BASKETS),
    "countries": ("everybody once, publishers by country (made up)", _countries, _LOYAL),
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
        name, label, people, slots, names, largest, user=user, day=day, publisher=publisher,
        countries=numbered("country", COUNTRIES.get(name, 0)),
    )  # fmt: skip
