"""A real server on a real port, in a thread, with keys for whoever asks."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adsbpc import Client
from adsbpc.model.slots import to_moment
from adsbpc.service.auth.permissions import Role
from adsbpc.service.backend import Backend, open_backend
from adsbpc.service.clock import Clock
from adsbpc.service.server import serving
from adsbpc.service.settings import Settings
from tests.service.clocks import SetClock


def settings_in(directory: Path, **sections: dict[str, Any]) -> Settings:
    """Quick to look, with a free port."""
    sections = {
        "service": {"port": 0, "data": "data"},
        "scheduler": {"every": "1s", "grace": "1m", "publish_after": "2m"},
        **sections,
    }
    sections["scheduler"] = {"settle": "0s", "wait": "0s", **sections["scheduler"]}
    return Settings.model_validate({**sections, "directory": directory})


@dataclass
class Running:
    backend: Backend
    url: str
    clients: list[Client] = field(default_factory=list)

    def key(self, role: str, subject: str = "") -> str:
        return self.backend.keys.create(Role(role), subject, f"test {role}", None)[1]

    def wait_for(self, campaign: str, slot: int, seconds: float = 60) -> None:
        """Until the scheduler has released a slot, and to the moment at which it is visible; a
        failure is told instead of waited for."""
        ends = time.monotonic() + seconds
        while True:
            registered = self.backend.campaigns.get(campaign)
            assert registered is not None
            if self.backend.campaigns.last_slot(registered) >= slot:
                self.show(campaign)
                return
            assert not registered.problem, registered.problem
            assert time.monotonic() < ends, f"slot {slot} is not released"
            time.sleep(0.02)

    def show(self, campaign: str) -> None:
        """Put the clock to the moment at which everything that is released is visible."""
        registered, clock = self.backend.campaigns.get(campaign), self.backend.clock
        assert registered is not None
        assert isinstance(clock, SetClock)
        released = self.backend.campaigns.last_slot(registered)
        # The scheduler may be about to do it.
        self.backend.publication.note(registered)
        moment = self.backend.publication.moment(registered, released)
        clock.moment = max(clock.moment, to_moment(moment))

    def client(self, role: str, subject: str = "") -> Client:
        self.clients.append(Client(self.url, self.key(role, subject), attempts=1))
        return self.clients[-1]


@contextmanager
def running(settings: Settings, clock: Clock | None = None) -> Iterator[Running]:
    """Up until the block ends; stopped gracefully."""
    backend = open_backend(settings, clock)
    with serving(backend) as url:
        found = Running(backend, url)
        try:
            yield found
        finally:
            for client in found.clients:
                client.close()


def with_signing_key(directory: Path) -> dict[str, str]:
    """A new key in a file, and the section of the settings that names it."""
    options = ("-algorithm", "ed25519", "-out", "signing.pem")
    subprocess.run(["openssl", "genpkey", *options], cwd=directory, capture_output=True, check=True)
    return {"signing_key": "signing.pem"}


def content(**campaign: Any) -> dict[str, Any]:
    """A campaign of three days, for the API."""
    return {
        "campaign": {
            "name": "spring",
            "scope": "acme",
            "advertiser": "Ad-1",
            "start": "2026-03-01",
            "slots": 3,
            "publishers": ["P-1", "P-2"],
            **campaign,
        },
        "attribution": {"model": "last_touch"},
        "privacy": {
            "rho": 1.0,
            "mechanism": "adsbpc",
            "adsbpc": {"bounds": "fixed", "bound": 2},
        },
    }


def trial(**campaign: Any) -> dict[str, Any]:
    """The same with a control, and with so much budget that noise hides nothing."""
    return {
        **content(**campaign),
        "privacy": {"rho": 1e6, "mechanism": "personal-budget"},
        "measure": [
            {"name": "attributed", "share": 0.5},
            {"name": "buyers", "metric": "converters", "by": ["arm"], "share": 0.5},
        ],
        "lift": {"shares": {"treatment": 0.5, "control": 0.5}},
    }
