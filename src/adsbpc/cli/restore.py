"""`adsbpc restore`: goes on from published releases that a restored ledger has lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adsbpc.campaign import Campaign, Restored
from adsbpc.campaign.release_folder import ReleaseFolder, named_slots, release_files
from adsbpc.cli.console import named_run, notes, stoppable
from adsbpc.cli.status import budget_line
from adsbpc.errors import SpecError
from adsbpc.storage import folder_at, is_remote


def run(
    file: Path | None,
    releases: str | None,
    config: Path | None,
    campaign_id: str | None,
    as_json: bool,
) -> None:
    if (file is None) == (campaign_id is None) or (file is not None and config is not None):
        raise SpecError("give a campaign file; or, for the service, --campaign ID and --config")
    if releases is not None and not is_remote(releases) and not Path(releases).is_dir():
        raise SpecError(f"--releases {releases}: is no folder. Give the one with the release files")
    if campaign_id is not None:
        with _of_the_service(config, campaign_id, releases) as campaign:
            _restore(campaign, releases, as_json)
    elif file is not None:
        _restore(Campaign.load(file), releases, as_json)


@contextmanager
def _of_the_service(
    config: Path | None, campaign_id: str, releases: str | None
) -> Iterator[Campaign]:
    """A campaign of the service, with the events that have arrived by the last release."""
    from adsbpc.service.backend import open_backend
    from adsbpc.service.settings import load_settings

    backend = open_backend(load_settings(config))
    try:
        registered = backend.campaigns.get(campaign_id)
        if registered is None:
            raise SpecError(
                f"--campaign {campaign_id}: no such campaign. The operator's page lists the ids"
            )
        own = ReleaseFolder(registered.spec, backend.campaigns.ledger).folder
        given = own if releases is None else folder_at(releases, Path(), "--releases")
        last = max(release_files(given), default=0)
        if last > registered.spec.campaign.slots:
            raise SpecError(f"{given}: has a slot {last}, which the campaign does not have")
        with backend.campaigns.ready(registered, last) as campaign:
            yield campaign
    finally:
        backend.store.close()


def _restore(campaign: Campaign, releases: str | None, as_json: bool) -> None:
    with stoppable():
        restored = campaign.restore(releases)
    if as_json:
        slots = [one.release.slot for one in restored.releases]
        print(json.dumps({"restored": slots, "lost": restored.lost}))
        return
    print(_summary(restored))
    if restored.lost:
        notes().print(
            f"Still not in the ledger: {named_slots(restored.lost)}. Nothing more is released in "
            "this scope until they are: restore each campaign with its own file.",
            style="bold yellow",
        )
        return
    print(budget_line(campaign.status().campaign_budget))


def _summary(restored: Restored) -> str:
    slots = [one.release.slot for one in restored.releases]
    if not slots:
        return "Nothing to restore: the ledger has everything that the folder has."
    return f"Restored {named_run(slots)}, as published: nothing was drawn."
