"""A made-up campaign with realistic journeys, for demonstrations: the truth may be shown."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from adsbpc.errors import SpecError
from adsbpc.model import OTHER_PUBLISHER
from adsbpc.model.arms import KeyedArms
from adsbpc.model.attribution_spec import FittedModelName
from adsbpc.model.durations import MICROSECONDS_PER_DAY, MICROSECONDS_PER_HOUR
from adsbpc.model.slots import SlotGrid

_DAY = MICROSECONDS_PER_DAY
# Monday to Sunday: people buy towards the weekend.
_WEEKDAY_WEIGHTS = np.array([0.9, 0.85, 0.9, 1.0, 1.15, 1.3, 1.1])


@dataclass(frozen=True)
class Channel:
    """How one publisher shows up in journeys."""

    name: str
    audience: float  # share of users it reaches
    impressions: float  # per reached user and month
    click_rate: float
    hours_to_conversion: float  # typical time from a touch here to a conversion
    view_price: float  # of one impression
    click_price: float
    surge_day: int | None = None  # from this day on it reaches three times as many


CHANNELS = (
    Channel("search", 0.45, 4.0, 0.50, 6, 0.0, 0.90),
    Channel("social", 0.60, 9.0, 0.06, 48, 0.012, 0.60),
    Channel("video", 0.40, 6.0, 0.02, 96, 0.018, 0.0),
    Channel("news", 0.25, 5.0, 0.05, 60, 0.009, 0.45),
    Channel("partner", 0.10, 3.0, 0.25, 24, 0.0, 0.70),
    Channel("audio", 0.08, 4.0, 0.03, 72, 0.016, 0.0, surge_day=17),
)
# Where people live and what they buy with: more than the campaign lists, as in any real data.
_COUNTRIES = {"DE": 0.42, "FR": 0.21, "ES": 0.14, "IT": 0.11, "PL": 0.07, "AT": 0.05}
_DEVICES = {"phone": 0.58, "desktop": 0.34, "tablet": 0.08}
_SAME_DEVICE = 0.85


@dataclass(frozen=True)
class MadeUp:
    """Where the files of a made-up campaign stand; `caused` is what would not have happened without
    it, by measure."""

    spec: Path
    impressions: int
    conversions: int
    caused: dict[str, float] = field(default_factory=dict)


def make_campaign(
    directory: Path,
    users: int,
    slots: int,
    seed: int,
    model: str,
    engine: str = "duckdb",
    with_control: bool = False,
) -> MadeUp:
    """Write impressions, conversions and a campaign file that measures them; with a control, whose
    people saw nothing, it measures what they caused, too."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecError(f"{directory}: cannot be made a folder ({error}). Give another") from None
    spec = directory / "campaign.toml"
    _remove_earlier(directory, spec)
    grid = SlotGrid(_START, slots, "1d", "UTC")
    impressions = _impressions(rng, users, grid)
    conversions, led_by = _conversions(rng, impressions, grid)
    # Further columns have a source of their own: without them, the people are the same.
    conversions |= _circumstances(np.random.default_rng([seed, 1]), conversions)
    text, caused = _spec_text(slots, model, engine), dict[str, float]()
    if with_control:
        arms = KeyedArms.of(sha256(f"demo {seed}".encode()).hexdigest(), _ARM_SHARES)
        (directory / _KEY_FILE).write_text(arms.key + "\n", encoding="ascii")
        generator = np.random.default_rng([seed, 2])
        impressions, conversions, caused = _held_back(
            generator, impressions, conversions, led_by, arms
        )
        text = _with_lift(text, Counter(arms.arm_of(f"u{number}") for number in range(users)))
    spec.write_text(text, encoding="utf-8")
    (directory / SPEND).write_text(_spend_text(impressions, grid), encoding="utf-8")
    for name, columns in (("impressions", impressions), ("conversions", conversions)):
        moments = columns["timestamp"].astype("datetime64[us]")
        try:
            pq.write_table(
                pa.table({**columns, "timestamp": moments}), directory / f"{name}.parquet"
            )
        except OSError as error:
            raise SpecError(
                f"{directory}: cannot be written to ({error}). Free some space, or give "
                "another folder"
            ) from None
    return MadeUp(spec, len(impressions["user_id"]), len(conversions["user_id"]), caused)


