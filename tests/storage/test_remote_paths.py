"""Files of a store: written once, asked for by name, read in parts; errors without secrets."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from adsbpc.errors import SpecError
from adsbpc.storage import RemotePath, contents_of, folder_at, hash_of, place_at, seal_file
from adsbpc.storage.client import explained, is_remote, without_passwords
from adsbpc.storage.ranges import RangeReader
from tests.storage.s3 import S3Server


def test_a_name_that_is_taken_is_refused(any_store: RemotePath) -> None:
    file = any_store / "a" / "b.json"
    file.create(b"first")
    with pytest.raises(FileExistsError):
        file.create(b"second")
    assert file.read_bytes() == b"first"


def test_a_folder_is_no_file(any_store: RemotePath) -> None:
    (any_store / "a" / "b.json").create(b"x")
    assert (any_store / "a" / "b.json").exists()
    assert not (any_store / "a").exists()
    assert not (any_store / "a" / "b").exists()


def test_names_below_a_folder(any_store: RemotePath) -> None:
    for name in ("slot=0001/attempt=x/a", "slot=0001/attempt=x/b", "slot=0002/attempt=y/a", "c"):
        (any_store / name).create(b"x")
    (any_store.parent / f"{any_store.name}-other" / "slot=0003" / "a").create(b"x")
    found = {str(each) for each in any_store.glob("slot=*")}
    assert found == {f"{any_store}/slot=0001", f"{any_store}/slot=0002"}
    assert [each.name for each in any_store.glob("slot=0001/attempt=*/b")] == ["b"]
    assert len(any_store.stamps()) == 4
    assert list((any_store / "nothing").glob("*")) == []


def test_removed_once_or_twice(any_store: RemotePath) -> None:
    file = any_store / "a"
    file.create(b"x")
    file.unlink()
    file.unlink(missing_ok=True)
    assert not file.exists()
    with pytest.raises(FileNotFoundError):
        file.read_bytes()


def test_several_files_at_once_come_in_order(any_store: RemotePath) -> None:
    files = [any_store / f"{number}" for number in range(5)]
    for number, file in enumerate(files):
        file.create(str(number).encode())
    assert contents_of(files[::-1]) == [b"4", b"3", b"2", b"1", b"0"]
    assert contents_of(files[:1]) == [b"0"]
    assert contents_of([]) == []
    with pytest.raises(FileNotFoundError):
        contents_of([*files, any_store / "missing"])


def test_a_seal_is_of_what_was_uploaded(any_store: RemotePath, tmp_path: Path) -> None:
    local, content = tmp_path / "file", os.urandom(100_000)
    local.write_bytes(content)
    (any_store / "file").upload(local)
    size, digest, *version = seal_file(any_store / "file")
    assert (size, len(version)) == (100_000, 0 if any_store.url.startswith("memory") else 1)
    # Somebody who has not uploaded it reads it.
    assert seal_file(RemotePath(f"{any_store}/file"))[1] == digest
    with (any_store / "file").open() as opened:
        assert hash_of(opened) == digest


def test_threads_share_a_stream(any_store: RemotePath) -> None:
    """An engine seeks and then reads, from many threads and one stream."""
    content = os.urandom(1_000_000)
    (any_store / "file").create(content)
    stream = RangeReader(f"{any_store}/file", len(content))

    def read(start: int) -> bool:
        stream.seek(start)
        return stream.read(1_000) == content[start : start + 1_000]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(0, 1_000_000, 5_000)))


def test_a_stream_ends(any_store: RemotePath) -> None:
    (any_store / "file").create(b"0123456789")
    stream = RangeReader(f"{any_store}/file", 10)
    assert stream.read(4) == b"0123"
    assert stream.seek(-3, 2) == 7
    assert stream.read() == b"789"
    assert stream.read(5) == b""
    shorter = RangeReader(f"{any_store}/file", 20)
    with pytest.raises(OSError, match="gave 10 of 20 bytes"):
        shorter.read()


def test_no_such_bucket(s3: S3Server) -> None:
    with pytest.raises(FileNotFoundError, match="no such bucket"):
        RemotePath("s3://nobodys/a").create(b"x")
    assert not RemotePath("s3://nobodys/a").exists()


def test_what_may_not_be_asked_is_not_taken_for_missing(store: RemotePath, s3: S3Server) -> None:
    s3.denied = {"HEAD", "GET", "PUT"}
    for act in (store.exists, store.read_bytes, store.stamps, lambda: store.create(b"x")):
        with pytest.raises(PermissionError) as refused:
            act()
        assert "a-secret-of-somebody" not in str(refused.value)


def test_secrets_are_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI")
    told = "GET https://x/y?X-Amz-Signature=abc123&sig=def456 with key wJalrXUtnFEMI, token: t0k"
    for secret in ("abc123", "def456", "wJalrXUtnFEMI", "t0k"):
        assert secret not in without_passwords(told)
        with pytest.raises(OSError) as failed, explained("s3://x/y"):  # noqa: PT011
            raise RuntimeError(told)
        assert secret not in str(failed.value)


def test_a_password_in_a_url_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as refused:
        place_at("s3://key:pa55word@bucket/acme", tmp_path, "[storage] location")
    assert "pa55word" not in str(refused.value)
    assert "[storage] location" in str(refused.value)
    # Azure has the container before the sign.
    azure = "abfs://container@account.dfs.core.windows.net/acme"
    assert str(place_at(azure, tmp_path, "[storage] location")) == azure


def test_what_is_a_store(tmp_path: Path) -> None:
    assert all(map(is_remote, ("s3://b/x", "gs://b/x", "memory://x", "abfss://c@a/x")))
    assert not any(
        map(is_remote, ("postgresql://h/d", "data/x", "file:///x", "https://h/x", "C:/x"))
    )
    assert place_at(None, tmp_path, "key") == tmp_path
    assert folder_at("sub", tmp_path, "key") == tmp_path / "sub"
    with pytest.raises(SpecError, match="no such folder"):
        place_at("sub", tmp_path, "key")


def test_a_client_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="fsspec has no client for nowhere://"):
        RemotePath("nowhere://bucket/a").exists()
    with pytest.raises(SpecError, match="pip install 'gcsfs'"):
        RemotePath("gs://bucket/a").exists()


def test_of_racing_writers_one_is_first(hdfs_store: RemotePath) -> None:
    """Where no write has a condition, too; and what the others have written is gone."""
    file = hdfs_store / "a" / "b.json"

    def write(number: int) -> bool:
        try:
            file.create(str(number).encode())
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        first = list(pool.map(write, range(8)))
    assert first.count(True) == 1
    assert file.read_bytes() == str(first.index(True)).encode()
    assert [each.name for each in hdfs_store.stamps()] == ["b.json"]
