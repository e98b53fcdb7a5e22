"""Arms of a trial in SQL and JavaScript: of everybody in some rows, by a keyed hash or by a table.

Must never: let anything but a person's own id, and that person's own rows of a declared table, say
which arm the person is in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Literal

from adsbpc.engines import Engine, Relation, quote_name, quote_text
from adsbpc.errors import ReleaseError, SpecError
from adsbpc.events.opening import source_files
from adsbpc.events.schema import Field, FieldKind, map_fields
from adsbpc.events.sources import Source, dialect_of, resolve_source
from adsbpc.events.tables import EventTables
from adsbpc.model.arms import DIGITS, KeyedArms, key_mark, read_key
from adsbpc.model.grid import OTHER_PUBLISHER
from adsbpc.model.lift_spec import LiftSection
from adsbpc.model.spec import CampaignSpec

# How each engine calls SHA-256 of a text, and a parameter of a query.
_DIALECTS = {"duckdb": ("sha256({})", "$key"), "spark": ("sha2({}, 256)", ":key")}
Dialect = Literal["duckdb", "spark"]


def keyed_arms(spec: CampaignSpec) -> KeyedArms:
    """Those of a campaign whose file names a key."""
    assert spec.lift is not None
    assert spec.lift.key_file is not None
    return KeyedArms.of(read_key(spec.directory / spec.lift.key_file), spec.lift.shares)


def arms_mark(spec: CampaignSpec) -> str:
    """Tells another key, or another table, and nothing about this one. It is kept beside the
    promise: nobody may change arms once a campaign has started."""
    lift = _lift(spec)
    if lift.key_file is not None:
        return key_mark(keyed_arms(spec).key)
    mark = sha256()
    for file in sorted(_table(spec).files):
        mark.update(sha256(Path(file).read_bytes()).digest())
    return mark.hexdigest()[:32]


def assignment_sql(limits: Sequence[tuple[str, str]], dialect: Dialect) -> str:
    """An expression for the arm of `user_id`, where people run their own queries. The key is a
    parameter, so that it stands in no text of a query."""
    hashed, key = _DIALECTS[dialect]
    whole = hashed.format(f"concat({key}, ':', user_id)")
    place = f"substr({whole}, 1, {DIGITS})"
    branches = "".join(f"\n  WHEN {place} < '{end}' THEN {quote_text(arm)}" for arm, end in limits)
    return f"CASE{branches}\n  ELSE '{OTHER_PUBLISHER}'\nEND"


def assignment_javascript(limits: Sequence[tuple[str, str]]) -> str:
    """A module for ad servers, with the arms of a campaign; the key is a parameter here too."""
    text = files("adsbpc.events").joinpath("arms.js").read_text(encoding="utf-8")
    ranges = json.dumps([list(each) for each in limits])
    return f"{text}\n// Of this campaign.\nexport const LIMITS = {ranges};"


def with_arms(spec: CampaignSpec, events: EventTables, rows: Relation) -> Relation:
    """The same rows, with the place of each one's arm in the list of arms."""
    lift = _lift(spec)
    if lift.key_file is None:
        return Relation.of(
            f"SELECT rows_of_people.*, coalesce(arms.arm_index, {len(lift.names)}) AS arm_index"
            f" FROM {rows} AS rows_of_people LEFT JOIN {_of_table(spec, events)} AS arms"
            " ON arms.user_id = CAST(rows_of_people.user_id AS STRING)"
        )
    keyed = keyed_arms(spec)
    key = events.engine.secret("arms_key", keyed.key)
    hashed = "sha256_digits(concat(arms_key.secret, ':', CAST(user_id AS STRING)))"
    branches = " ".join(f"WHEN place < '{end}' THEN {k}" for k, (_, end) in enumerate(keyed.limits))
    return Relation.of(
        f"SELECT placed.*, CASE {branches} ELSE {len(keyed.limits)} END AS arm_index"
        f" FROM (SELECT rows_of_people.*, substr({hashed}, 1, {DIGITS}) AS place"
        f" FROM {rows} AS rows_of_people CROSS JOIN {key} AS arms_key) AS placed"
    )


def check_table(spec: CampaignSpec, engine: Engine) -> None:
    """Refuse to start with a table of events, with people who are in two arms, or with an arm that
    nobody is in. Once a campaign has started people in two arms are in none: that must stop
    nothing."""
    lift = spec.lift
    if lift is None or lift.table is None:
        return
    if {Path(file).resolve() for file in _table(spec).files} & source_files(spec):
        raise ReleaseError(
            f"[lift] table = {lift.table!r}: is a file of events, and arms are never read off "
            "events: who is in which arm is fixed before the campaign. Name a table of people; "
            "nothing was charged"
        )
    table = _opened(spec, engine)
    ((twice,),) = engine.rows(
        "people in two arms",
        f"SELECT count(*) FROM (SELECT user_id FROM {table} AS listed WHERE user_id IS NOT NULL"
        " GROUP BY user_id HAVING min(arm) <> max(arm)) AS twice",
    )
    if twice:
        raise ReleaseError(
            f"[lift] table = {lift.table!r}: {twice:,} people are in two arms, and everybody "
            "belongs in one, from before the campaign until its end. Correct the table; nothing "
            "was charged"
        )
    found = engine.rows(
        "people by arm",
        f"SELECT arm, count(DISTINCT user_id) FROM {table} AS listed"
        " WHERE user_id IS NOT NULL GROUP BY arm",
    )
    missing = [arm for arm in lift.names if not dict(found).get(arm)]
    if missing:
        raise ReleaseError(
            f"[lift] table = {lift.table!r}: nobody is in the arm {missing[0]!r}, so that nothing "
            "can be compared with it. Correct the table or the names of arms; nothing was charged"
        )


def _of_table(spec: CampaignSpec, events: EventTables) -> Relation:
    """A row for everybody who is in exactly one of the arms."""
    lift = _lift(spec)
    branches = " ".join(f"WHEN {quote_text(arm)} THEN {k}" for k, arm in enumerate(lift.names))
    return events.engine.table(
        "arms",
        f"SELECT user_id, min(CASE arm {branches} ELSE {len(lift.names)} END) AS arm_index"
        f" FROM {_opened(spec, events.engine)} AS listed"
        " WHERE user_id IS NOT NULL GROUP BY user_id HAVING min(arm) = max(arm)",
    )


def _opened(spec: CampaignSpec, engine: Engine) -> Relation:
    lift, source = _lift(spec), _table(spec)
    names = {"user_column": lift.user_column, "arm_column": lift.arm_column}
    fields = tuple(Field(name, FieldKind.IDENTIFIER) for name in names)
    mapped = map_fields(
        fields, names, frozenset(), source.describe(engine), "lift", all_text=source.is_csv
    )
    user, arm = (mapped[name].column for name in names)
    rows = source.open(engine, "arms_source", [user, arm])
    texts = ", ".join(
        f"nullif(CAST({quote_name(column)} AS STRING), '') AS {name}"
        for column, name in ((user, "user_id"), (arm, "arm"))
    )
    return Relation.of(f"SELECT {texts} FROM {rows}")


def _table(spec: CampaignSpec) -> Source:
    table = _lift(spec).table
    assert table is not None
    source = resolve_source(table, spec.directory, "[lift] table", dialect_of(spec))
    if source.is_table or "://" in table:
        raise SpecError(
            f"[lift] table = {table!r}: expected a Parquet or CSV file, which is held to what it "
            "was when the campaign started. Write the table to one"
        )
    return source


def _lift(spec: CampaignSpec) -> LiftSection:
    assert spec.lift is not None
    return spec.lift
