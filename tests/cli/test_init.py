"""`adsbpc init` looks at files whose columns have any names; people decide what is public."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc.errors import SpecError
from adsbpc.model import load_spec
from tests.cli.program import adsbpc
from tests.odd_files import write_odd_files

_FIRST = datetime(2026, 3, 1, tzinfo=UTC)
_FILES = ("--impressions", "ads_seen.csv", "--conversions", "orders.csv")
_FOUND = {
    "impressions": {
        "user_id": "Kunde",
        "publisher_id": "Seite",
        "advertiser_id": "Marke",
        "timestamp": "gesehen am",
    },
    "conversions": {
        "user_id": "Kundennr",
        "advertiser_id": "Shop",
        "timestamp": "gekauft",
        "value": "Betrag",
        "event_id": "Beleg",
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_odd_files(tmp_path, people=300, days=5)
    return tmp_path


def _refused(folder: Path, *arguments: str, code: int = 2) -> str:
    before = sorted(folder.iterdir())
    done = adsbpc("init", "spring.toml", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (code, ""), done.stdout
    assert sorted(folder.iterdir()) == before, "something was left behind"
    assert "Traceback" not in done.stderr
    return done.stderr


def test_publishers_are_a_draft_until_somebody_says_that_they_are_public(folder: Path) -> None:
    done = adsbpc("init", "spring.toml", *_FILES, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "conversions by" in done.stdout, "no expected errors were told"
    draft = folder / "spring-publishers.draft.txt"
    names = [line for line in draft.read_text().splitlines() if not line.startswith("#")]
    # In an order that says nothing about sizes.
    assert names == ["Forum", "Radio", "Suche", "Zeitung"]
    with pytest.raises(SpecError, match="still a draft, spring-publishers"):
        load_spec(folder / "spring.toml")
    refused = adsbpc("release", "spring.toml", cwd=folder)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert not list(folder.glob("*.sqlite"))
    draft.rename(folder / "spring-publishers.txt")
    spec = load_spec(folder / "spring.toml")
    assert spec.campaign.publishers == ("Forum", "Radio", "Suche", "Zeitung")
    assert (spec.campaign.start, spec.campaign.slots) == (_FIRST.date(), 5)
    assert adsbpc("release", "spring.toml", cwd=folder).returncode == 0


def test_nothing_that_follows_from_events_is_written_but_what_is_public(folder: Path) -> None:
    told = json.loads(adsbpc("init", "spring.toml", *_FILES, "--json", cwd=folder).stdout)
    assert told["columns"] == _FOUND
    assert told["draft"] == "spring-publishers.draft.txt"
    assert told["advertiser"] == "Schuh & Co"
    text = (folder / "spring.toml").read_text()
    assert "[expected]" not in text
    for name in told["publishers"]:
        assert name not in text


def test_whoever_confirms_or_lists_them_gets_no_draft(folder: Path) -> None:
    for name, arguments in (
        ("confirmed.toml", ("--publishers-are-public",)),
        ("listed.toml", ("--publisher", "Radio", "--publisher", "Kino")),
    ):
        done = adsbpc("init", name, *_FILES, *arguments, cwd=folder)
        assert done.returncode == 0, done.stderr
        assert "draft" not in done.stdout
    assert load_spec(folder / "confirmed.toml").campaign.publishers[0] == "Forum"
    assert load_spec(folder / "listed.toml").campaign.publishers == ("Radio", "Kino")
    assert not list(folder.glob("*.draft.txt"))


def _events(
    written: Callable[[datetime], object], columns: tuple[str, ...]
) -> tuple[dict[str, list[object]], dict[str, list[object]]]:
    """Impressions and conversions of made-up people. The first four columns are of impressions."""
    draw = Random(3)
    seen: list[list[object]] = [[] for _ in range(4)]
    bought: list[list[object]] = [[] for _ in range(3)]
    for person in range(400):
        moment = _FIRST + timedelta(seconds=draw.randrange(20 * 86_400))
        row = (written(moment), draw.choice("XYZ"), f"u{person:04d}", "brand-7")
        for values, value in zip(seen, row, strict=True):
            values.append(value)
        if draw.random() < 0.4:
            later = written(moment + timedelta(hours=1))
            for values, value in zip(bought, (f"u{person:04d}", later, "brand-7"), strict=True):
                values.append(value)
    return dict(zip(columns[:4], seen, strict=True)), dict(zip(columns[4:], bought, strict=True))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (lambda moment: moment.isoformat(), {}),
        (lambda moment: int(moment.timestamp()), {"timestamps": "epoch_seconds"}),
        (lambda moment: int(1000 * moment.timestamp()), {"timestamps": "epoch_milliseconds"}),
        (
            lambda moment: f"{moment:%m/%d/%Y %I:%M %p}",
            {"timestamp_format": "%m/%d/%Y %I:%M %p"},
        ),
        (lambda moment: f"{moment:%Y-%m-%d %H:%M}", {"timestamp_format": "%Y-%m-%d %H:%M"}),
    ],
    ids=["iso", "seconds", "milliseconds", "american", "minutes"],
)
@pytest.mark.parametrize(
    "columns",
    [
        ("event_time", "utm_source", "visitorId", "Brand", "VISITOR ID", "ordered_at", "brand"),
        # Names that say nothing: what stands in the columns has to do.
        ("c1", "c2", "c3", "c4", "k1", "k2", "k3"),
    ],
    ids=["named", "nameless"],
)
def test_columns_are_found_by_name_or_by_what_stands_in_them(
    tmp_path: Path,
    written: Callable[[datetime], object],
    said: dict[str, str],
    columns: tuple[str, ...],
) -> None:
    for name, table in zip(("seen", "bought"), _events(written, columns), strict=True):
        pq.write_table(pa.table(table), tmp_path / f"{name}.parquet")
    files = ("--impressions", "seen.parquet", "--conversions", "bought.parquet")
    done = adsbpc(
        "init", "c.toml", *files, "--publishers-are-public", "--timezone", "UTC", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    moment, publisher, person, brand, *others = columns
    found = json.loads(done.stdout)["columns"]
    assert found["impressions"] == {
        "user_id": person, "publisher_id": publisher, "advertiser_id": brand, "timestamp": moment,
    }  # fmt: skip
    assert found["conversions"] == {
        "user_id": others[0], "advertiser_id": others[2], "timestamp": others[1],
    }  # fmt: skip
    spec = load_spec(tmp_path / "c.toml")
    assert spec.campaign.publishers == ("X", "Y", "Z")
    assert (spec.campaign.start, spec.campaign.slots) == (_FIRST.date(), 20)
    events = spec.events.model_dump(exclude_unset=True)
    assert {key: events[key] for key in ("timestamps", "timestamp_format") if key in events} == said


def test_a_wild_row_does_not_stretch_the_campaign_and_a_swapped_day_is_told(tmp_path: Path) -> None:
    seen, bought = _events(lambda moment: f"{moment:%d/%m/%Y %H:%M}", tuple("abcdefg"))
    early = [k for k, moment in enumerate(bought["f"]) if int(str(moment)[:2]) <= 12]
    keep = {name: [column[k] for k in early] for name, column in bought.items()}
    small = [k for k, moment in enumerate(seen["a"]) if int(str(moment)[:2]) <= 12]
    shown = {name: [column[k] for k in small] for name, column in seen.items()}
    many = {name: column * 20 for name, column in keep.items()}
    many["f"][0] = "01/01/2049 10:00"
    pq.write_table(pa.table(shown), tmp_path / "seen.parquet")
    pq.write_table(pa.table(many), tmp_path / "bought.parquet")
    files = ("--impressions", "seen.parquet", "--conversions", "bought.parquet")
    done = adsbpc("init", "c.toml", *files, "--publishers-are-public", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "'%m/%d/%Y %H:%M' fits as well, and means other days" in done.stdout
    assert load_spec(tmp_path / "c.toml").campaign.slots == 12


def test_clicks_and_views_are_found_and_other_words_are_not(tmp_path: Path) -> None:
    seen, bought = _events(lambda moment: moment.isoformat(), tuple("abcdefg"))
    for words, found in ((("click", "view"), "art"), (("banner", "film"), None)):
        kinds = [words[k % 2] for k in range(len(seen["a"]))]
        pq.write_table(pa.table({**seen, "art": kinds}), tmp_path / "seen.parquet")
        pq.write_table(pa.table(bought), tmp_path / "bought.parquet")
        files = ("--impressions", "seen.parquet", "--conversions", "bought.parquet")
        done = adsbpc("init", f"{found}.toml", *files, "--json", cwd=tmp_path)
        assert json.loads(done.stdout)["columns"]["impressions"].get("kind") == found


def test_what_is_expected_has_a_touch_within_the_lookbacks(tmp_path: Path) -> None:
    """A view counts for a day, a click for 30, and what comes after a conversion for none."""
    seen = {
        "user_id": ["a", "b", "c", "d", "e"],
        "publisher_id": ["X"] * 5,
        "advertiser_id": ["brand-7"] * 5,
        "timestamp": [f"2026-03-{day:02d}T10:00:00Z" for day in (9, 1, 1, 11, 10)],
        "kind": ["view", "view", "click", "click", "view"],
    }
    people = ["a", "b", "c", "d", "e", "nobody"]
    bought = {
        "user_id": people,
        "timestamp": ["2026-03-10T10:00:00Z"] * 6,
        "advertiser_id": ["brand-7"] * 6,
    }
    pq.write_table(pa.table(seen), tmp_path / "seen.parquet")
    pq.write_table(pa.table(bought), tmp_path / "bought.parquet")
    files = ("--impressions", "seen.parquet", "--conversions", "bought.parquet")
    done = adsbpc("init", "c.toml", *files, "--timezone", "UTC", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # A day to the second still counts, the same moment does not.
    assert "2 of 5 conversions of people who were shown something have a touch" in done.stdout


def test_what_is_not_found_is_asked_for(folder: Path) -> None:
    only = ("--impressions", "ads_seen.csv")
    assert "--conversions: is missing" in _refused(folder, *only)
    nowhere = ("--impressions", "nowhere.csv", "--conversions", "orders.csv")
    assert "found no file; expected at least one" in _refused(folder, *nowhere, code=1)
    assert "--column impressions.user_id" in _refused(
        folder, *_FILES, "--column", "impressions.user_id=Kund"
    )
    assert "expected a source, a field and a column" in _refused(folder, *_FILES, "--column", "x=y")
    assert "expected an IANA time zone" in _refused(folder, *_FILES, "--timezone", "Mars")
    for wrong, right in (("New York", "America/New_York"), ("Europe/Berlni", "Europe/Berlin")):
        assert f'Did you mean "{right}"?' in _refused(folder, *_FILES, "--timezone", wrong)
    assert "--start soon" in _refused(folder, *_FILES, "--start", "soon")
    orders = folder / "orders.csv"
    orders.write_text(orders.read_text().replace("Schuh & Co", "Hut & Co", 3))
    told = _refused(folder, *_FILES)
    assert "has several: Schuh & Co, Hut & Co. Name one" in told
    orders.write_text("Beleg;gekauft\n1;01.03.2026 10:00:00\n2;02.03.2026 11:00:00\n")
    told = _refused(folder, *_FILES, code=1)
    assert "no column that looks like the person among Beleg, gekauft" in told
    assert "Say --column conversions.user_id=NAME" in told
    orders.write_text("")
    assert "found no columns" in _refused(folder, *_FILES, code=1)


def test_a_mapping_that_is_given_goes_before_what_is_found(folder: Path) -> None:
    given = ("--column", "conversions.value=Beleg", "--json")
    found = json.loads(adsbpc("init", "c.toml", *_FILES, *given, cwd=folder).stdout)["columns"]
    assert found["conversions"]["value"] == "Beleg"
    assert "event_id" not in found["conversions"]
    swapped = ("impressions.publisher_id=Marke", "impressions.advertiser_id=Seite")
    told = _refused(folder, *_FILES, "--column", swapped[0], "--column", swapped[1], code=1)
    assert "no impression of advertiser 'Schuh & Co' with a publisher" in told


def test_in_a_terminal_it_asks(folder: Path) -> None:
    """Files, the time zone, columns, and whether publishers are public; again after a mistake."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "adsbpc", "init", "spring.toml"],
        cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "TERM": "dumb", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, b"ads.csv\nads_seen.csv\norders.csv\nberlin\nEurope/Berlin\n")
    os.write(ours, b"n\nconversions.value=Beleg\nn\nconversions.value=Betrage\ny\ny\n")
    said = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:
            break
        if not more:
            break
        said += more
    os.close(ours)
    assert process.wait(timeout=60) == 0, said.decode()
    said = b" ".join(said.split())
    assert b"ads.csv: no file. Try again." in said
    assert b'Did you mean "Europe/Berlin"?' in said
    assert b'Did you mean "Betrag"?' in said
    assert b"Are all of these names public anyway?" in said
    spec = load_spec(folder / "spring.toml")
    assert spec.campaign.timezone == "Europe/Berlin"
    assert spec.events.conversion_columns.value == "Beleg"
    assert spec.campaign.publishers == ("Forum", "Radio", "Suche", "Zeitung")
