"""`adsbpc doctor` and stores that cannot be used, each with the next step; the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adsbpc.storage import RemotePath, problem_of_store
from tests.campaign.test_doctor import checks
from tests.cli.program import adsbpc
from tests.storage.campaigns import write_stored
from tests.storage.s3 import S3Server

SECRET = "a-secret-of-somebody"


def test_all_is_well(store: RemotePath, tmp_path: Path) -> None:
    file = write_stored(tmp_path, store)
    found = checks(file)
    assert not [each for each in found.values() if not each["held"]]
    assert found["storage"]["found"] == f"{store} can be read and written"
    assert "s3 needed" in found["extras"]["found"]
    assert store.stamps() == {}, "something was left"


def test_stores_that_cannot_be_used(s3: S3Server, store: RemotePath) -> None:
    assert problem_of_store(store) is None
    problem = problem_of_store(RemotePath("s3://nobodys/acme"))
    assert problem is not None
    assert "no such bucket" in problem[0]
    cases = {
        "PUT": "cannot be written (permission denied",
        "GET": "cannot be read (permission denied",
        "DELETE": "nothing can be removed (permission denied",
    }
    for method, told in cases.items():
        s3.denied = {method}
        problem = problem_of_store(store)
        assert problem is not None
        assert told in problem[0]
        assert problem[1].startswith("Check the bucket, the credentials and the right to")
    s3.denied, s3.overwriting = set(), True
    problem = problem_of_store(store)
    assert problem is not None
    assert "lets a file be written twice" in problem[0]


def test_no_credentials(store: RemotePath, tmp_path: Path, s3: S3Server) -> None:
    file = write_stored(tmp_path, store)
    without = {
        "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": str(tmp_path),
    }  # fmt: skip
    # Processes of their own, which have no client yet.
    for command in ("doctor", "release"):
        done = subprocess.run(
            [sys.executable, "-m", "adsbpc", command, str(file)],
            env={**os.environ, **without}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1
        assert "no credentials" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", ["status", "audit", "report"])
def test_commands(store: RemotePath, tmp_path: Path, command: str) -> None:
    file = write_stored(tmp_path, store)
    done = adsbpc("release", file, "--through", "2026-03-02", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    options = ["--verify"] if command == "status" else []
    done = adsbpc(command, file, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()
    for stored in store.stamps():
        assert SECRET.encode() not in stored.read_bytes()
    assert adsbpc("restore", file, cwd=tmp_path).returncode == 0
