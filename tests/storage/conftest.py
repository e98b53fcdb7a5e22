"""A store that every test of this folder has for itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from adsbpc.storage.client import client_of
from tests.storage.s3 import BUCKET, S3Server


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    from moto.core.models import base_decorator  # noqa: F401 - its state is the process's
    from moto.backends import get_backend

    server = S3Server()
    with server.running():
        for name, value in server.variables().items():
            monkeypatch.setenv(name, value)
        client_of.cache_clear() if hasattr(client_of, "cache_clear") else None
        client_of(f"s3://{BUCKET}").mkdir(BUCKET)
        yield server
