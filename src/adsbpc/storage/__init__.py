"""Where books, releases and event files are: a local folder, or a URL that fsspec has a client for.
Nothing here knows what the files hold."""

from adsbpc.storage.client import check_url, has_client, is_remote, without_passwords
from adsbpc.storage.listing import files_at, partition_base
from adsbpc.storage.places import (
    Place,
    contents_of,
    folder_at,
    hash_of,
    hashes_of,
    place_at,
    remove_tree,
    seal_file,
    stamp_of,
)
from adsbpc.storage.remote_path import RemotePath, Stamp
from adsbpc.storage.trial import problem_of_store

__all__ = [
    "Place",
    "RemotePath",
    "Stamp",
    "check_url",
    "contents_of",
    "files_at",
    "folder_at",
    "has_client",
    "hash_of",
    "hashes_of",
    "is_remote",
    "partition_base",
    "place_at",
    "problem_of_store",
    "remove_tree",
    "seal_file",
    "stamp_of",
    "without_passwords",
]
