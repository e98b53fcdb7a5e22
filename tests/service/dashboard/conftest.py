"""One stage for all pages that only look, because setting it takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.clocks import SetClock
from tests.service.dashboard.stage import START, Stage, Visitor, staged
from tests.service.running import running, settings_in


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


@pytest.fixture
def steered(tmp_path: Path) -> Iterator[Stage]:
    """One of its own, on which campaigns may be changed."""
    clock = SetClock(START)
    with running(settings_in(tmp_path), clock) as server:
        stage = Stage(server, clock)
        yield stage
        for http in stage.visitors:
            http.close()
