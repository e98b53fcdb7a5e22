"""A campaign of a server that has released every slot, and a browser that is signed in."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import httpx

from adsbpc.service.auth.permissions import Principal, Role
from adsbpc.service.backend import open_backend
from adsbpc.service.clock import SystemClock
from adsbpc.service.settings import load_settings


class _Then(SystemClock):
    """Stands still until it is set to a later day."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 3, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment


def released_campaign(directory: Path, slots: int, publishers: int) -> str:
    """Write the settings and a whole campaign into a folder; returns the path of its page."""
    settings = directory / "service.toml"
    settings.write_text('[service]\ndata = "data"\n[scheduler]\nenabled = false\n')
    clock = _Then()
    backend = open_backend(load_settings(settings, {}), clock)
    content = {
        "campaign": {
            "name": "bench",
            "advertiser": "Ad-1",
            "start": "2026-03-01",
            "slots": slots,
            "publishers": [f"publisher {k:02d}" for k in range(publishers - 1)],
        },
        "privacy": {"rho": 1.0, "mechanism": "adsbpc"},
    }
    registered = backend.campaigns.create(content, Principal("bench", Role.OPERATOR, ""))
    clock.moment = datetime(2026, 6, 1, tzinfo=UTC)
    backend.scheduler.release(registered)
    return f"/campaigns/{registered.campaign_id}"


def signed_in(url: str, key: str) -> str:
    """The cookie of a browser after it signed in with a key."""
    with httpx.Client(base_url=url, trust_env=False) as browser:
        answer = browser.post("/sign-in", data={"key": key}, headers={"Origin": url})
        if answer.status_code != 303:
            raise RuntimeError(f"signing in was answered with {answer.status_code}")
        return "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
