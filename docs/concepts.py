"""Draws the pictures of docs/concepts and of tutorials: `make concepts`.

Colours are those of the report, as CSS variables: on the site a picture follows light and dark, and
anywhere else it is light.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from html import escape
from io import StringIO
from itertools import accumulate
from math import sqrt
from pathlib import Path
from statistics import NormalDist

from adsbpc import Campaign
from adsbpc.lab.journeys import make_campaign
from adsbpc.report.palette import LIGHT

FOLDER = Path(__file__).parent / "concepts" / "pictures"
WIDTH = 680
# Of a picture whose days go from left to right.
_LEFT, _RIGHT, _TOP, _BASE = 60, WIDTH - 20, 64, 300
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"


def colour(name: str) -> str:
    return f"var(--{name}, {LIGHT[name]})"


def text(
    x: float, y: float, words: str, size: int = 14, fill: str = "ink", anchor: str = "start",
    weight: int = 400,
) -> str:  # fmt: skip
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" '
        f'font-weight="{weight}" style="fill:{colour(fill)}">{escape(words)}</text>'
    )


def box(
    x: float, y: float, width: float, height: float, fill: str, opacity: float = 1, edge: str = ""
) -> str:
    stroke = f"stroke:{colour(edge)}" if edge else "stroke:none"
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="4" '
        f'style="fill:{colour(fill)};fill-opacity:{opacity:g};{stroke}"/>'
    )


def line(
    points: Sequence[tuple[float, float]], stroke: str, width: float = 2, dash: str = ""
) -> str:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<polyline points="{places}" stroke-width="{width:g}" stroke-dasharray="{dash}" '
        f'style="fill:none;stroke:{colour(stroke)}"/>'
    )


def dot(x: float, y: float, fill: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" style="fill:{colour(fill)}"/>'


def band(
    lower: Sequence[tuple[float, float]], upper: Sequence[tuple[float, float]], opacity: float
) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (*lower, *reversed(upper)))
    return (
        f'<polygon points="{points}" style="fill:{colour("series-1")};fill-opacity:{opacity:g}"/>'
    )


def draw(name: str, title: str, height: int, parts: Sequence[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(parts)
    (FOLDER / f"{name}.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}" font-family="{_FONT}">\n'
        f"{box(0, 0, WIDTH, height, 'card')}\n{lines}\n</svg>\n",
        encoding="utf-8",
    )


def found_by(rho: float, wrongly: float = 0.05) -> float:
    """How many of those who are in the data the best test finds that accuses so many who are not,
    of somebody who uses all of a budget of rho, with Gaussian noise."""
    normal = NormalDist()
    return normal.cdf(normal.inv_cdf(wrongly) + sqrt(2 * rho))


def draw_rho() -> None:
    parts = [
        text(20, 30, "Who was in the data? What the best guess can find", 16, weight=600),
        text(
            20,
            52,
            "of 100 people who were, if it may accuse 5 of 100 people who were not",
            14,
            "quiet",
        ),
    ]
    left, scale = 120, 4.6
    for row, rho in enumerate((0.01, 0.1, 0.5, 1, 2, 5)):
        y, found = 78 + 36 * row, 100 * found_by(rho)
        parts += [
            text(left - 14, y + 17, f"rho = {rho:g}", anchor="end"),
            box(left, y, 100 * scale, 24, "paper"),
            box(left, y, found * scale, 24, "series-1"),
            text(left + found * scale + 8, y + 17, f"{found:.0f}", weight=600),
        ]
    bottom = 78 + 36 * 6
    parts += [
        line([(left + 5 * scale, 70), (left + 5 * scale, bottom)], "series-6", 2, "5 4"),
        text(left + 5 * scale, bottom + 18, "5: a guess without the data", 13, "quiet"),
    ]
    draw("rho", "For larger rho, more people can be found out", bottom + 32, parts)


def draw_cut() -> None:
    counts, allowance = (1, 2, 1, 3, 1, 11, 2, 1, 6, 1), 4
    parts = [
        text(
            20,
            30,
            "Ten people, their conversions, and the budget that each of them has",
            16,
            weight=600,
        )
    ]
    base, step, unit = 300, 58, 20
    top = base - allowance * unit
    for place, count in enumerate(counts):
        x = 40 + step * place
        kept = min(count, allowance)
        parts.append(box(x, base - kept * unit, 34, kept * unit, "series-1"))
        if count > kept:
            parts.append(
                box(x, base - count * unit, 34, (count - kept) * unit, "series-6", 0.25, "series-6")
            )
        parts.append(text(x + 17, base + 20, str(count), 13, "quiet", "middle"))
    cut = sum(max(0, count - allowance) for count in counts)
    parts += [
        line([(20, top), (WIDTH - 20, top)], "ink", 1.5, "6 4"),
        text(30, top - 8, "the budget", 13, "quiet"),
        text(400, 70, f"{cut} of {sum(counts)} conversions are cut", 14, "series-6", weight=600),
        text(400, 90, "two people who convert often", 13, "quiet"),
    ]
    draw("cut", "What goes beyond a person's budget is cut", 340, parts)


def draw_totals() -> None:
    """A small publisher of a made-up month, as it was and as it was released."""
    with tempfile.TemporaryDirectory() as folder:
        made = make_campaign(Path(folder), 20_000, 31, 1, "last_touch")
        campaign = Campaign.load(made.spec)
        campaign.release()
        report = campaign.report()
        cells = [cell for cell in report.running_totals(range(1, 32)) if cell.publisher == "news"]
        truth = _truth(campaign, Path(folder))["news"]
    low = min(0.0, *(cell.low for cell in cells))
    high = max(cell.high for cell in cells)
    place = _days(31, low, high)
    zero = place(1, 0)[1]
    parts = [
        text(20, 30, "Conversions of one small publisher, day by day", 16, weight=600),
        band([place(day, cell.low) for day, cell in enumerate(cells, 1)],
             [place(day, cell.high) for day, cell in enumerate(cells, 1)], 0.18),
        line([(_LEFT, zero), (_RIGHT, zero)], "quiet", 1),
        line([place(day, value) for day, value in enumerate(truth, 1)], "series-6", 2, "6 4"),
        line([place(day, cell.estimate) for day, cell in enumerate(cells, 1)], "series-1", 2.5),
        *_axes(31, zero, place(1, high)[1], high),
        line([(70, 54), (96, 54)], "series-1", 2.5),
        text(102, 58, "released, with its 95% interval", 13),
        line([(330, 54), (356, 54)], "series-6", 2, "6 4"),
        text(362, 58, "the truth, which nobody sees", 13),
    ]  # fmt: skip
    draw("totals", "A released total moves around the true one", 340, parts)


def _days(days: int, low: float, high: float) -> Callable[[float, float], tuple[float, float]]:
    """Where a value of a day stands."""

    def place(day: float, value: float) -> tuple[float, float]:
        share = (value - low) / (high - low)
        return _LEFT + (_RIGHT - _LEFT) * (day - 1) / (days - 1), _BASE - (_BASE - _TOP) * share

    return place


def _axes(days: int, zero: float, top: float, high: float) -> list[str]:
    return [
        text(_LEFT - 8, zero + 5, "0", 13, "quiet", "end"),
        text(_LEFT - 8, top + 5, f"{high:.0f}", 13, "quiet", "end"),
        text(_LEFT, _BASE + 24, "day 1", 13, "quiet"),
        text(_RIGHT, _BASE + 24, f"day {days}", 13, "quiet", "end"),
    ]


def _truth(campaign: Campaign, folder: Path) -> dict[str, list[float]]:
    """Credits before privacy, so far on each day: these people are made up."""
    import pyarrow.parquet as pq

    from adsbpc.cli.attribute import run

    with redirect_stdout(StringIO()):
        run(folder / "campaign.toml", folder / "credits.parquet", None, True)
    names, slots = campaign.spec.reported_publishers, campaign.spec.campaign.slots
    by_day = {name: [0.0] * slots for name in names}
    for row in pq.read_table(folder / "credits.parquet").to_pylist():
        name = row["publisher_id"] if row["publisher_id"] in names else "other"
        by_day[name][row["slot"] - 1] += row["credit"]
    return {name: list(accumulate(days)) for name, days in by_day.items()}


def draw_intervals() -> None:
    """Publishers of a made-up fortnight of few people: some cannot be told from zero."""
    with tempfile.TemporaryDirectory() as folder:
        made = make_campaign(Path(folder), 3_000, 14, 1, "last_touch")
        campaign = Campaign.load(made.spec)
        campaign.release()
        cells = [each.total for each in campaign.report().standings.publishers]
        truth = _truth(campaign, Path(folder))
    low, high = min(0.0, *(cell.low for cell in cells)), max(cell.high for cell in cells)
    left, right, top = 110, WIDTH - 30, 100

    def place(value: float) -> float:
        return left + (right - left) * (value - low) / (high - low)

    base = top + 38 * len(cells)
    parts = [
        text(20, 30, "Six publishers, a fortnight, 3,000 people", 16, weight=600),
        line([(34, 56), (70, 56)], "series-1", 4),
        dot(52, 56, "series-1"),
        text(80, 60, "estimate and 95% interval", 13),
        line([(290, 49), (290, 63)], "series-6", 3),
        text(300, 60, "the truth, which nobody sees", 13),
        line([(place(0), top - 20), (place(0), base - 8)], "quiet", 1, "4 4"),
        text(place(0), base + 10, "0", 13, "quiet", "middle"),
    ]
    for row, cell in enumerate(cells):
        y, true = top + 38 * row, place(truth[cell.publisher][-1])
        name = f"{cell.publisher} ~" if cell.noisy else cell.publisher
        parts += [
            text(left - 14, y + 5, name, 14, "quiet" if cell.noisy else "ink", "end"),
            line([(place(cell.low), y), (place(cell.high), y)], "series-1", 4),
            dot(place(cell.estimate), y, "series-1"),
            line([(true, y - 9), (true, y + 9)], "series-6", 3),
        ]
    draw("intervals", "Estimates with intervals, and the truth", base + 26, parts)


def draw_trial() -> None:
    """Buyers that a made-up campaign caused, as its report told them every day."""
    with tempfile.TemporaryDirectory() as folder:
        made = make_campaign(Path(folder), 20_000, 31, 1, "last_touch", with_control=True)
        campaign = Campaign.load(made.spec)
        campaign.release()
        looks = [each for each in campaign.report().lifts if each.measure == "buyers"]
    true = made.caused["buyers"]
    bands = [
        (each.slot, each.band_low, each.band_high)
        for each in looks
        if each.band_low is not None and each.band_high is not None
    ]
    low = min([each.low for each in looks] + [each[1] for each in bands])
    high = max([each.high for each in looks] + [each[2] for each in bands])
    place = _days(31, low, high)
    zero = place(1, 0)[1]
    parts = [
        text(20, 30, "Buyers who would not have bought without the campaign", 16, weight=600),
        band([place(s, a) for s, a, _ in bands], [place(s, b) for s, _, b in bands], 0.15),
        band([place(each.slot, each.low) for each in looks],
             [place(each.slot, each.high) for each in looks], 0.3),
        line([(_LEFT, zero), (_RIGHT, zero)], "quiet", 1, "4 4"),
        line([place(each.slot, each.incremental) for each in looks], "series-1", 2.5),
        dot(*place(31, true), "series-6"),
        *_axes(31, zero, place(1, high)[1], high),
        box(70, 46, 26, 14, "series-1", 0.3),
        text(102, 58, "one look", 13),
        box(180, 46, 26, 14, "series-1", 0.15),
        text(212, 58, "all looks", 13),
        dot(300, 53, "series-6"),
        text(312, 58, "the truth at the end, which nobody sees", 13),
    ]  # fmt: skip
    draw("trial", "An effect with an interval for one look and a band for all", 340, parts)


def draw_limits() -> None:
    inside = (
        "all impressions of one user id",
        "all conversions of it",
        "in every slot of all campaigns of the scope",
        "whatever is computed from releases",
    )
    outside = (
        "one person behind several user ids",
        "publishers, dates, workload: they are public",
        "what is true of people in general",
        "the same people in another scope",
        "events, ledger and books: keep them safe",
    )
    parts = []
    for left, title, rows, mark in (
        (20, "Protected", inside, "series-3"),
        (350, "Not protected", outside, "series-6"),
    ):
        parts += [
            box(left, 16, 310, 248, "paper", 1, "line"),
            box(left, 16, 6, 248, mark),
            text(left + 22, 48, title, 16, weight=600),
        ]
        parts += [text(left + 22, 84 + 34 * k, row, 13) for k, row in enumerate(rows)]
    draw("limits", "What is protected, and what is not", 280, parts)


def draw_way() -> None:
    steps = (
        ("events", "your files,", "or pushed"),
        ("attribution", "who gets credit,", "person by person"),
        ("budgets", "a limit on what", "one person adds"),
        ("noise", "drawn once,", "charged once"),
        ("report", "estimates,", "intervals"),
    )
    parts, wide = [], 116
    for place, (title, first, second) in enumerate(steps):
        x = 14 + place * (wide + 18)
        parts += [
            box(x, 20, wide, 84, "paper", 1, "line"),
            box(x, 20, wide, 5, "series-1" if place < 3 else "series-3"),
            text(x + wide / 2, 50, title, 15, anchor="middle", weight=600),
            text(x + wide / 2, 72, first, 11, "quiet", "middle"),
            text(x + wide / 2, 89, second, 11, "quiet", "middle"),
        ]
        if place:
            parts.append(text(x - 9, 67, "\u203a", 20, "quiet", "middle"))
    draw("way", "From events to a report", 124, parts)


def main() -> None:
    pictures = (draw_rho, draw_cut, draw_totals, draw_intervals, draw_trial, draw_limits, draw_way)
    for picture in pictures:
        picture()


if __name__ == "__main__":
    main()
