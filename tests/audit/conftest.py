"""Campaigns that are released once for all tests of the audit."""

from __future__ import annotations

import pytest

from tests.audit.campaigns import Released


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Released:
    return Released(tmp_path_factory.mktemp("released"))
