"""`adsbpc doctor`: whether this machine can run a campaign or the service, and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from adsbpc.campaign.doctor import Diagnosis, Setup, databases_of, diagnose
from adsbpc.cli.console import counted, results
from adsbpc.errors import SpecError
from adsbpc.model import load_spec


def run(file: Path | None, config: Path | None, as_json: bool) -> None:
    found = diagnose(_setup(file, config))
    if as_json:
        print(json.dumps(found.to_object()))
    else:
        _print(found)
    if not found.held:
        raise typer.Exit(1)


def _setup(file: Path | None, config: Path | None) -> Setup:
    if file is not None and config is not None:
        raise SpecError("give a campaign file, or the service's settings with --config, not both")
    if file is not None:
        return Setup.of(load_spec(file))
    if config is None:
        return Setup(Path.cwd())
    from adsbpc.service.settings import load_settings
    from adsbpc.service.store import SERVICE

    settings = load_settings(config)
    # The service makes its folder when it starts.
    folder = next(each for each in (settings.data, *settings.data.parents) if each.exists())
    databases = {SERVICE.key: (settings.service.database, SERVICE), **databases_of(settings.ledger)}
    own = settings.engine
    return Setup(folder, own.name, own.options, databases, frozenset({"service"}))


def _print(found: Diagnosis) -> None:
    out, widest = results(), max(len(each.name) for each in found.findings)
    for each in found.findings:
        mark = "ok     " if each.held else "PROBLEM"
        style = "" if each.held else "bold red"
        out.print(f"{mark}  {each.name:<{widest}}  {each.found}", style=style, soft_wrap=True)
        if each.to_do:
            out.print(f"{'':<{widest + 9}}  {each.to_do}", soft_wrap=True)
    problems = sum(not each.held for each in found.findings)
    out.print("All is well." if found.held else f"{counted(problems, 'problem')} to solve first.")
