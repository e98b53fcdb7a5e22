"""Renyi divergence of whole transcripts, summed exactly over the outputs of tiny campaigns in which
multipliers and the stream itself react to what was released."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import exp, log
from typing import Any

import numpy as np
import pytest

from adsbpc.model import Adjacency, Layout
from adsbpc.privacy import Account, Renewal, Strategy, Terms, admit, filter, gaussian_scale, renew
from adsbpc.privacy.sensitivity import filtered_squared

# Small enough that every output can be enumerated; only the ratio to the noise matters.
LIMIT = 180
RHO = Fraction(1, 2)
STRATEGY = Strategy(((2,), (1, 2)))
ALPHAS = (1.25, 2.0, 5.0, 20.0)
CUT = 2
LAYOUT = Layout.of_publishers(["P-1", "other"])
# What a user contributes to a slot: so much with one of two publishers.
Wish = tuple[int, int]
NOTHING: Wish = (0, 0)
WISHES: tuple[Wish, ...] = (NOTHING, *((p, weight) for p in (0, 1) for weight in (1, 2, 3, 5)))


@pytest.fixture(autouse=True)
def _small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter, "LIMIT", LIMIT)


def multiplier_after(output: int) -> int:
    """Jumps a lot, and in the direction of what a user who was there would cause."""
    return 4 if output > 12 else 2 if output > 0 else 1


def row_shifts(account: Account, row: tuple[int, ...]) -> tuple[int, ...]:
    """How far a user moves a row, for each publisher and for what was cut."""
    return tuple(
        sum(entry * account.moved.get((s, column), 0) for s, entry in enumerate(row, start=1))
        for column in (0, 1, CUT)
    )


def gram_row(slot: int, rows_so_far: bool) -> tuple[int, ...]:
    rows = STRATEGY.matrix[: slot if rows_so_far else None, :slot]
    return tuple(map(int, (rows.T @ rows)[slot - 1]))


# How the second row has the first slot: as the first one had it, let in again under the new
# multiplier, or so without a thought of what the first row has cost.
AS_IT_WAS, AGAIN, FORGETFULLY = "as it was", "again", "forgetfully"


@cache
def admitted(
    first: Wish, second: Wish, multiplier: int, rows_so_far: bool, past: str
) -> tuple[int, ...]:
    """Shifts of both rows by a user with these wishes, the second under some multiplier."""
    account = Account()
    half = LIMIT if rows_so_far else LIMIT // 2
    terms = Terms(gram_row(1, rows_so_far), 3, 1, half * 19 // 20, half // 20)
    admit(account, {first[0]: first[1]}, LAYOUT, terms)
    one = row_shifts(account, STRATEGY.rows[0])
    terms = Terms(gram_row(2, rows_so_far), multiplier, 1, LIMIT * 19 // 20, LIMIT // 20)
    if past != AS_IT_WAS:
        (one_entry,), (two_entry, _) = STRATEGY.rows
        ended = 0 if past == FORGETFULLY else one_entry**2
        renewal = Renewal(terms, ((ended,),), ((two_entry**2,),))
        renew(account, {(1, first[0]): first[1]}, LAYOUT, renewal)
    admit(account, {second[0]: second[1]}, LAYOUT, terms)
    return one + row_shifts(account, STRATEGY.rows[1])


@cache
def log_moment(scale: float, shift: int, alpha: float) -> float:
    """log of sum_y P(y)^alpha Q(y)^(1 - alpha) for noise around `shift` and around 0, exactly up
    to the end of the table."""
    reach = int(12 * scale) + abs(shift) * int(alpha + 2)
    outputs = np.arange(-reach, reach + 1)
    exponents = -(alpha * (outputs - shift) ** 2 + (1 - alpha) * outputs**2) / (2 * scale**2)
    normal = np.exp(-(outputs**2) / (2 * scale**2)).sum()
    top = exponents.max()
    return float(top + log(np.exp(exponents - top).sum()) - log(normal))


def divergence(
    scale: float,
    alpha: float,
    first: tuple[Wish, Wish],
    *,
    rows_so_far: bool = False,
    past: str = AS_IT_WAS,
    of: Callable[[tuple[int, ...], tuple[int, ...]], tuple[int, ...]],
) -> float:
    """Of the transcript with a user against the one with another, or nobody, where after the first
    row an adversary picks for each of them the second wish that tells most."""
    mine, theirs = first
    how = rows_so_far, past
    start = of(admitted(mine, NOTHING, 1, *how), admitted(theirs, NOTHING, 1, *how))
    moments = {
        multiplier: max(
            sum(
                log_moment(scale, shift, alpha)
                for shift in of(
                    admitted(mine, a, multiplier, *how),
                    admitted(theirs, b, multiplier, *how),
                )[3:]
            )
            for a in WISHES
            for b in (WISHES if of is between else (NOTHING,))
        )
        for multiplier in (1, 2, 4)
    }
    # Row 1 of the first publisher decides about the multiplier; the others do not.
    reach = int(12 * scale) + abs(start[0]) * int(alpha + 2)
    outputs = np.arange(-reach, reach + 1)
    exponents = -(alpha * (outputs - start[0]) ** 2 + (1 - alpha) * outputs**2) / (2 * scale**2)
    exponents += [moments[multiplier_after(int(output))] for output in outputs]
    normal = np.exp(-(outputs**2) / (2 * scale**2)).sum()
    top = exponents.max()
    total = top + log(np.exp(exponents - top).sum()) - log(normal)
    others = sum(log_moment(scale, shift, alpha) for shift in start[1:3])
    return float(total + others) / (alpha - 1)


def alone(mine: tuple[int, ...], _theirs: tuple[int, ...]) -> tuple[int, ...]:
    return mine


def between(mine: tuple[int, ...], theirs: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a - b for a, b in zip(mine, theirs, strict=True))


def worst(adjacency: Adjacency, scale: float, alpha: float, **options: Any) -> float:
    if adjacency is Adjacency.ADD_REMOVE:
        return max(divergence(scale, alpha, (w, NOTHING), of=alone, **options) for w in WISHES)
    return max(
        divergence(scale, alpha, (a, b), of=between, **options) for a in WISHES for b in WISHES
    )


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("past", [AS_IT_WAS, AGAIN])
def test_the_divergence_of_a_transcript_is_at_most_alpha_rho(
    adjacency: Adjacency, alpha: float, past: str
) -> None:
    scale = gaussian_scale(filtered_squared(adjacency, LIMIT), RHO)
    found = worst(adjacency, scale, alpha, past=past)
    assert found <= alpha * float(RHO) * (1 + 1e-9)
    assert found > alpha * float(RHO) * 0.4, "nobody comes near the promise: this tests nothing"


def test_counting_only_the_rows_so_far_breaks_the_promise() -> None:
    scale = gaussian_scale(LIMIT, RHO)
    assert worst(Adjacency.ADD_REMOVE, scale, 2.0, rows_so_far=True) > 2 * float(RHO)


def test_forgetting_what_released_rows_have_cost_breaks_the_promise() -> None:
    scale = gaussian_scale(LIMIT, RHO)
    assert worst(Adjacency.ADD_REMOVE, scale, 2.0, past=FORGETFULLY) > 2 * float(RHO)


def test_noise_for_add_remove_breaks_the_promise_for_substitution() -> None:
    scale = gaussian_scale(LIMIT, RHO)
    assert worst(Adjacency.SUBSTITUTE, scale, 2.0) > 2 * float(RHO)


def test_the_enumeration_knows_the_divergence_of_one_row() -> None:
    """Shift by 3 with scale 5: alpha 9 / 50."""
    assert log_moment(5.0, 3, 4.0) / 3 == pytest.approx(4 * 9 / 50, rel=1e-6)
    assert exp(log_moment(5.0, 0, 4.0)) == pytest.approx(1, abs=1e-12)
