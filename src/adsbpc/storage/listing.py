"""The files that a URL stands for: one file, a pattern, or a folder of Parquet files."""

from __future__ import annotations

import glob

from adsbpc.errors import SourceError
from adsbpc.storage.client import client_of, explained, start_of

_FILES = (".parquet", ".csv", ".csv.gz")


def files_at(url: str) -> list[str]:
    """In order; SourceError if there is none, or the store does not say."""
    expected = "at least one file that can be read"
    if url.endswith(_FILES) and not glob.has_magic(url):
        return [url]
    pattern = url if glob.has_magic(url) else f"{url.rstrip('/')}/**/*.parquet"
    try:
        with explained(url):
            found = client_of(url).glob(pattern, detail=True)
    except OSError as error:
        raise SourceError(
            url, f"a store that does not answer ({error.strerror})", expected,
            "Check the bucket, the credentials and the rights to list it: adsbpc doctor.",
        ) from None  # fmt: skip
    start = start_of(url)
    files = sorted(f"{start}{name}" for name, info in found.items() if info["type"] == "file")
    if not files:
        found_instead = "no file" if _has_bucket(url) else "no such bucket"
        raise SourceError(url, found_instead, expected, "Check [events] in the campaign file.")
    return files


def _has_bucket(url: str) -> bool:
    protocol, _, path = url.partition("://")
    bucket = f"{protocol}://{path.partition('/')[0]}"
    try:
        with explained(bucket):
            client_of(bucket).info(bucket)
    except FileNotFoundError:
        return False
    except OSError:
        # Whoever may not ask for the bucket may still list it.
        return True
    return True


def partition_base(files: list[str]) -> str | None:
    """The folder above the first folder `name=value` of a URL, if there is one."""
    for file in files:
        folders = file.split("/")[:-1]
        named = [place for place, part in enumerate(folders) if "=" in part]
        if named:
            return "/".join(folders[: named[0]])
    return None
