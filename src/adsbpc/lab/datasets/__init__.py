"""The data sets of the lab, by name, and the doors for data that someone brings along.

>>> from adsbpc.lab.datasets import load_dataset
>>> data = load_dataset("facebook", slots=31, seed=1)
>>> data.users, data.largest_user
(1143, 60)
"""

from __future__ import annotations

import numpy as np

from adsbpc.errors import SpecError, no_such_choice
from adsbpc.lab.datasets.counted import make_counted
from adsbpc.lab.datasets.criteo_surrogate import make_criteo_surrogate
from adsbpc.lab.datasets.dataset import Dataset
from adsbpc.lab.datasets.files import read_criteo_log, read_own_data
from adsbpc.lab.datasets.streams import STREAMS, make_stream

__all__ = ["DATASETS", "Dataset", "load_dataset", "read_criteo_log", "read_own_data"]

_CRITEO_TOUCHES = {"criteo": "last", "criteo-first": "first", "criteo-uniform": "uniform"}

DATASETS: tuple[str, ...] = (
    "zipf", "normal", "uniform", *_CRITEO_TOUCHES, "facebook", *STREAMS,
)  # fmt: skip

# Some 27 years of days; they are kept in 16 bits while a data set is made.
_MOST_SLOTS = 10_000


def load_dataset(
    name: str, slots: int, seed: int, users: int | None = None, copies: int = 1
) -> Dataset:
    """Make the data set `name`; the same arguments make the same data.

    `users` is the number of people, by default the paper's. `copies` is how often each conversion
    occurs: for n = 365 the paper "replicates the dataset five times" to keep the conversions per
    user and day from thinning out. It is read as the same users converting that many times as
    often with the same publishers, each copy on days of its own, so GS grows by the same factor.
    """
    if name not in DATASETS:
        raise no_such_choice(f"dataset = {name!r}", name, DATASETS)
    for argument, value, least in (
        ("slots", slots, 1),
        ("seed", seed, 0),
        ("users", users, 1),
        ("copies", copies, 1),
    ):
        if value is not None and value < least:
            raise SpecError(f"{argument} = {value}: expected a whole number, {least} or more")
    if slots > _MOST_SLOTS:
        raise SpecError(f"slots = {slots}: expected {_MOST_SLOTS} or fewer")
    rng = np.random.default_rng(seed)
    if name in STREAMS:
        return make_stream(name, slots, rng, users, copies)
    if name in _CRITEO_TOUCHES:
        return make_criteo_surrogate(name, _CRITEO_TOUCHES[name], slots, rng, users, copies)
    return make_counted(name, slots, rng, users, copies)
