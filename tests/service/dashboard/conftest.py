"""One stage for all pages that only look, because setting it takes seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service.dashboard.stage import Stage, Visitor, staged


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("stage")) as found:
        yield found


@pytest.fixture(scope="session")
def operator(stage: Stage) -> Visitor:
    return stage.visitor("operator")


@pytest.fixture(scope="session")
def advertiser(stage: Stage) -> Visitor:
    return stage.visitor("advertiser", "Ad-1")


@pytest.fixture
def nobody(stage: Stage) -> Visitor:
    return stage.visitor()
