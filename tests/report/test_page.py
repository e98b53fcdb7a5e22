"""The page as text: complete, self-contained, and safe whatever names hold."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from datetime import date
from hashlib import sha256
from typing import Any

import pytest

from adsbpc.report import notes, page
from tests.report.outline import Outline
from tests.report.releases import MadeUp

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    '" onmouseover="alert(3)',
    "' onfocus='alert(4)' autofocus='",
    "$name ${style} %s {0}",
    "a.b['c']\\\"d",
    "<!-- </script x",
)


def test_sections_stand_in_order() -> None:
    words = Outline(MadeUp().report().to_html()).words
    order = [
        "spring-shoes",
        "4,992 ± 160 attributed conversions so far; search leads with 36%.",
        "1 to 31 March 2026 (Europe/Berlin)",
        "day 31 of 31",
        "How totals grew",
        "All publishers",
        "Download all 217 cells (CSV)",
        "Day by day",
        "Who contributed",
        "Privacy budget",
        "What is promised to people",
        "add-remove",
        "5.3",
        "One person counts for at most 2 conversions a day.",
        "One person behind several ids",
    ]
    places = [words.find(text) for text in order]
    assert -1 not in places, order[places.index(-1)]
    assert places == sorted(places)


@pytest.mark.parametrize("fitted", [{}, {"model": "shapley", "fit_slot": 7}], ids=["plain", "fit"])
def test_hostile_names_stay_text(fitted: dict[str, Any]) -> None:
    names = tuple(f"p{k}" for k in range(7))
    plain = Outline(MadeUp(names, **fitted).report().to_html())
    made = MadeUp(HOSTILE, name="</title><script>alert(0)</script>", **fitted)
    hostile = Outline(made.report().to_html())
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in plain.tags]
    for (_, expected), (_, found) in zip(plain.tags, hostile.tags, strict=True):
        assert found.keys() == expected.keys()
    for name in HOSTILE:
        assert re.sub(r"\s+", " ", name) in hostile.words
    assert not set("<>&") & set(hostile.scripts[0])
    data = json.loads(hostile.scripts[0])
    assert sorted(data["publishers"]) == sorted([*HOSTILE, "other"])
    assert data["csv"] == MadeUp(HOSTILE).report().to_csv()


def test_a_publisher_named_like_a_script_is_compared_as_text() -> None:
    html = MadeUp(("<script>", "plain"), model="shapley", fit_slot=7).report().to_html()
    section = html.partition('<h2 id="models-title">')[2].partition("</section>")[0]
    assert 'title="&lt;script&gt;">&lt;script&gt;</span>' in section
    assert "<script" not in section


def test_only_scripts_of_the_package_may_run() -> None:
    outline = Outline(MadeUp(released=1).report().to_html())
    metas = [attrs for tag, attrs in outline.tags if tag == "meta"]
    policy = next(m["content"] for m in metas if m.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    scripts = policy.split("script-src ")[1].split(";")[0]
    assert "unsafe" not in scripts
    assert len(outline.scripts) == 3
    for script in outline.scripts[1:]:
        print_ = b64encode(sha256(script.encode()).digest()).decode()
        assert f"'sha256-{print_}'" in scripts


def test_nothing_is_fetched() -> None:
    outline = Outline(MadeUp().report().to_html())
    targets = [
        value for _, attrs in outline.tags for key, value in attrs.items() if key in ("src", "href")
    ]
    assert sorted(map(str, targets)) == ["#", "data:,"]
    assert "@import" not in "".join(outline.text)
    assert "url(" not in "".join(outline.text)


def test_one_release() -> None:
    words = Outline(MadeUp(released=1).report().to_html()).words
    assert "1 March 2026 (Europe/Berlin)" in words
    assert "day 1 of 31" in words


def test_many_publishers() -> None:
    outline = Outline(MadeUp(tuple(f"p{k:03d}" for k in range(199))).report().to_html())
    assert "The 8 largest of 200 publishers are drawn; all are in the table." in outline.words
    assert "192 smaller publishers are in the table." in outline.words
    assert len([tag for tag, _ in outline.tags if tag == "tr"]) == 1 + 200 + 1
    assert len([a for t, a in outline.tags if t == "button"]) == 8


def test_more_cells_than_a_page_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_MOST_CELLS_IN_PAGE", 100)
    outline = Outline(MadeUp().report().to_html())
    assert "217 cells are too many for a page: ask for CSV or Parquet." in outline.words
    assert json.loads(outline.scripts[0])["csv"] == ""


def test_hours_with_a_clock_change() -> None:
    made = MadeUp(slot="1h", slots=48, released=48, start=date(2026, 3, 28))
    outline = Outline(made.report().to_html())
    assert "28 March 2026, 00:00 to 30 March 2026, 01:00 (Europe/Berlin)" in outline.words
    assert "Hour by hour" in outline.words
    data = json.loads(outline.scripts[0])
    shown = [row["when"] for row in data["bars"][0]["data"]["values"]]
    # 02:00 to 03:00 does not exist on that day.
    assert shown[25:27] == [
        "Sun 29 March 2026, 01:00 CET to 03:00 CEST",
        "Sun 29 March 2026, 03:00 to 04:00 CEST",
    ]


def test_weeks_and_months() -> None:
    weekly = MadeUp(slot="1w", slots=12, released=9, start=date(2026, 3, 2))
    words = Outline(weekly.report().to_html()).words
    assert "2 March 2026 to 3 May 2026 (Europe/Berlin)" in words
    assert "week 9 of 12" in words
    assert "Week by week" in words
    assert "Attributed conversions up to the end of Sun 3 May 2026." in words
    monthly = MadeUp(slot="1mo", slots=12, released=9)
    outline = Outline(monthly.report().to_html())
    assert "1 March 2026 to 30 November 2026 (Europe/Berlin)" in outline.words
    assert "Attributed conversions up to the end of November 2026." in outline.words
    bars = json.loads(outline.scripts[0])["bars"][0]["data"]["values"]
    assert [row["when"] for row in bars][:2] == ["March 2026", "April 2026"]


def test_a_long_campaign_draws_its_newest_bars() -> None:
    outline = Outline(MadeUp(slots=100, released=100).report().to_html())
    assert "The newest 62 of 100 days are drawn." in outline.words
    assert len(json.loads(outline.scripts[0])["bars"][0]["data"]["values"]) == 62


def test_noise_alone() -> None:
    words = Outline(MadeUp(volume=0.1, scale=20).report().to_html()).words
    assert "which cannot be told from zero yet" in words
    assert "Shares are not shown yet" in words
    assert "~ marks what cannot be told from zero at 95%" in words


def test_money() -> None:
    made = MadeUp(metric="value", value_cap=500.0, volume=9000, scale=900, bounds=(1, 2))
    words = Outline(made.report().to_html()).words
    assert "attributed value so far" in words
    assert "at most 1 to 2 conversions of 500.00 each a day, depending on the day." in words


def test_personal_budgets() -> None:
    report = MadeUp(mechanism="personal-budget").report()
    words = Outline(report.to_html()).words
    assert (
        "Each band holds the total before cutting and noise with 95% confidence, if all publishers "
        "are cut alike." in words
    )
    assert "95% intervals. What may be missing because it was cut is not in them." in words
    assert "Upper ends of intervals include what may have been cut and not counted." in words
    assert "Every person has one budget for the whole campaign." in words
    assert "cover the noise only" not in words
    total = report.standings.everything
    shown = f"{total.estimate:,.0f} {total.low:,.0f} to {total.high:,.0f} 100%"
    assert f"All publishers {shown}" in words
    # Symmetric around the estimate is what it must not be.
    assert "±" not in words


@pytest.mark.parametrize(
    ("mechanism", "released", "told"),
    [
        ("adsbpc", 31, notes.NOISE_ONLY),
        ("personal-budget", 10, f"{notes.UPPER_ENDS} {notes.FAR_AHEAD}"),
        ("personal-budget", 11, notes.UPPER_ENDS),
    ],
)
def test_what_intervals_leave_out_stands_above_the_table(
    mechanism: Any, released: int, told: str
) -> None:
    """Not only in the terminal, and not only where the promise is unfolded."""
    report = MadeUp(mechanism=mechanism, released=released).report()
    words = Outline(report.to_html()).words
    assert f"{notes.totals_until(report)} {told}" in words
    assert (notes.FAR_AHEAD in words) is (notes.FAR_AHEAD in told)


def test_bounds_say_nothing_of_budgets_per_person() -> None:
    words = Outline(MadeUp().report().to_html()).words
    assert "Each band holds the total before noise with 95% confidence." in words
    assert "intervals do not include that: they cover the noise only." in words
    assert "Upper ends" not in words
    assert "What was cut is not in them" not in words


def test_models_compared() -> None:
    made = MadeUp(("big", "small"), model="shapley", fit_slot=7, compared=("shapley", "logistic"))
    outline = Outline(made.report().to_html())
    words = outline.words
    places = [
        words.find(title) for title in ("Who contributed", "Models compared", "Privacy budget")
    ]
    assert -1 < places[0] < places[1] < places[2]
    assert "later ones with Shapley, whose parameters day 7 released" in words
    assert "The upright line is at Shapley, the model in use." in words
    assert "figures of another model every day would be a campaign of its own" in words
    big = [share.share for share in made.fit.comparison if share.publisher == "big"]
    assert (
        f"big Shapley in use {100 * big[0]:.0f}% ± 2 logistic {100 * big[1]:.0f}% ± 2 0% 20%"
        in words
    )
    used = [attrs for _, attrs in outline.tags if attrs.get("class") == "used"]
    assert len(used) == 3


def test_sure_shares_have_more_digits() -> None:
    made = MadeUp(("big",), model="shapley", fit_slot=7, share_error=0.002)
    share = made.fit.comparison[0].share
    assert f"{100 * share:.1f}% ± 0.4" in Outline(made.report().to_html()).words


def test_the_model_in_use_need_not_be_among_those_compared() -> None:
    made = MadeUp(model="shapley_ordered", fit_slot=7)
    outline = Outline(made.report().to_html())
    assert "Shapley in order, the model in use, does not follow from these counts." in outline.words
    assert "upright line" not in outline.words
    assert "used-line" not in {attrs.get("class") for _, attrs in outline.tags}


def test_models_of_the_largest_publishers_are_compared() -> None:
    made = MadeUp(tuple(f"p{k:02d}" for k in range(40)), model="markov", fit_slot=7)
    outline = Outline(made.report().to_html())
    assert "33 smaller publishers are in the JSON format." in outline.words
    figures = [attrs for tag, attrs in outline.tags if tag == "figure"]
    # One for all publishers, eight day by day, eight with models.
    assert len(figures) == 1 + 8 + 8


@pytest.mark.parametrize(
    "made",
    [
        MadeUp(),
        MadeUp(model="shapley", fit_slot=7, released=6),
        MadeUp(model="shapley"),
        MadeUp(model="probabilistic", fit_slot=7, compared=()),
    ],
    ids=["plain", "not yet", "file", "nothing to compare"],
)
def test_no_models_are_compared_without_a_comparison(made: MadeUp) -> None:
    outline = Outline(made.report().to_html())
    assert "Models compared" not in outline.words
    assert "models-title" not in {attrs.get("id") for _, attrs in outline.tags}


def test_budgets_can_be_read_by_a_screen_reader() -> None:
    outline = Outline(MadeUp().report().to_html())
    meters = [attrs for _, attrs in outline.tags if attrs.get("role") == "meter"]
    assert [meter["aria-valuetext"] for meter in meters] == ["0.9 of 1 spent", "1.9 of 3 spent"]
    assert [meter["aria-valuenow"] for meter in meters] == ["0.9", "1.9"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("spring-shoes", "spring-shoes"), ("../a/b", "a-b"), ("💥", "campaign"), ("a b", "a-b")],
)
def test_the_download_has_a_harmless_name(name: str, expected: str) -> None:
    outline = Outline(MadeUp(name=name, released=2).report().to_html())
    link = next(attrs for _, attrs in outline.tags if attrs.get("id") == "download")
    assert link["download"] == f"{expected}-day-2.csv"
