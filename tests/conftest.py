"""Engines for tests: the same test body runs on DuckDB and on Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from adsbpc.engines import Engine, open_engine
from adsbpc.engines.spark_engine import MISSING_JAVA, find_java

settings.register_profile(
    "adsbpc",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("adsbpc")

SPARK_OPTIONS: dict[str, str | int | bool] = {
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": 2,
    "spark.sql.adaptive.enabled": False,
    "spark.driver.host": "127.0.0.1",
}

_JAVA = find_java()
_skipped_for_java: list[str] = []


def open_test_engine(name: str) -> Engine:
    return open_engine(name, SPARK_OPTIONS if name == "spark" else {"threads": 2})


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    opened = open_test_engine(request.param)
    yield opened
    opened.close()


@pytest.fixture
def duckdb_engine() -> Iterator[Engine]:
    opened = open_test_engine("duckdb")
    yield opened
    opened.close()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if _JAVA is None and item.get_closest_marker("spark"):
        _skipped_for_java.append(item.nodeid)
        pytest.skip(MISSING_JAVA)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _skipped_for_java:
        terminalreporter.section("NOT TESTED ON SPARK", sep="!", red=True, bold=True)
        terminalreporter.line(f"{len(_skipped_for_java)} tests were skipped. {MISSING_JAVA}")
