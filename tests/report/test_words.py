"""What people read: tables, summaries, promises; never flattering."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from fractions import Fraction
from io import StringIO
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from adsbpc.mechanisms.planning import PLANNERS
from adsbpc.model import Adjacency
from adsbpc.model.release_spec import MechanismName
from adsbpc.report import Report, model_words, notes, wording
from adsbpc.report.numbers import amount, one_in, rounded_down, rounded_up
from tests.report.releases import MadeUp, answers_of, with_totals


@given(st.floats(1e-9, 1e9), st.integers(2, 8))
def test_rounding_never_flatters(value: float, digits: int) -> None:
    assert float(rounded_up(value, digits)) >= value
    assert float(rounded_down(value, digits)) <= value
    assert float(rounded_up(value, digits)) == pytest.approx(value, rel=1.01 * 10.0 ** (1 - digits))


def test_every_mechanism_has_a_planner_and_words() -> None:
    assert wording.MECHANISMS.keys() == PLANNERS.keys() == set(get_args(MechanismName))


def test_exact_budgets_are_shown_exactly() -> None:
    assert rounded_up(Fraction(9, 10), 4) == rounded_down(Fraction(9, 10), 4) == "0.9"
    assert rounded_up(Fraction(0)) == "0"


@given(st.floats(1e-12, 0.5))
def test_a_chance_is_never_told_smaller(chance: float) -> None:
    assert 1 / int(one_in(chance).removeprefix("1 in ").replace(",", "")) >= chance * (1 - 1e-9)


def test_amounts() -> None:
    assert amount(-1234.5678, 2) == "\N{MINUS SIGN}1,234.57"
    assert amount(-0.001, 2) == "0.00"


def _printed(report: Report, width: int) -> str:
    console = Console(width=width, record=True, file=StringIO())
    console.print(report.table())
    return console.export_text()


def test_the_summary() -> None:
    assert wording.summary(MadeUp().report()) == (
        "4,992 ± 160 attributed conversions so far; search leads with 36%."
    )


def test_the_summary_does_not_call_a_close_race() -> None:
    report = MadeUp(publishers=("left", "right"), volume=0.2, scale=0.01, released=3).report()
    report = with_totals(report, answers_of("prefix 1..3", [50.0] * 3, 3.0, (1, 3)))
    assert wording.summary(report).endswith("left and right are too close to call.")


def test_the_summary_of_noise_alone() -> None:
    text = wording.summary(MadeUp(volume=0.1, scale=20).report())
    assert text.endswith("so far, which cannot be told from zero yet.")


def test_other_is_nobodys_lead() -> None:
    report = MadeUp(publishers=("tiny",), volume=1, scale=0.5).report()
    error = report.newest.measures[0].running_totals[1].standard_error
    report = with_totals(report, answers_of("prefix 1..31", [30.0, 900.0], error, (1, 31)))
    assert "tiny leads among the listed with 3%" in wording.summary(report)


def test_an_adjusted_summary_gives_the_interval() -> None:
    assert "4,992 (4,832 to 5,152)" in wording.summary(MadeUp().report(adjusted=True))


@pytest.mark.parametrize(
    ("epsilon", "factor", "guess", "word"),
    [
        (0.5, "1.65", "62.25%", "strong"),
        (2.0, "7.39", "88.08%", "moderate"),
        (5.3, "201", "99.51%", "weak"),
        (11.0, "59,900", "practical certainty", "weak"),
        (40.0, "more than a million", "practical certainty", "weak"),
        (900.0, "more than a million", "practical certainty", "weak"),
    ],
)
def test_odds_are_told_as_they_are(epsilon: float, factor: str, guess: str, word: str) -> None:
    promise = MadeUp(epsilon=epsilon, released=1).report().promise
    assert f"factor of {factor}," in wording.odds(promise)
    assert "1 in 1,000,000" in wording.odds(promise)
    assert guess in wording.odds(promise)
    assert f"a {word} promise" in wording.strength(promise)


def test_neighbours_in_plain_words() -> None:
    texts = [wording.neighbours(MadeUp(adjacency=each).report()) for each in Adjacency]
    assert "without any one person" in texts[0]
    assert "had any one person done anything else" in texts[1]


def test_bounds_in_plain_words() -> None:
    def text(**made: object) -> str:
        return wording.bounds(MadeUp(released=4, **made).report())  # type: ignore[arg-type]

    assert text(bounds=(1,)).startswith("One person counts for at most 1 conversion a day.")
    assert "at most 2 to 3 conversions a day, depending on the day." in text(bounds=(2, 3))
    assert "at most 2 conversions an hour." in text(slot="1h")
    assert "at most 2 conversions a week." in text(slot="1w", start=date(2026, 3, 2))
    assert "at most 2 to 3 conversions a month, depending on the month." in (
        text(slot="1mo", bounds=(2, 3))
    )
    value = text(metric="value", value_cap=250.0)
    assert "at most 2 conversions of 250.00 each a day." in value
    assert "intervals do not include that" in value


def _with_cut(report: Report, added: float, cut: float) -> Report:
    """The same, with this added in all so far because it was cut, and this missing."""
    totals = report.newest.measures[0].running_totals
    return with_totals(report, tuple(replace(total, added=added, cut=cut) for total in totals))


def test_personal_budgets_in_plain_words() -> None:
    def text(**made: object) -> str:
        budgets = MadeUp(released=4, mechanism="personal-budget", **made)  # type: ignore[arg-type]
        return wording.bounds(budgets.report())

    assert text().startswith(
        "Every person has one budget for the whole campaign. It is about as large as 11 "
        "conversions with one publisher on one day. What goes beyond is cut. So far that is about "
    )
    assert "The estimates include it" in text()
    assert "noise only" not in text()
    assert "about as large as 1 conversion with" in text(allowances=(1.04,))
    # The newest one holds for the past too.
    assert "as 1,300 conversions with one publisher in one hour. What" in (
        text(allowances=(1340.0, 0.5236), slot="1h")
    )
    assert "with one publisher in one month. What" in text(slot="1mo")
    assert "11 conversions of 250.00 each with" in text(metric="value", value_cap=250.0)


@pytest.mark.parametrize(
    ("added", "cut", "words"),
    [
        (120.0, 30.0, ("is about 120 conversions, counted", "leave room for 30 conversions more.")),
        (12.4, 1.0, ("is about 12 conversions, counted", "leave room for 1 conversion more.")),
        (0.4, 30.0, ("none of that can be told", "leave room for 30 conversions more.")),
    ],
)
def test_what_was_cut_in_plain_words(added: float, cut: float, words: tuple[str, str]) -> None:
    report = MadeUp(released=2, mechanism="personal-budget").report()
    text = wording.bounds(_with_cut(report, added, cut))
    assert all(each in text for each in words)
    assert "leave room" not in wording.bounds(_with_cut(report, added, 0.0))


def test_what_was_cut_in_money() -> None:
    made = MadeUp(released=2, mechanism="personal-budget", metric="value", value_cap=250.0)
    text = wording.bounds(_with_cut(made.report(), 1250.5, 400.0))
    assert "is about 1,250 of value, counted" in text
    assert "leave room for 400 of value more." in text


def test_poor_estimates_are_told() -> None:
    usual = MadeUp(mechanism="personal-budget", most_cut=0.0).report()
    assert wording.warning(usual) == ""
    few_do_much = MadeUp(mechanism="personal-budget", most_cut=0.9).report()
    assert "a few people do much of this. About " in wording.warning(few_do_much)
    assert wording.warning(few_do_much) in wording.summary(few_do_much)
    far_beyond = _with_cut(
        usual, *(part * usual.standings.everything.estimate for part in (0.05, 0.25))
    )
    assert "About 5% of it goes beyond their budgets, and up to 30% may" in wording.warning(
        far_beyond
    )
    # What may be noise alone is in the intervals, and nothing to warn of.
    hardly = _with_cut(usual, *(part * usual.standings.everything.estimate for part in (0.01, 0.3)))
    assert wording.warning(hardly) == ""
    few_people = MadeUp(volume=12, scale=6, released=4).report()
    assert not few_people.standings.everything.noisy
    assert "for so few people the noise is large" in wording.warning(few_people)
    assert wording.warning(MadeUp(volume=0, released=4).report()) == ""


def test_early_reports_say_whom_intervals_have_no_room_for() -> None:
    early, later = (MadeUp(mechanism="personal-budget", released=n).report() for n in (10, 11))
    assert notes.FAR_AHEAD in notes.below_table(early)
    assert notes.FAR_AHEAD not in notes.below_table(later)
    # Where nothing is told of what was cut, another sentence says so.
    assert notes.FAR_AHEAD not in notes.below_table(MadeUp(released=2).report())


def test_the_summary_of_personal_budgets_gives_the_interval() -> None:
    report = MadeUp(mechanism="personal-budget").report()
    total = report.standings.everything
    interval = f"({total.low:,.0f} to {total.high:,.0f}) attributed conversions so far"
    assert wording.summary(report).startswith(f"{total.estimate:,.0f} {interval}")


def test_which_model_attributed_which_slots() -> None:
    def text(**made: object) -> str:
        return model_words.models_by_slot(MadeUp(model="shapley", **made).report())  # type: ignore[arg-type]

    assert text(fit_slot=7) == (
        "Days 1 to 7 were attributed with Shapley, path form, and later ones with Shapley, whose "
        "parameters day 7 released. Totals add up both."
    )
    assert text(fit_slot=7, released=7) == (
        "Days 1 to 7 were attributed with Shapley, path form, and later ones will be with Shapley, "
        "whose parameters day 7 released."
    )
    assert text(fit_slot=7, released=6) == (
        "Attributed with Shapley, path form. From day 8 on it will be Shapley, whose parameters "
        "day 7 will release."
    )
    assert text(fit_slot=1, slot="1h").startswith("Hour 1 was attributed with Shapley, path form,")
    assert text() == "Every day is attributed with Shapley."
    assert model_words.models_by_slot(MadeUp().report()) == ""


def test_how_noisy_a_fit_is() -> None:
    assert model_words.noise_of_fit(0.004).startswith(
        "Noise of the fit moves what a publisher gets by"
    )
    assert "by less than 1%, which intervals do not" in model_words.noise_of_fit(0.004)
    assert "by about 7%, which intervals do not" in model_words.noise_of_fit(0.07)
    large = model_words.noise_of_fit(0.3)
    assert large.startswith("WARNING: noise of the fit moves what a publisher gets by about 30%")
    report = MadeUp(model="shapley", fit_slot=7).report()
    assert report.models is not None
    assert model_words.fit_noise(report) == ""
    noisy = replace(report.models, relative_noise=0.3)
    report.__dict__["models"] = noisy
    assert large in notes.below_table(report)
    assert large in notes.trend(report, 5)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("shapley_path", "Shapley, path form"),
        ("shapley", "Shapley"),
        ("incremental_value", "incremental value"),
        ("probabilistic", "probabilistic (Shao and Li)"),
        ("logistic", "logistic"),
        ("markov", "Markov removal"),
        ("last_touch", "last touch"),
        ("shapley_ordered", "Shapley in order"),
        ("time_decay", "time decay"),
    ],
)
def test_models_have_names(model: str, name: str) -> None:
    report = MadeUp(model=model, released=1).report()
    assert model_words.attribution(report.spec.attribution).startswith(f"{name}, clicks up to 30d")


def test_what_comparing_costs() -> None:
    text = model_words.comparison_cost(MadeUp(model="markov", fit_slot=7).report(), 7)
    assert (
        "noisy counts that day 7 released, about people's first conversions in days 1 to 7" in text
    )
    assert "From day 8 on the daily figures above use Markov removal only" in text
    hours = MadeUp(model="shapley", fit_slot=1, slot="1h", released=2).report()
    text = model_words.comparison_cost(hours, 1)
    assert "first conversions in hour 1, so comparing them costs nothing more" in text
    assert "the hourly figures above use Shapley only; figures of another model every hour" in text


@pytest.mark.parametrize("width", [60, 120])
def test_the_table(width: int) -> None:
    text = _printed(MadeUp(volume=12).report(), width)
    rows = [line for line in text.splitlines() if "│" in line]
    assert rows[0].split("│")[1].strip() == "search"
    assert "(all)" in rows[-1]
    assert "100%" in rows[-1]
    marked = [row for row in rows if " ~ │" in row]
    assert marked
    assert "~ cannot be told from zero at 95%" in text


def test_the_table_without_noisy_cells_has_no_footnote() -> None:
    assert "cannot be told" not in _printed(MadeUp().report(), 90)


def test_the_table_of_personal_budgets_has_a_footnote() -> None:
    report = MadeUp(mechanism="personal-budget", volume=12).report()
    text, total = _printed(report, 90), report.standings.everything
    assert f"{total.low:,.0f} to {total.high:,.0f}" in text
    # Lines are broken where the table ends.
    footnotes = " ".join(text.rpartition("┘")[2].split())
    assert footnotes == f"{notes.UPPER_ENDS} ~ cannot be told from zero at 95%"


def test_names_are_no_markup() -> None:
    text = _printed(MadeUp(("[red]x[/red]", "[/]"), name="[bold]").report(), 90)
    assert "[red]x[/red]" in text
    assert "[/]" in text
    assert "[bold]: attributed" in text


def test_money_has_cents_where_noise_lets_them_mean_something() -> None:
    fine = MadeUp(metric="value", value_cap=5.0, scale=0.5).report()
    coarse = MadeUp(metric="value", value_cap=500.0, scale=300.0, volume=5000).report()
    assert ".00" in _printed(fine, 90)
    assert "." not in _printed(coarse, 90).rpartition("┘")[0]
    assert "attributed value" in _printed(coarse, 90)


def test_a_notebook_gets_a_picture_and_no_script() -> None:
    evil = ("</td><script>alert(1)</script>", "<img src=x onerror=alert(2)>")
    html = MadeUp(evil, name="<script>0</script>").report()._repr_html_()
    assert html.count("<svg ") == 1
    assert "<script" not in html
    assert "<img" not in html
    assert "http" not in html.replace("http://www.w3.org/", "")
    assert "(epsilon = 5.3, delta = 1e-06)" in html


def test_what_intervals_cover_stands_beside_them() -> None:
    budgets, bounds = MadeUp(mechanism="personal-budget").report(), MadeUp().report()
    assert notes.UPPER_ENDS in budgets._repr_html_()
    assert notes.NOISE_ONLY in bounds._repr_html_()
    assert notes.NOISE_ONLY in " ".join(_printed(bounds, 90).split())


def test_a_notebook_names_how_many_it_leaves_out() -> None:
    html = MadeUp(tuple(f"p{k}" for k in range(40))).report()._repr_html_()
    assert "and 29 smaller ones" in html
