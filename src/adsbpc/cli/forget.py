"""`adsbpc forget`: a person's events and accounts, as far as nothing open needs them."""

from __future__ import annotations

import json
from pathlib import Path

from adsbpc.errors import SpecError
from adsbpc.model import load_spec

_STAYS = (
    "What was released stays as it is: noise hides there whether the person was in it. No budget "
    "is returned."
)


def run(user: str, file: Path | None, config: Path | None, as_json: bool) -> None:
    if file is not None and config is not None:
        raise SpecError("give a campaign file, or --config for the service, not both")
    rows, erased, kept = _of_the_service(user, config) if file is None else _of_a_file(user, file)
    if as_json:
        print(json.dumps({"user": user, "rows": rows, "erased": erased, "kept": kept}))
        return
    if file is None:
        print(f"Removed {rows:,} rows of events.")
    else:
        print("Event files that a campaign file names are yours: remove the person there yourself.")
    if erased:
        print(f"Erased the books of {_named(erased)}, which named the person and are over.")
    if kept:
        print(
            f"Kept the person's account in the books of {_named(kept)} until that is over: without "
            "it the person would have a new budget."
        )
        if file is not None:
            print("Run it again then, or after adsbpc close.")
    print(_STAYS)


def _of_the_service(user: str, config: Path | None) -> tuple[int, list[str], list[str]]:
    from adsbpc.service.backend import open_backend
    from adsbpc.service.settings import load_settings

    backend = open_backend(load_settings(config))
    try:
        # Not whom: the log is kept for longer than they are.
        backend.audit.note_command("forget somebody")
        found = backend.retention.forget(user)
    finally:
        backend.store.close()
        backend.presence.close()
    return found.rows, list(found.erased), list(found.keep)


def _of_a_file(user: str, file: Path) -> tuple[int, list[str], list[str]]:
    from adsbpc.campaign.erasure import forget_in_books

    spec = load_spec(file)
    fate, name = forget_in_books(spec, user), spec.campaign.name
    return 0, [name] if fate == "erased" else [], [name] if fate == "kept" else []


def _named(campaigns: list[str]) -> str:
    return ", ".join(map(repr, campaigns))
