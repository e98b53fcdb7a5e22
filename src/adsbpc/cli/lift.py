"""`adsbpc lift`: the key of a trial, and the arms of people by it."""

from __future__ import annotations

import json
import os
import secrets
import sys
from pathlib import Path

from adsbpc.errors import SpecError, no_such_choice
from adsbpc.events.arms import assignment_javascript, assignment_sql, keyed_arms
from adsbpc.model import load_spec
from adsbpc.model.lift_spec import LiftSection


def write_key(file: Path, as_json: bool) -> None:
    try:
        # Nobody but the owner reads it, and an earlier key is never lost.
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise SpecError(
            f"{file}: is there already, and the key of a trial must not be lost. Give another name"
        ) from None
    except OSError as error:
        raise SpecError(
            f"{file}: cannot be written ({error.strerror}). Give another name"
        ) from None
    with os.fdopen(handle, "w", encoding="ascii") as opened:
        opened.write(secrets.token_hex(32) + "\n")
        opened.flush()
        os.fsync(opened.fileno())
    if as_json:
        print(json.dumps({"key_file": str(file)}))
        return
    print(f"wrote {file}: a secret that decides who is in which arm. Keep it beside the ledger.")


def assign_arms(
    file: Path, users: list[str], sql: str | None, javascript: bool, as_json: bool
) -> None:
    lift = _by_key(file)
    if sql is not None or javascript:
        _print_text(lift, sql, javascript, as_json)
        return
    arms = keyed_arms(load_spec(file))
    for user in users or (line.rstrip("\r\n") for line in sys.stdin):
        if not user:
            raise SpecError("a user id is empty: nobody has that, and it is in no arm")
        if as_json:
            print(json.dumps({"user_id": user, "arm": arms.arm_of(user)}, ensure_ascii=False))
        else:
            print(f"{user}\t{arms.arm_of(user)}")


def _by_key(file: Path) -> LiftSection:
    lift = load_spec(file).lift
    if lift is None:
        raise SpecError(f"{file}: has no [lift], which says who is in which arm. Add it")
    if lift.key_file is None:
        raise SpecError(
            f"{file}: [lift] takes arms from the table {lift.table!r}: look people up there"
        )
    return lift


def _print_text(lift: LiftSection, sql: str | None, javascript: bool, as_json: bool) -> None:
    if sql is not None and javascript:
        raise SpecError("give --sql or --javascript, not both")
    from adsbpc.model.arms import limits_of

    limits = limits_of(lift.shares)
    if sql is None:
        text = assignment_javascript(limits)
    elif sql == "duckdb":
        text = assignment_sql(limits, "duckdb")
    elif sql == "spark":
        text = assignment_sql(limits, "spark")
    else:
        raise no_such_choice(f"--sql {sql}", sql, ("duckdb", "spark"))
    print(json.dumps({"limits": limits, "text": text}) if as_json else text)
