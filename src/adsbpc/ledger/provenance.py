"""What a release carries of its ledger: how far it was, and two proofs that only it can make.

The key of the proofs is the nonce in the scope's entry: 122 random bits that are never published,
so that HMAC-SHA256 tells nothing about what it was made over, however few values that may have.
"""

from __future__ import annotations

import hmac
import json
from typing import Any

from adsbpc.ledger.records import Head
from adsbpc.model import Provenance, Release


def carrying_text(release: Release, head: Head, key: str, secret: Any) -> str:
    """The text of a release that follows the entry `head`. `secret`, for JSON, is what the release
    does not tell of the state that it leaves; None if there is nothing to commit to."""
    commitment = None if secret is None else _commitment(release, key, secret)
    carried = Provenance(position=head.position, hash=head.hash, commitment=commitment, seal="")
    unsealed = release.model_copy(update={"ledger": carried}).to_text()
    return unsealed.replace(_seal(""), _seal(_proof(key, ["release", unsealed])))


def is_sealed(text: str, key: str) -> bool:
    """Whether a ledger with this key wrote the text, byte for byte."""
    carried = Release.from_text(text).ledger
    if carried is None or carried.seal is None:
        return False
    unsealed = text.replace(_seal(carried.seal), _seal(""))
    return hmac.compare_digest(carried.seal, _proof(key, ["release", unsealed]))


def is_committed(release: Release, key: str, secret: Any) -> bool:
    """Whether the release was made with exactly this secret."""
    carried = release.ledger
    if carried is None or carried.commitment is None:
        return False
    return hmac.compare_digest(carried.commitment, _commitment(release, key, secret))


def _seal(seal: str) -> str:
    """As it stands in the text; within a name the quotes would be escaped."""
    return f'"seal":"{seal}"'


def _commitment(release: Release, key: str, secret: Any) -> str:
    return _proof(key, ["secret", release.campaign, release.slot, secret])


def _proof(key: str, content: list[Any]) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hmac.new(key.encode(), text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()
