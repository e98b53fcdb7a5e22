"""`adsbpc init`: a commented campaign file to start from."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

from adsbpc.errors import SpecError
from adsbpc.model import load_spec

_TEXT = """# A campaign of adsbpc. docs/campaign.md explains every key; unknown keys are errors.

[campaign]
name = {name}
scope = "default"              # budgets of campaigns about the same people add up in a scope
advertiser = {advertiser}
start = {start}             # first day, in the campaign's time zone
slots = {slots}                     # how many slots; public, and fixed once the first is released
slot = "1d"                    # "1h"; "1w", from a Monday on (or say week_starts); "1mo", from the
                               # first of a month on
timezone = "UTC"
publishers = {publishers}    # public; anything else is counted as "other". Or a file
                               # with one name a line: publishers = "publishers.txt"
metric = "conversions"         # or "value", with value_cap

[events]
impressions = "data/impressions/*.parquet"    # Parquet, CSV, or a table of the engine
conversions = "data/conversions/*.parquet"
engine = "duckdb"              # or "spark", with [engine.options]
# settle = "6h"                # for impressions that arrive late: how long after its end a slot is
# wait = "2d"                  # released, and how long a conversion without a touch waits for one

[attribution]
model = "last_touch"           # first_touch, uniform, time_decay, position, shapley_path; fitted
                               # models, such as shapley and markov, need [attribution.fit]
click_lookback = "30d"
view_lookback = "1d"

[privacy]
rho = 1.0                      # the budget of the whole campaign in zCDP; or epsilon and delta
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


def run(
    file: Path,
    name: str,
    advertiser: str,
    start: str | None,
    slots: int,
    publishers: list[str],
    as_json: bool,
) -> None:
    try:
        first = date.today().replace(day=1) if start is None else date.fromisoformat(start)
    except ValueError:
        raise SpecError(f"--start {start}: expected a date such as 2026-03-01") from None
    # JSON writes texts and lists of texts the way TOML reads them.
    text = _TEXT.format(
        name=json.dumps(name, ensure_ascii=False),
        advertiser=json.dumps(advertiser, ensure_ascii=False),
        start=first.isoformat(),
        slots=slots,
        publishers=json.dumps(publishers, ensure_ascii=False),
    )
    try:
        with file.open("x", encoding="utf-8") as target:
            target.write(text)
    except FileExistsError:
        raise SpecError(f"{file}: is there already. Give another name, or edit it") from None
    except OSError as error:
        raise SpecError(
            f"{file}: cannot be written ({error.strerror}). Give another name"
        ) from None
    try:
        load_spec(file)
    except SpecError:
        file.unlink()
        raise
    if as_json:
        print(json.dumps({"file": str(file)}))
        return
    print(f"Wrote {file}. Set [events] and the publishers, then:")
    print(f"  adsbpc plan {file}                 what it will promise and how accurate it will be")
    print(f"  adsbpc release {file} --dry-run    what it reads, before anything is charged")
    print(f"  adsbpc release {file}              every morning")
