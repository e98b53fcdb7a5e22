"""Writes channel_attribution.json: removal effects that the library ChannelAttribution finds.

The library has to be compiled, so its answers are kept for those who have no compiler. Where
`make setup` could build it, write them again, in about five minutes, with

    .venv/bin/python tests/attribution/channel_attribution.py

It finds removal effects by simulation, which stops at `conv_par`. Two habits of its are met here:
it cuts simulated journeys at the longest one of the data unless `max_step` says otherwise, and at
orders above 1 it takes a channel that follows itself for a new state, so no path repeats one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from random import Random

KEPT = Path(__file__).with_suffix(".json")
ORDERS = (1, 2, 3)
PRECISE = 0.001
QUICK = 0.01
MISSING_ORACLE = "ChannelAttribution is missing: NOT TESTED live"

# Journeys, channels joined by ">", and how many of them converted and did not.
Paths = Mapping[str, tuple[int, int]]


def made_up(seed: int, channels: str, count: int, longest: int) -> Paths:
    """Paths without repeats."""
    random = Random(seed)
    found = {}
    for _ in range(count):
        path: list[str] = []
        for _ in range(random.randint(1, longest)):
            path.append(random.choice([each for each in channels if path[-1:] != [each]]))
        found[">".join(path)] = (random.randrange(20), random.randrange(60))
    return found


CASES: Mapping[str, Paths] = {
    "by hand": {"A>B>C": (3, 5), "A>B": (1, 6), "B": (2, 3), "C>B": (4, 2), "A": (1, 9)},
    "four channels": made_up(7, "ABCD", 60, 6),
    "long journeys of three": made_up(8, "ABC", 40, 12),
}


def oracle(paths: Paths, order: int, conv_par: float) -> dict[str, float]:
    """What the library finds for each channel."""
    import pandas as pd

    table = pd.DataFrame(
        {
            "path": list(paths),
            "converted": [converted for converted, _ in paths.values()],
            "others": [others for _, others in paths.values()],
        }
    )
    found = import_module("ChannelAttribution").markov_model(
        table, "path", "converted", var_null="others", order=order, out_more=True, seed=1,
        nsim_start=10**6, max_step=1_000, conv_par=conv_par, verbose=False, flg_pro=False,
    )["removal_effects"]  # fmt: skip
    return dict(zip(found["channel_name"], map(float, found["removal_effect"]), strict=True))


def write() -> None:
    effects = {
        name: {str(order): oracle(paths, order, PRECISE) for order in ORDERS}
        for name, paths in CASES.items()
    }
    kept = {
        "library": f"ChannelAttribution {version('ChannelAttribution')}",
        "conv_par": PRECISE,
        "cases": CASES,
        "removal_effects": effects,
    }
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
