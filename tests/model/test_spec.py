"""The campaign file: what it means, and a clear message for each thing that is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from adsbpc.errors import SpecError
from adsbpc.model import CampaignSpec, load_spec
from adsbpc.model.durations import MICROSECONDS_PER_DAY

GOOD = """
[campaign]
name = "spring-shoes"
scope = "acme"
advertiser = "Ad-1"
start = 2026-03-01
slots = 31
slot = "1d"
publishers = ["P-1", "P-2"]
metric = "conversions"

[events]
impressions = "data/impressions/*.parquet"
conversions = "data/conversions/*.parquet"
engine = "duckdb"

[attribution]
model = "last_touch"
click_lookback = "30d"
view_lookback = "1d"

[engine.options]
memory_limit = "1GB"
"""


def load(tmp_path: Path, text: str) -> CampaignSpec:
    file = tmp_path / "campaign.toml"
    file.write_text(text, encoding="utf-8")
    return load_spec(file)


def with_dates(dates: str) -> str:
    return GOOD.replace('start = 2026-03-01\nslots = 31\nslot = "1d"', dates)


def test_a_good_file(tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(GOOD, encoding="utf-8")
    spec = load_spec(file)
    assert spec.campaign.slots == 31
    assert spec.attribution.view_lookback == MICROSECONDS_PER_DAY
    assert spec.reported_publishers == ("P-1", "P-2", "other")
    assert spec.directory == tmp_path
    assert spec.engine.options == {"memory_limit": "1GB"}


WRONG = [
    ("scope =", "scop =", '[campaign] scop: unknown key. Did you mean "scope"? Remove it'),
    ("click_lookback", "clik_lookback", "[attribution] clik_lookback: unknown key. Did you mean"),
    ("[attribution]", "[atribution]", '[atribution]: unknown key. Did you mean "attribution"?'),
    ('name = "spring-shoes"', "", "[campaign] name: is missing. Add it"),
    ("[events]", "[events.columns]", "unknown key"),
    ("slots = 31", "slots = 0", "[campaign] slots = 0: expected 1 or more. Raise it"),
    ("slots = 31", "slots = 31.5", "slots = 31.5: expected a whole number. Correct it"),
    ("2026-03-01", "0001-01-01", "[campaign] start = "),
    ("2026-03-01", "9999-12-15", ": expected less than 2150-01-01. Lower it"),
    ('"30d"', '"999999d"', "[attribution] click_lookback = '999999d': expected at most 3660d"),
    ("2026-03-01", '"soon"', "[campaign] start = 'soon': expected a day such as 2026-03-01"),
    ('slot = "1d"', 'slot = "2w"', "slot = '2w': expected one of '1h', '1d', '1w' or '1mo'"),
    ('slot = "1d"', 'timezone = "Mars"', "timezone = 'Mars': expected an IANA time zone"),
    ('["P-1", "P-2"]', '["P-1", "P-1"]', "lists 'P-1' more than once: remove the repeats"),
    ('["P-1", "P-2"]', "[]", "publishers = []: expected a list of 1 or more, found 0"),
    ('["P-1", "P-2"]', "3", "[campaign] publishers = 3: expected a list"),
    ('["P-1", "P-2"]', '["P-1", ""]', "1 = '': expected a length of 1 or more"),
    ('["P-1", "P-2"]', '["other"]', "lists 'other', which is kept for everything"),
    ('"conversions"\n\n', '"value"\n\n', 'metric = "value" needs value_cap'),
    ('"conversions"\n\n', '"conversions"\nvalue_cap = 5\n\n', "value_cap belongs to metric"),
    ('"conversions"\n\n', '"value"\nvalue_cap = -1\n\n', "[campaign] value_cap = -1: "),
    ('"conversions"\n\n', '"value"\nvalue_cap = inf\n\n', "value_cap = inf: expected at most"),
    ('"last_touch"', '"lst_touch"', "expected one of 'last_touch'"),
    ('"last_touch"', '"lst_touch"', 'Did you mean "last_touch"?'),
    ('"30d"', '"30 days"', "[attribution] click_lookback = '30 days': expected a whole number and"),
    ('"30d"', "30", "[attribution] click_lookback = 30: expected a whole number and a unit"),
    ('"last_touch"', '"last_touch"\nhalf_life = "7d"', 'half_life belongs to model = "time_decay"'),
    ('"last_touch"', '"time_decay"\nhalf_life = "0d"', "half_life must be longer than zero"),
    ('"last_touch"', '"position"\nfirst_share = 0.7', "first_share + last_share = 1.1"),
    ('"last_touch"', '"position"\nfirst_share = nan', "first_share = nan: expected a finite"),
    ('"duckdb"', '"dukdb"', 'Did you mean "duckdb"?'),
    ('name = "spring-shoes"', "name = spring", "is not valid TOML"),
    ("[campaign]", "workload = []\n[campaign]", "[workload] = []: "),
    ("[engine.options]", "[engine]\noptions = 3\n[ledger]", "options = 3: expected a section"),
    ('"1GB"', "[1]", "[engine.options] memory_limit = [1]: expected text. Put it in quotes"),
    ("[engine.options]", "[ledger]", "[ledger] memory_limit: unknown key"),
    ("[engine.options]", "[events.csv]\ndelimiter='xx'\n[engine.options]", "expected one sign"),
    ("[campaign]", 'directory = "/"\n[campaign]', "unknown key [directory]"),
]


@pytest.mark.parametrize(("part", "instead", "message"), WRONG)
def test_each_wrong_file_is_explained(
    part: str, instead: str, message: str, tmp_path: Path
) -> None:
    assert part in GOOD
    with pytest.raises(SpecError) as caught:
        load(tmp_path, GOOD.replace(part, instead, 1))
    assert message in str(caught.value)
    assert "Input should" not in str(caught.value)
    assert str(tmp_path / "campaign.toml") in str(caught.value)


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    broken = GOOD.replace("slots = 31", "slots = -1").replace('"30d"', '"x"')
    with pytest.raises(SpecError) as caught:
        load(tmp_path, broken)
    assert "slots = -1" in str(caught.value)
    assert "click_lookback = 'x'" in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no such campaign file"):
        load_spec(tmp_path / "nowhere.toml")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="cannot be read"):
        load_spec(tmp_path / "x.toml")


def test_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        load_spec(tmp_path)


@pytest.mark.parametrize(
    ("dates", "slots"),
    [
        ("start = 2026-03-01\nend = 2026-03-31", 31),
        ("start = 2026-03-01\nend = 2026-03-01", 1),
        ('start = 2026-03-01\nend = 2026-03-01\nslot = "1h"', 24),
        ('start = 2026-03-29\nend = 2026-03-29\nslot = "1h"\ntimezone = "Europe/Berlin"', 23),
        ('start = 2026-03-02\nend = 2026-03-08\nslot = "1w"', 1),
        ('start = 2026-03-01\nend = 2026-05-02\nslot = "1w"\nweek_starts = "sunday"', 9),
        ('start = 2026-03-01\nend = 2026-03-31\nslot = "1mo"', 1),
        ('start = 2026-03-01\nend = 2028-02-29\nslot = "1mo"', 24),
        ('start = 2149-12-01\nend = 2199-12-31\nslot = "1mo"', 601),
    ],
)
def test_an_end_in_place_of_slots(dates: str, slots: int, tmp_path: Path) -> None:
    assert load(tmp_path, with_dates(dates)).campaign.slots == slots


@pytest.mark.parametrize(
    ("dates", "message"),
    [
        ("start = 2026-03-31\nend = 2026-03-01", "end = 2026-03-01 is before start = 2026-03-31"),
        ("start = 2026-03-01\nend = 2026-03-31\nslots = 31", "gives both slots and end"),
        ("start = 2026-03-01\nend = 'May'", "both are days, for example 2026-03-31"),
        ("end = 2026-03-31", "end needs start"),
        ("start = 2026-03-01\nslots = 0", "[campaign] slots = 0: "),
        ("start = 2026-03-01\nend = 9999-12-31", "end = 9999-12-31: expected a day before 2200"),
        ('start = 2026-03-01\nend = 9999-12-31\nslot = "1h"', "expected a day before 2200-01-01"),
        (
            'start = 2026-03-04\nslots = 9\nslot = "1w"',
            '[campaign] start = 2026-03-04: is a Wednesday, and with week_starts = "monday" weeks '
            "start on a Monday. Say 2026-03-02 or 2026-03-09",
        ),
        (
            'start = 2026-03-02\nend = 2026-03-29\nslot = "1w"\nweek_starts = "sunday"',
            '[campaign] start = 2026-03-02: is a Monday, and with week_starts = "sunday" weeks '
            "start on a Sunday. Say 2026-03-01 or 2026-03-08",
        ),
        (
            'start = 2026-03-02\nend = 2026-03-20\nslot = "1w"',
            '[campaign] end = 2026-03-20: is a Friday, and with week_starts = "monday" weeks end '
            "on a Sunday. Say 2026-03-15 or 2026-03-22",
        ),
        ('start = 2026-03-02\nend = 2026-03-04\nslot = "1w"', "on a Sunday. Say 2026-03-08"),
        ('start = 1980-01-01\nslots = 1\nslot = "1w"', "Say 1980-01-07"),
        (
            'start = 2026-03-15\nslots = 9\nslot = "1mo"',
            '[campaign] start = 2026-03-15: is not the first day of a month, and slot = "1mo" '
            "needs that. Say 2026-03-01 or 2026-04-01",
        ),
        (
            'start = 2026-03-01\nend = 2026-05-30\nslot = "1mo"',
            '[campaign] end = 2026-05-30: is not the last day of a month, and slot = "1mo" needs '
            "that. Say 2026-04-30 or 2026-05-31",
        ),
        (
            'start = 2026-03-01\nslots = 9\nweek_starts = "monday"',
            '[campaign]: week_starts belongs to slot = "1w": set that slot or remove it',
        ),
        ('start = 2026-03-02\nslots = 9\nslot = "1w"\nweek_starts = "Mon"', "week_starts = 'Mon'"),
        ('start = 2026-03-02\nend = 2026-03-08\nslot = "1w"\nweek_starts = []', "week_starts = []"),
        ('start = 0001-01-01\nend = 2026-03-08\nslot = "1w"', "start = "),
        (
            'start = 2140-01-01\nslots = 721\nslot = "1mo"',
            "[campaign] slots = 721: the campaign would last until after 2199-12-31. Lower it",
        ),
        (
            'start = 2140-03-07\nslots = 8784\nslot = "1w"',
            "[campaign] slots = 8784: the campaign would last until after 2199-12-31. Lower it",
        ),
    ],
)
def test_bad_dates(dates: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        load(tmp_path, with_dates(dates))
    assert message in str(refused.value)
