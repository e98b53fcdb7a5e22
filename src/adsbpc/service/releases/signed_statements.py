"""Signatures of statements, as `adsbpc statement --sign` makes them, with the server's own key."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adsbpc.report import signing
from adsbpc.service.settings import Settings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


@dataclass(frozen=True)
class Signer:
    """`public` is what anybody checks signatures with."""

    _key: Ed25519PrivateKey
    public: bytes

    def signature_of(self, content: bytes) -> str:
        return signing.signature_of(content, self._key).decode("ascii")

    def archive_of(self, name: str, content: bytes) -> bytes:
        """A statement with its signature beside it, in the files that `adsbpc verify` expects."""
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
            opened.writestr(name, content)
            opened.writestr(name + signing.ENDING, self.signature_of(content) + "\n")
        return archive.getvalue()


def signer_of(settings: Settings) -> Signer | None:
    """None if the settings name no key. Raises SpecError for a file that holds none."""
    if settings.statements.signing_key is None:
        return None
    key = signing.signing_key(settings.directory / settings.statements.signing_key)
    return Signer(key, signing.public_pem(key))
