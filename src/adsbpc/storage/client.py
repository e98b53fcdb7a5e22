"""Clients of object stores, one for each kind of URL, and what is said when one fails.

Must never: put a secret into a message, or take a store that cannot be asked for one that has
nothing.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from adsbpc.errors import AdsbpcError, SpecError

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)")
# What is no object store: databases, files under another name, what DuckDB reads itself.
_NOT_STORES = {"postgresql", "postgres", "sqlite", "file", "jdbc", "http", "https", "hf"}
# What brings the client, where it is not fsspec itself.
_PACKAGES = {
    "s3": "adsbpc[s3]",
    "s3a": "adsbpc[s3]",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "az": "adlfs",
}
# Stores on a host that the URL names, whose clients write without conditions. HDFS never renames a
# file to a name that is taken.
_ON_HOSTS = {"hdfs", "webhdfs"}
# Clients of clouds say so much by the name of a class alone.
_NO_CREDENTIALS = ("NoCredentials", "PartialCredentials", "DefaultCredentialsError", "ProfileNot")
_UNREACHABLE = ("EndpointConnection", "ConnectTimeout", "ClientConnector", "NameResolution")
_NO_BUCKET = re.compile(r"(bucket|container) (does not exist|was not found)", re.IGNORECASE)
_SECRETS = re.compile(
    r"((?:x-amz-[a-z-]+|sig|se|signature|token|secret|password|[a-z_]*key(?:_id)?)\s*[=:]\s*)"
    r"[^\s&'\",]+",
    re.IGNORECASE,
)
_SECRET_VARIABLES = ("SECRET", "TOKEN", "PASSWORD", "ACCOUNT_KEY", "CONNECTION_STRING", "SAS")


def is_remote(location: str) -> bool:
    """Whether a location is a URL of an object store."""
    url = _URL.match(location)
    return url is not None and url[1].lower() not in _NOT_STORES


def protocol_of(url: str) -> str:
    return url.partition("://")[0].lower()


def start_of(url: str) -> str:
    """What stands before the names that the client of a URL's store gives to files."""
    protocol = protocol_of(url)
    return f"{protocol}://{url.split('/')[2]}" if protocol in _ON_HOSTS else f"{protocol}://"


def has_conditions(url: str) -> bool:
    """Whether a write can be refused by the store itself if there is a file of the name."""
    return protocol_of(url) not in _ON_HOSTS


def check_url(url: str, key: str) -> None:
    """Refuse credentials in a URL, which would stand in messages, the ledger and releases."""
    found = _URL.match(url) if is_remote(url) else None
    if found is not None and ":" in found[2].rpartition("@")[0]:
        raise SpecError(
            "holds a password, which would be shown to whoever reads messages",
            key,
            to_do="Take it out, and give credentials as the store's client expects them: in "
            "variables of the environment, or in its own file",
        )


def has_client(url: str) -> bool:
    """Whether the client of a URL's store is installed."""
    try:
        _class_of(protocol_of(url))
    except (ImportError, ValueError):
        return False
    return True


def client_of(url: str) -> Any:
    """The store's fsspec file system. What was listed before is never believed: others write."""
    protocol = protocol_of(url)
    try:
        return _client(protocol, url.split("/")[2] if protocol in _ON_HOSTS else "", os.getpid())
    except ImportError as error:
        package = _PACKAGES.get(protocol)
        to_do = f"pip install '{package}'" if package else f"Install what it names: {error}"
        raise SpecError(f"{url}: the client of {protocol}:// is not installed. {to_do}") from None
    except ValueError:
        raise SpecError(
            f"{url}: fsspec has no client for {protocol}://. Use s3://, gs://, abfs:// or another "
            "that it knows, or a local folder"
        ) from None


def _class_of(protocol: str) -> Any:
    from fsspec import get_filesystem_class

    return get_filesystem_class(protocol)


@cache
def _client(protocol: str, host: str, process: int) -> Any:
    # Threads of a client do not survive a fork, so that each process has its own.
    found = _class_of(protocol)
    where = found._get_kwargs_from_urls(f"{protocol}://{host}") if host else {}
    return found(use_listings_cache=False, skip_instance_cache=True, **where)


def is_there(client: Any, url: str) -> bool:
    """Clients' own `exists` says no of what they could not ask for."""
    try:
        client.info(url)
    except FileNotFoundError:
        return False
    return True


def files_below(url: str) -> dict[str, dict[str, Any]]:
    """What the store says of each file below a folder, by path; of none that is not there."""
    client = client_of(url)
    # Some clients take folders that cannot be asked for empty ones, unless they are told.
    strict = {} if has_conditions(url) else {"on_error": "raise"}
    try:
        found = client.find(url, detail=True, **strict)
    except FileNotFoundError:
        if strict and is_there(client, url):
            # A folder inside of it has gone meanwhile.
            return files_below(url)
        return {}
    root = client._strip_protocol(url)
    return {
        name.removeprefix(root).lstrip("/"): info
        for name, info in found.items()
        if info["type"] == "file" and name.startswith(f"{root}/")
    }


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Errors of any client as those of files, with a text that holds no secret."""
    try:
        yield
    except AdsbpcError:
        raise
    except FileNotFoundError as error:
        told = "no such bucket" if _NO_BUCKET.search(str(error)) else "no such file"
        raise FileNotFoundError(errno.ENOENT, told, url) from None
    except FileExistsError:
        raise FileExistsError(errno.EEXIST, "is there already", url) from None
    except PermissionError as error:
        told = f"permission denied: {_in_short(error)}"
        raise PermissionError(errno.EACCES, told, url) from None
    except OSError as error:
        raise OSError(errno.EIO, _in_short(error), url) from None
    except Exception as error:  # noqa: BLE001 - every client has exceptions of its own
        name = type(error).__name__
        told = _in_short(error)
        if name.startswith(_NO_CREDENTIALS) or "credentials" in told.lower():
            told = "no credentials that the store's client can use"
            raise PermissionError(errno.EACCES, told, url) from None
        if name.startswith(_UNREACHABLE):
            told = "the store cannot be reached"
        raise OSError(errno.EIO, told, url) from None


def _in_short(error: BaseException) -> str:
    text = " ".join(without_passwords(str(error)).split())
    return text[:300] or type(error).__name__


def without_passwords(text: str) -> str:
    """A message without signatures, keys and whatever secret this process was given."""
    for name, value in os.environ.items():
        if len(value) >= 8 and any(word in name.upper() for word in _SECRET_VARIABLES):
            text = text.replace(value, "***")
    return _SECRETS.sub(r"\1***", text)
