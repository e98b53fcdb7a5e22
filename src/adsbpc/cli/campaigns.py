"""`adsbpc campaigns`: the campaigns of the service, straight from its databases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import typer
from rich.table import Table

from adsbpc.cli.console import results
from adsbpc.errors import SpecError
from adsbpc.service.auth.permissions import Action
from adsbpc.service.backend import Backend, open_backend
from adsbpc.service.releases.campaigns import Registered
from adsbpc.service.settings import load_settings

_ID_LENGTH = 32


@contextmanager
def _opened(config: Path | None) -> Iterator[Backend]:
    backend = open_backend(load_settings(config))
    try:
        yield backend
    finally:
        backend.store.close()
        backend.presence.close()


def _found(backend: Backend, campaign_id: str, action: Action) -> Registered:
    registered = backend.campaigns.get(campaign_id)
    if registered is None:
        backend.audit.note_command(action, campaign_id, "no such campaign")
        raise SpecError(f"{campaign_id}: no such campaign. See adsbpc campaigns list")
    return registered


def run_list(config: Path | None, as_json: bool) -> None:
    with _opened(config) as backend:
        book = backend.campaigns
        found = [(each, book.course(each)) for each in book.all()]
    if as_json:
        rows = [
            {
                "id": each.campaign_id,
                "name": each.name,
                "scope": each.scope,
                "advertiser": each.advertiser,
                "released": course.stage.last_slot,
                "slots": each.spec.campaign.slots,
                "state": course.state,
            }
            for each, course in found
        ]
        print(json.dumps({"campaigns": rows}))
        return
    table = Table(title="Campaigns of the service")
    # Whole on any terminal: the other commands ask for it.
    table.add_column("id", no_wrap=True, min_width=_ID_LENGTH)
    for name in ("name", "scope", "released", "state"):
        table.add_column(name, overflow="fold")
    for each, course in found:
        progress = f"{course.stage.last_slot} of {each.spec.campaign.slots}"
        table.add_row(each.campaign_id, each.name, each.scope, progress, course.state)
    results().print(table)


def run_withdraw(campaign_id: str, config: Path | None, as_json: bool) -> None:
    with _opened(config) as backend:
        registered = _found(backend, campaign_id, Action.WITHDRAW)
        backend.audit.note_command(Action.WITHDRAW, campaign_id)
        backend.lifecycle.withdraw(registered)
    told = f"Withdrew campaign {registered.name!r}: its room in scope {registered.scope!r} is free."
    print(json.dumps({"id": campaign_id, "state": "withdrawn"}) if as_json else told)


def run_pause(campaign_id: str, config: Path | None, as_json: bool) -> None:
    with _opened(config) as backend:
        registered = _found(backend, campaign_id, Action.PAUSE)
        backend.audit.note_command(Action.PAUSE, campaign_id)
        backend.lifecycle.pause(registered)
    _tell(campaign_id, "paused", "Paused: nothing is released until it is resumed.", as_json)


def run_resume(campaign_id: str, config: Path | None, as_json: bool) -> None:
    with _opened(config) as backend:
        registered = _found(backend, campaign_id, Action.PAUSE)
        backend.audit.note_command(Action.PAUSE, campaign_id)
        backend.lifecycle.resume(registered)
    _tell(campaign_id, "open", "Resumed: what ended meanwhile is released first.", as_json)


def _tell(campaign_id: str, state: str, sentence: str, as_json: bool) -> None:
    print(json.dumps({"id": campaign_id, "state": state}) if as_json else sentence)


def run_close(campaign_id: str, yes: bool, config: Path | None, as_json: bool) -> None:
    with _opened(config) as backend:
        registered = _found(backend, campaign_id, Action.CLOSE)
        if not yes:
            typer.confirm(
                f"Nothing more will ever be released of campaign {registered.name!r}. Close it?",
                abort=True,
                err=True,
            )
        backend.audit.note_command(Action.CLOSE, campaign_id)
        returned = backend.lifecycle.close(registered)
    exact = f"{Decimal(returned.numerator) / returned.denominator:f}"
    told = f"Closed campaign {registered.name!r}: rho = {exact} went back to its scope."
    found = {"id": campaign_id, "state": "closed", "returned": float(returned)}
    print(json.dumps(found) if as_json else told)
