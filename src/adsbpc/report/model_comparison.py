"""Which model attributed which slots, and what other models make of the counts of a fit.

Works on released values only, so it costs no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adsbpc.model import ModelShare, Release


@dataclass(frozen=True)
class Compared:
    """A publisher's share of the fit's conversions under a model, each end cut off to 0..1."""

    model: str
    publisher: str
    share: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True)
class Models:
    """Of a campaign with a fitted model.

    `by_slot` has one for each released slot. `fit_slot` is the slot that released the fit: None
    before that, and where the fit was made elsewhere. `comparison` is empty where the counts say
    nothing of further models. `relative_noise` is how far noise of the fit moves what publishers
    get, as a part of it, where that is known.
    """

    by_slot: tuple[str | None, ...]
    fit_slot: int | None
    comparison: tuple[Compared, ...]
    relative_noise: float | None = None

    @classmethod
    def of(cls, releases: Sequence[Release], reach: float) -> Models | None:
        """None where attribution follows from a journey alone. Intervals are of `reach` standard
        errors to each side."""
        if releases[-1].attribution is None:
            return None
        by_slot = tuple(release.attribution for release in releases)
        for release in releases:
            if release.fit is not None:
                found = tuple(_compared(share, reach) for share in release.fit.comparison)
                return cls(by_slot, release.slot, found, release.fit.relative_noise)
        return cls(by_slot, None, ())


def _compared(found: ModelShare, reach: float) -> Compared:
    width = reach * found.standard_error
    return Compared(
        found.model,
        found.publisher,
        found.share,
        found.standard_error,
        max(found.share - width, 0.0),
        min(found.share + width, 1.0),
    )
