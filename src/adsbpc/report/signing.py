"""Ed25519 signatures of files, in a file beside them: base64 of 64 bytes over the file's own."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from adsbpc.errors import SourceError, SpecError
from adsbpc.report.formats import write_whole

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

ENDING = ".sig"


def signing_key(path: Path) -> Ed25519PrivateKey:
    """The private key of a PEM file without a password."""
    serialization, keys = _library()
    load = partial(serialization.load_pem_private_key, password=None)
    return cast("Ed25519PrivateKey", _key(path, "private", keys.Ed25519PrivateKey, load))


def public_key(path: Path) -> Ed25519PublicKey:
    serialization, keys = _library()
    load = serialization.load_pem_public_key
    return cast("Ed25519PublicKey", _key(path, "public", keys.Ed25519PublicKey, load))


def sign(path: Path, key: Ed25519PrivateKey) -> Path:
    """Sign a file as it is; the signature's file."""
    target = path.with_name(path.name + ENDING)
    write_whole(target, signature_of(path.read_bytes(), key) + b"\n")
    return target


def signature_of(content: bytes, key: Ed25519PrivateKey) -> bytes:
    return b64encode(key.sign(content))


def public_pem(key: Ed25519PrivateKey) -> bytes:
    """The public part of a key, for whoever checks its signatures."""
    serialization, _ = _library()
    pem: bytes = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return pem


def is_signed(path: Path, key: Ed25519PublicKey) -> bool:
    """Whether the file beside it is a signature of exactly this file by this key."""
    from cryptography.exceptions import InvalidSignature

    try:
        content = path.read_bytes()
        signature = b64decode(
            path.with_name(path.name + ENDING).read_bytes().strip(), validate=True
        )
    except OSError as error:
        raise SourceError(
            str(error.filename),
            f"no file that can be read ({error.strerror})",
            f"a statement, and its signature beside it in a file that ends in {ENDING}",
            "Check the path, or sign it: adsbpc statement FILE --out ... --sign KEY",
        ) from None
    except ValueError:
        return False
    try:
        key.verify(signature, content)
    except InvalidSignature:
        return False
    return True


def _key(path: Path, kind: str, expected: type, load: Callable[[bytes], object]) -> object:
    try:
        found = load(path.read_bytes())
    except (OSError, ValueError, TypeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise _unfit(path, kind, f"it cannot be read: {reason}") from None
    if not isinstance(found, expected):
        raise _unfit(path, kind, f"it is a {type(found).__name__.removeprefix('_')}")
    return found


def _unfit(path: Path, kind: str, found: str) -> SpecError:
    return SpecError(
        f"expected an Ed25519 {kind} key in PEM, without a password, and {found}",
        str(path),
        to_do="Make one: openssl genpkey -algorithm ed25519 -out key.pem; and its public part: "
        "openssl pkey -in key.pem -pubout -out public.pem",
    )


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise SpecError(
            "signatures need the library cryptography", to_do="pip install 'adsbpc[signing]'"
        ) from None
    return serialization, ed25519
