"""Somebody who looks at a campaign again and again while its processes die."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from adsbpc import Campaign
from adsbpc.ledger import Ledger
from tests.campaign.files import published


class Onlooker:
    """Looks at a campaign after every kill and remembers what it has seen."""

    def __init__(self, file: Path, location: str) -> None:
        self.directory = file.parent
        self.ledger = Ledger(location, file.parent)
        self.campaign = Campaign.load(file)
        self.seen: list[str] = []

    def look(self) -> int:
        """Check what a killed process left behind; how many slots are committed."""
        if not self.ledger.exists() or self.ledger.campaign("acme", "spring") is None:
            assert self.published() == {}
            return 0
        committed = self.ledger.releases("acme", "spring")
        assert committed[: len(self.seen)] == self.seen, "a committed release changed"
        self.seen = committed
        files = self.published()
        for slot, text in files.items():
            assert committed[slot - 1] == text, "something published is not in the ledger"
        for mark in self.marks() if files else []:
            noted = mark["campaigns"]["spring"]
            for slot, text in files.items():
                assert noted[slot - 1] == sha256(text.encode()).hexdigest(), "not noted"
        assert len(self.ledger.steps("acme", "spring")) == len(committed)
        charged = (
            sum(
                charge.pico_rho
                for release in self.campaign.report().releases
                for charge in release.charges
            )
            if committed
            else 0
        )
        seen = self.ledger.snapshot("acme", "spring")
        assert seen.campaign_spent == seen.scope_spent == charged, "charged twice, or lost"
        return len(committed)

    def published(self) -> dict[int, str]:
        return published(self.directory)

    def marks(self) -> list[dict[str, Any]]:
        """What stands in the folder, and in the witness if there is one."""
        witness = self.campaign.spec.ledger.witness
        files = [self.directory / "adsbpc-releases" / "acme" / "ledger.json"]
        files += [] if witness is None else [self.directory / witness]
        return [json.loads(file.read_text()) for file in files]

    def finish(self, through: int) -> None:
        """A run that nobody kills repairs what is missing and changes nothing that was there."""
        before = list(self.seen)
        for slot in range(1, through + 1):
            self.campaign.release(slot)
        assert self.look() >= through
        assert self.seen[: len(before)] == before
        files = self.published()
        assert [files[slot] for slot in range(1, through + 1)] == self.seen[:through]
        assert self.campaign.verify().problem is None
