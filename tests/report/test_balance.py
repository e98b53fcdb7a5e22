"""Sample ratio mismatch: whether arms have the people that they should, counted with noise."""

from __future__ import annotations

import numpy as np

from adsbpc.report.balance import UNBALANCED, balance_of, chance_of_people
from adsbpc.report.lift_words import lift_table_of, people_words
from tests.report.trials import MadeUpTrial

SHARES = np.array([0.6, 0.3, 0.1])


def test_chance_is_what_it_says_also_with_noise() -> None:
    """Of people who are in arms by chance, one in twenty counts has a chance below 5%."""
    rng, trials = np.random.default_rng(2), 4_000
    for noise in (0.0, 60.0):
        people = rng.multinomial(20_000, SHARES, trials) + rng.normal(0, noise, (trials, 3))
        chances = np.array([chance_of_people(row, SHARES, noise**2) for row in people])
        for level in (0.05, 0.2, 0.5):
            error = np.sqrt(level * (1 - level) / trials)
            assert abs((chances < level).mean() - level) < 5 * error, (noise, level)


def test_people_who_are_missing_are_found() -> None:
    """A tenth of the control was never asked: of 20,000 people that shows, noise or not."""
    people = 20_000 * SHARES * np.array([1.0, 1.0, 0.9])
    assert chance_of_people(people, SHARES, 0.0) < UNBALANCED
    assert chance_of_people(people, SHARES, 10.0**2) < UNBALANCED
    assert chance_of_people(people, SHARES, 500.0**2) > 0.1, "noise would hide that"


def test_declared_people_are_held_against_shares() -> None:
    made = MadeUpTrial(slots=2, released=2)
    assert not balance_of(made.report()).is_bad  # type: ignore[union-attr]
    odd = {"treatment": 20_000, "no_search": 10_000, "control": 9_000}
    report = MadeUpTrial(slots=2, released=2, lift={"people": odd}).report()
    found = balance_of(report)
    assert found is not None
    assert found.is_bad
    assert not found.counted
    (text,) = people_words(report)
    assert text.startswith("WARNING: the arms are out of balance. People (declared): treatment 20,")
    assert "do not trust the lift" in text


def test_counted_people_are_held_against_shares() -> None:
    people = {"treatment": 4_000, "no_search": 2_000, "control": 2_000}
    for eligible, is_bad in ((people, False), ({**people, "control": 1_500}, True)):
        made = MadeUpTrial(slots=2, released=2, people=people, eligible=eligible)
        found = balance_of(made.report())
        assert found is not None
        assert found.counted
        assert found.is_bad is is_bad


def test_a_control_that_is_counted_by_ads_is_told() -> None:
    """People are counted by impressions, and the control sees none: with arms by a table nothing
    can be compared then, and the report says why."""
    people = {"treatment": 4_000, "no_search": 2_000, "control": 2_000}
    seen = {"treatment": 4_000, "no_search": 2_000}
    table = {
        "key_file": None, "shares": None, "table": "arms.csv", "arms": list(people), "people": None,
    }  # fmt: skip
    made = MadeUpTrial(slots=2, released=2, people=people, eligible=seen, lift=table)
    report = made.report()
    assert {(each.arm, each.control) for each in report.lifts} == {("treatment", "no_search")}
    (text,) = people_words(report)
    assert "nobody can be told to be in the arm “control”" in text
    assert "count people by an event that all arms have" in text
    assert "nobody can be told" in report.to_html()
    assert lift_table_of(report) is not None
    counted = MadeUpTrial(slots=2, released=2, people=people, eligible=people, lift=table).report()
    assert len({(each.arm, each.control) for each in counted.lifts}) == 3
    assert people_words(counted) == []