def _remove_earlier(directory: Path, spec: Path) -> None:
    """Make room for a new demo where an earlier one stands, and nowhere else. A ledger is never
    deleted but here, where it protects nobody."""
    if not any(directory.iterdir()):
        return
    others = [file.name for file in directory.glob("*.toml") if file != spec]
    if others or not spec.exists() or not spec.read_text(errors="replace").startswith(_MADE_UP):
        raise SpecError(
            f"{directory}: holds other things than a demo, which might be lost. Give another folder"
        )
    for file in directory.glob(f"{_LEDGER}*"):
        file.unlink()
    for folder in ("adsbpc-releases", "adsbpc-books"):
        shutil.rmtree(directory / folder / _SCOPE, ignore_errors=True)


_SCOPE, _LEDGER = "demo", "demo-ledger.sqlite"
SPEND = "spend.csv"
_KEY_FILE, _TREATMENT, _CONTROL = "lift.key", "treatment", "control"
# An arm sees everything but one publisher, so that its part shows.
_WITHOUT, _WITHHELD = "no_search", "search"
_ARM_SHARES = {_TREATMENT: 0.5, _WITHOUT: 0.25, _CONTROL: 0.25}
# The part of purchases that ads did not cause.
_ANYWAY = 0.75
_LISTED = tuple(channel.name for channel in CHANNELS if channel.name != "partner")
_MADE_UP = "# Made up by adsbpc demo"
_START = np.datetime64("2026-03-01").astype(object)

_Columns = dict[str, NDArray[np.generic]]


def _day_weights(grid: SlotGrid, channel: Channel) -> NDArray[np.float64]:
    weekdays = (np.arange(grid.count) + grid.start.weekday()) % 7
    weights = _WEEKDAY_WEIGHTS[weekdays]
    if channel.surge_day is not None:
        weights = np.where(np.arange(grid.count) >= channel.surge_day, 3 * weights, weights)
    return weights


def _impressions(rng: Generator, users: int, grid: SlotGrid) -> _Columns:
    # A few people see far more advertising than the rest.
    appetite = rng.gamma(1.5, 1 / 1.5, users)
    user, publisher, moment, click = [], [], [], []
    for channel in CHANNELS:
        reached = np.flatnonzero(rng.random(users) < channel.audience)
        weights = _day_weights(grid, channel)
        months = weights.sum() / _WEEKDAY_WEIGHTS.mean() / 31
        counts = rng.poisson(channel.impressions * months * appetite[reached])
        mine = np.repeat(reached, counts)
        day = rng.choice(grid.count, mine.size, p=weights / weights.sum())
        user.append(mine)
        publisher.append(np.full(mine.size, channel.name))
        moment.append(grid.starts_at + day * _DAY + _time_of_day(rng, mine.size))
        click.append(rng.random(mine.size) < channel.click_rate)
    users_column = np.concatenate(user)
    return {
        "user_id": np.char.add("u", users_column.astype(str)),
        "publisher_id": np.concatenate(publisher),
        "advertiser_id": np.full(users_column.size, "shoes"),
        "timestamp": np.concatenate(moment),
        "kind": np.where(np.concatenate(click), "click", "view"),
    }


def _time_of_day(rng: Generator, size: int) -> NDArray[np.int64]:
    """Mostly in the evening."""
    hours = np.clip(rng.normal(17, 4.5, size), 0, 23.999)
    return (hours * MICROSECONDS_PER_HOUR).astype(np.int64)


