"""`adsbpc statement` and `adsbpc verify`: papers for auditors, and their signatures."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import typer

from adsbpc.campaign import Campaign, check_targets
from adsbpc.cli.audit import audit_progress
from adsbpc.cli.console import stoppable
from adsbpc.errors import SpecError, no_such_choice
from adsbpc.report import signing
from adsbpc.report.statement import FORMATS


def run(
    file: Path,
    written_as: str | None,
    out: Path | None,
    audited: bool,
    key_file: Path | None,
    as_json: bool,
) -> None:
    ending = "" if out is None else out.suffix.removeprefix(".")
    written_as = written_as or ending or ("json" if as_json else "md")
    if written_as not in FORMATS:
        raise no_such_choice(f"--format {written_as}", written_as, FORMATS)
    if key_file is not None and out is None:
        raise SpecError("--sign signs a file", to_do="Add --out FILE")
    key = None if key_file is None else signing.signing_key(key_file)
    campaign = Campaign.load(file)
    if out is not None:
        check_targets([out], campaign.spec, file)
    with stoppable("Stopped. A statement changes nothing."), audit_progress() as told:
        statement = campaign.statement(audited, told=told)
    if out is None:
        print(statement.to_json() if as_json else statement.to_text(written_as), end="")
    else:
        statement.write(out, written_as)
        written = [out] if key is None else [out, signing.sign(out, key)]
        print(f"Wrote {' and '.join(map(str, written))}", file=sys.stderr)
        if as_json:
            print(statement.to_json(), end="")
    if not all(each.audit is None or each.audit.held for each in statement.campaigns):
        print("Claims of the audit DO NOT HOLD: run adsbpc audit", file=sys.stderr)
        raise typer.Exit(1)


def verify(file: Path, key_file: Path, as_json: bool) -> None:
    held = signing.is_signed(file, signing.public_key(key_file))
    if as_json:
        print(json.dumps({"file": str(file), "signed": held}))
    elif held:
        print(f"{file}: signed with the key of {key_file}, and not changed since.")
    else:
        print(
            f"{file}: NOT what was signed with the key of {key_file}. Ask whoever sent it for the "
            "file and its signature again."
        )
    if not held:
        raise typer.Exit(1)
