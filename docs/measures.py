"""The table of docs/measures.md: what sums of their own gain, and what they cost cells."""

from __future__ import annotations

import sys
from math import sqrt

from adsbpc.workloads import Margins

SHAPES = (((6,), (1, 8)), ((50,), (1, 8)), ((287,), (1, 8)), ((50, 20), (1, 8, 8)))


def main() -> None:
    for lengths, weights in SHAPES:
        own = Margins(lengths, weights)
        alone = Margins(lengths, (*[0] * len(lengths), 1))
        unit = sum(weight**2 for weight in weights)
        errors = [
            f"{sqrt(unit * own.view_variance(depth)):.2f} instead of "
            f"{sqrt(alone.view_variance(depth)):.2f}"
            for depth in range(len(lengths) + 1)
        ]
        line = f"{' x '.join(map(str, lengths))} {weights}: {'; '.join(errors)}"
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