def _conversions(
    rng: Generator, impressions: _Columns, grid: SlotGrid
) -> tuple[_Columns, NDArray[np.generic]]:
    """Some touches lead to a purchase; some people buy again; some buy without any touch. With the
    publishers that led to them, "" for none."""
    moments = impressions["timestamp"].astype(np.int64)
    typical = {channel.name: channel.hours_to_conversion for channel in CHANNELS}
    names, codes = np.unique(impressions["publisher_id"], return_inverse=True)
    hours = np.array([typical[str(name)] for name in names])[codes]
    chance = np.where(impressions["kind"] == "click", 0.09, 0.004)
    bought = np.flatnonzero(rng.random(moments.size) < chance)
    again = bought[rng.random(bought.size) < 0.15]
    chosen = np.concatenate([bought, again, again[rng.random(again.size) < 0.3]])
    delay = rng.exponential(hours[chosen]) * MICROSECONDS_PER_HOUR
    user = impressions["user_id"][chosen]
    moment = moments[chosen] + delay.astype(np.int64) + 1
    strangers = max(1, chosen.size // 50)
    user = np.concatenate([user, np.char.add("s", np.arange(strangers).astype(str))])
    moment = np.concatenate([moment, rng.integers(grid.starts_at, grid.ends_at, strangers)])
    led_by = np.concatenate([impressions["publisher_id"][chosen], np.full(strangers, "")])
    inside = moment < grid.ends_at
    user, moment = user[inside], moment[inside]
    columns: _Columns = {
        "user_id": user,
        "advertiser_id": np.full(user.size, "shoes"),
        "timestamp": moment,
        "event_id": np.char.add("order-", np.arange(user.size).astype(str)),
    }
    return columns, led_by[inside]


def _circumstances(rng: Generator, conversions: _Columns) -> _Columns:
    """Where a buyer lives, what the purchase was made with, and for how much: most spend a little,
    and one purchase in twenty is a large one."""
    people, codes = np.unique(conversions["user_id"], return_inverse=True)
    size = codes.size

    def drawn(among: dict[str, float], count: int) -> NDArray[np.str_]:
        return np.array(rng.choice(list(among), count, p=list(among.values())))

    usual = drawn(_DEVICES, people.size)[codes]
    keeps = rng.random(size) < _SAME_DEVICE
    basket = rng.lognormal(3.7, 0.5, size)
    large = 80 * (1 + rng.pareto(2.2, size))
    return {
        "country": drawn(_COUNTRIES, people.size)[codes],
        "device": np.where(keeps, usual, drawn(_DEVICES, size)),
        "value": np.round(np.where(rng.random(size) < 0.05, large, basket), 2),
    }


def _held_back(
    rng: Generator,
    impressions: _Columns,
    conversions: _Columns,
    led_by: NDArray[np.generic],
    arms: KeyedArms,
) -> tuple[_Columns, _Columns, dict[str, float]]:
    """People of the control saw nothing, others all but one publisher, and they did not buy what
    those ads had led to: of all purchases, most would have happened anyway. What is left, and what
    ads have caused among those who saw everything."""
    anyway = rng.random(led_by.size) < _ANYWAY
    seen, bought = (
        np.array([arms.arm_of(str(user)) for user in columns["user_id"]])
        for columns in (impressions, conversions)
    )
    unseen = (seen == _CONTROL) | ((seen == _WITHOUT) & (impressions["publisher_id"] == _WITHHELD))
    unled = (bought == _CONTROL) | ((bought == _WITHOUT) & (led_by == _WITHHELD))
    treated, of_one = bought == _TREATMENT, led_by == _WITHHELD

    def buyers(kept: NDArray[np.bool_]) -> int:
        return int(np.unique(conversions["user_id"][treated & kept]).size)

    whole = np.ones_like(anyway)
    caused = {
        "buyers": buyers(whole) - buyers(anyway),
        "purchases": (treated & ~anyway).sum(),
        f"buyers by {_WITHHELD}": buyers(whole) - buyers(anyway | ~of_one),
        f"purchases by {_WITHHELD}": (treated & ~anyway & of_one).sum(),
    }
    return (
        {name: values[~unseen] for name, values in impressions.items()},
        {name: values[~unled | anyway] for name, values in conversions.items()},
        {name: float(count) for name, count in caused.items()},
    )


def _with_lift(text: str, people: Counter[str]) -> str:
    """The campaign file with arms, and with measures of them."""
    shares = "".join(f"{arm} = {share}\n" for arm, share in _ARM_SHARES.items())
    counts = "".join(f"{arm} = {people[arm]}\n" for arm in _ARM_SHARES)
    measures = "".join(
        f'[[measure]]\nname = "{name}"\nmetric = "{metric}"\nby = ["arm"]\nshare = {share}\n\n'
        for name, metric, share in (
            ("buyers", "converters", 0.1), ("purchases", "conversions", 0.15),
            ("purchases squared", "squared_conversions", 0.05),
        )
    )  # fmt: skip
    text = text.replace("share = 0.4", "share = 0.3").replace("share = 0.6", "share = 0.4")
    # Credits by arm, to set beside what was caused there.
    text = text.replace('by = ["publisher", "country"]', 'by = ["publisher", "arm"]')
    head, _, rest = text.partition("[dimensions.country]")
    _, start, rest = rest.partition("[dimensions.device]")
    trial = (
        f'[lift]\nkey_file = "{_KEY_FILE}"\n\n[lift.shares]\n{shares}\n[lift.people]\n{counts}\n'
        f'[lift.withholds]\n{_WITHOUT} = ["{_WITHHELD}"]\n\n'
    )
    return head + measures + trial + start + rest


def _spend_text(impressions: _Columns, grid: SlotGrid) -> str:
    """What the advertiser paid, by publisher and day; who is not listed is counted as "other"."""
    days = (impressions["timestamp"].astype(np.int64) - grid.starts_at) // _DAY
    clicked = impressions["kind"] == "click"
    lines = ["publisher_id,day,amount"]
    for channel in CHANNELS:
        own = impressions["publisher_id"] == channel.name
        seen = np.bincount(days[own], minlength=grid.count)
        clicks = np.bincount(days[own & clicked], minlength=grid.count)
        name = channel.name if channel.name in _LISTED else OTHER_PUBLISHER
        paid = channel.view_price * seen + channel.click_price * clicks
        lines += [
            f"{name},{grid.day_after(day)},{amount:.2f}"
            for day, amount in enumerate(paid[: grid.count])
        ]
    return "\n".join(lines) + "\n"


def _fit_text(slots: int, model: str) -> str:
    """A fit over the first week, where the model needs one and the campaign has time for it."""
    if model not in get_args(FittedModelName):
        return ""
    if slots < 2:
        raise SpecError(f"model {model!r}: is fitted, and needs a campaign of 2 slots or more")
    return f"\n[attribution.fit]\nrho = 0.05\nslots = {min(7, slots // 2)}\n"


def _spec_text(slots: int, model: str, engine: str) -> str:
    publishers = ", ".join(f'"{name}"' for name in _LISTED)
    return f"""{_MADE_UP}: nobody in these events is real, so the ledger may be thrown away.

[campaign]
name = "spring-shoes"
scope = "{_SCOPE}"
advertiser = "shoes"
start = 2026-03-01
slots = {slots}
publishers = [{publishers}]     # "partner" is not listed: it is counted as "other"

[events]
impressions = "impressions.parquet"
conversions = "conversions.parquet"
engine = "{engine}"

[attribution]
model = "{model}"
click_lookback = "30d"
view_lookback = "2d"
{_fit_text(slots, model)}
[privacy]
rho = 1.0
adjacency = "add-remove"
mechanism = "personal-budget"  # or "adsbpc"

[[measure]]
name = "conversions"
by = ["publisher", "country"]
share = 0.6

[[measure]]
name = "revenue"
metric = "value"
value_cap = 200.0
currency = "EUR"
by = ["publisher", "device"]
share = 0.4

[dimensions.country]
column = "country"
values = ["DE", "FR", "ES", "IT"]        # public; buyers from elsewhere are counted as "other"

[dimensions.device]
column = "device"
values = ["phone", "desktop"]

[spend]
file = "{SPEND}"

[[workload]]
queries = "prefix"

[ledger]
location = "{_LEDGER}"
"""
