"""One S3 server and one of HDFS for a process, and a folder of its own in them for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count

import pytest

from adsbpc.storage import RemotePath
from adsbpc.storage.client import client_of
from tests.storage.hdfs import HdfsServer
from tests.storage.s3 import BUCKET, S3Server

_TESTS = count(1)


@pytest.fixture(scope="session")
def running_s3() -> Iterator[S3Server]:
    server = S3Server()
    with server.running(), pytest.MonkeyPatch.context() as patch:
        for name in [each for each in os.environ if each.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in server.variables().items():
            patch.setenv(name, value)
        client_of(f"s3://{BUCKET}").mkdir(BUCKET)
        yield server


@pytest.fixture
def s3(running_s3: S3Server) -> Iterator[S3Server]:
    yield running_s3
    running_s3.behave()


@pytest.fixture
def store(s3: S3Server) -> RemotePath:
    """A folder that nobody has used."""
    return RemotePath(f"s3://{BUCKET}/test-{next(_TESTS)}")


@pytest.fixture(scope="session")
def running_hdfs() -> Iterator[HdfsServer]:
    server = HdfsServer()
    with server.running():
        yield server


@pytest.fixture
def hdfs(running_hdfs: HdfsServer) -> HdfsServer:
    running_hdfs.behave()
    return running_hdfs


@pytest.fixture
def hdfs_store(hdfs: HdfsServer) -> RemotePath:
    return RemotePath(f"{hdfs.url}/test-{next(_TESTS)}")


@pytest.fixture(params=["s3", "hdfs", "memory"])
def any_store(request: pytest.FixtureRequest) -> RemotePath:
    """The same, also in memory, whose client comes with fsspec."""
    if request.param == "memory":
        return RemotePath(f"memory://bucket/test-{next(_TESTS)}")
    if request.param == "hdfs":
        hdfs: RemotePath = request.getfixturevalue("hdfs_store")
        return hdfs
    found: RemotePath = request.getfixturevalue("store")
    return found
