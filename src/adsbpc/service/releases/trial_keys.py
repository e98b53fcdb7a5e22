"""The key of a trial, which says who is in which arm: made here, kept in the campaign's folder.

Must never: make a second key for a campaign, or put one into an answer but for who assigns arms.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from pathlib import Path

from adsbpc.durable import write_durably
from adsbpc.errors import ServiceError, SpecError
from adsbpc.events.arms import keyed_arms
from adsbpc.model import CampaignSpec
from adsbpc.model.arms import KeyedArms, key_mark, read_key

FILE = "lift.key"


def with_key(spec: CampaignSpec, folder: Path) -> CampaignSpec:
    """A campaign with the key in its folder, if it is a trial."""
    if spec.lift is None:
        return spec
    own = spec.lift.model_copy(update={"key_file": str(folder / FILE)})
    return spec.model_copy(update={"lift": own})


def keep_new_key(folder: Path) -> None:
    _keep(folder, secrets.token_hex(32))


def keep_known_key(folder: Path, others: Path, mark: str) -> None:
    """The key of a campaign that has started, from the folder that it had then: the server's
    database was lost, and arms must stay as they are."""
    for file in sorted(others.glob(f"*/{FILE}")):
        # One of another trial may be damaged.
        with suppress(SpecError):
            key = read_key(file)
            if key_mark(key) == mark:
                _keep(folder, key)
                return
    raise SpecError(
        "the campaign has started, and the key that says who is in which arm is lost. Put "
        f"{FILE} back from a backup, into any folder below campaigns in the server's data, and "
        "create it again"
    )


def _keep(folder: Path, key: str) -> None:
    folder.mkdir(exist_ok=True, mode=0o700)
    write_durably(folder / FILE, f"{key}\n".encode("ascii"), mode=0o600, folders=2)


def arms_of(spec: CampaignSpec) -> KeyedArms:
    """Of a trial. Without its key it cannot go on, and where the key was is for the log."""
    try:
        return keyed_arms(spec)
    except SpecError as error:
        raise ServiceError(
            f"campaign {spec.campaign.name!r}: the key that says who is in which arm is lost "
            f"({error}). Put it back from a backup"
        ) from None
