"""The text of a new campaign file, with comments for whoever edits it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

_TEXT = """# A campaign of adsbpc. docs/campaign.md explains every key; unknown keys are errors.
{remark}
[campaign]
name = {name}
scope = "default"              # budgets of campaigns about the same people add up in a scope
advertiser = {advertiser}
start = {start}             # first day, in the campaign's time zone
slots = {slots}                     # how many slots; public, and fixed once the first is released
slot = "1d"                    # "1h"; "1w", from a Monday on (or say week_starts); "1mo", from the
                               # first of a month on
timezone = {timezone}
publishers = {publishers}    # public; anything else is counted as "other". {or_else}
metric = "conversions"         # or "value", with value_cap

[events]
impressions = {impressions}    # Parquet, CSV, or a table of the engine
conversions = {conversions}
engine = "duckdb"              # or "spark", with [engine.options]{reading}
# settle = "6h"                # for impressions that arrive late: how long after its end a slot is
# wait = "2d"                  # released, and how long a conversion without a touch waits for one
{columns}
[attribution]
model = "last_touch"           # first_touch, uniform, time_decay, position, shapley_path; fitted
                               # models, such as shapley and markov, need [attribution.fit]
click_lookback = "30d"
view_lookback = "1d"

[privacy]
rho = {rho}                      # the budget of the whole campaign in zCDP; or epsilon and delta
adjacency = "add-remove"       # or "substitute"
mechanism = "personal-budget"  # or "adsbpc"

[privacy.personal_budget]
# How many conversions somebody has in the whole campaign who converts often. Left out, the first
# releases find out privately. If you have earlier or public data that you may look at, write what
# adsbpc plan --pilot says: the first days are then as accurate as the last.
# heavy_user = 100

[[workload]]
queries = "prefix"             # running totals; "sliding" with window = 7, "slot", ...

[ledger]
location = "adsbpc-ledger.sqlite"             # or "postgresql://host/database"
# witness = "/another-disk/adsbpc/witness.json"    # or "postgresql://..."; shows if a backup of the
                               # ledger is put back that is older than what was published
"""
_PROPOSED = """
# Proposed from your files. Publishers, first day and number of slots become public with the first
# release: read them, and change what should not be.
"""


@dataclass(frozen=True)
class CampaignText:
    """What a new file says. `publishers` are names, or the name of a file of them; `reading` are
    keys of [events], `tables` sections below it."""

    name: str
    advertiser: str
    start: date
    slots: int
    publishers: list[str] | str
    timezone: str = "UTC"
    impressions: str = "data/impressions/*.parquet"
    conversions: str = "data/conversions/*.parquet"
    rho: float = 1.0
    reading: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    proposed: bool = False

    def __str__(self) -> str:
        is_file = isinstance(self.publishers, str)
        return _TEXT.format(
            remark=_PROPOSED if self.proposed else "",
            name=_toml(self.name),
            advertiser=_toml(self.advertiser),
            start=self.start.isoformat(),
            slots=self.slots,
            timezone=_toml(self.timezone),
            publishers=_toml(self.publishers),
            or_else="One name a line"
            if is_file
            else "Or a file\n" + " " * 31 + '# with one name a line: publishers = "publishers.txt"',
            impressions=_toml(self.impressions),
            conversions=_toml(self.conversions),
            rho=self.rho,
            reading=f"\n{_keys(self.reading)}".rstrip("\n"),
            columns="".join(
                f"\n[events.{name}]\n{_keys(keys)}" for name, keys in self.tables.items() if keys
            ),
        )


def _keys(values: Mapping[str, str]) -> str:
    return "".join(f"{key} = {_toml(value)}\n" for key, value in values.items())


def _toml(value: str | list[str]) -> str:
    # JSON writes texts and lists of texts the way TOML reads them.
    return json.dumps(value, ensure_ascii=False)
