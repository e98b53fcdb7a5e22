"""Small datasets for the lab's tests, with every conversion known."""

from __future__ import annotations

from adsbpc.contributions import ArrayContributions
from adsbpc.lab.datasets import Dataset
from adsbpc.lab.evaluation import Prepared
from adsbpc.model import UNITS_PER_CONVERSION, Layout

MISSING_PIPELINEDP = "PipelineDP is missing: NOT TESTED against it; `make setup` installs it"


def prepared(
    rows: list[tuple[int, int, int]], slots: int, publishers: int, largest_user: int
) -> Prepared:
    """Rows are (user, slot, publisher): a whole conversion each."""
    names = tuple(f"p{k}" for k in range(publishers))
    contributions = ArrayContributions(
        [user for user, _, _ in rows],
        [slot for _, slot, _ in rows],
        [publisher for _, _, publisher in rows],
        [UNITS_PER_CONVERSION] * len(rows),
        slots,
        Layout.of_publishers(names),
    )
    users = len({user for user, _, _ in rows})
    return Prepared(Dataset("test", "a test", users, slots, names, largest_user, 10, contributions))
