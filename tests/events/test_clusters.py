"""Tables of PostgreSQL, Delta and Iceberg on a Spark cluster, which reads them by itself. Where a
connector is missing, the message says which."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench.spark_cluster import started_cluster

from tests.campaign.files import edit, write_campaign
from tests.cli.program import in_a_process
from tests.events.test_outer_tables import (
    Put,
    credits_of,
    move,
    put_delta,
    put_iceberg,
    put_postgresql,
)

__all__ = ["put_postgresql"]
pytestmark = [pytest.mark.spark, pytest.mark.slow]
_DRIVERS = ("/usr/share/java/postgresql.jar", str(Path.home() / ".m2/**/postgresql-[0-9]*.jar"))


def driver() -> str:
    """The JDBC driver of PostgreSQL, which no Python package brings."""
    for pattern in _DRIVERS:
        for found in Path("/").glob(pattern.lstrip("/")):
            return str(found)
    pytest.skip("no JDBC driver of PostgreSQL here (on Debian: libpostgresql-jdbc-java)")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a master that has a worker."""
    with started_cluster(tmp_path_factory.mktemp("cluster")) as master:
        yield master


@contextmanager
def over_tcp(location: str) -> Iterator[str]:
    """The server of the tests listens on a socket of the file system, where Java cannot look."""
    path = Path(parse_qs(urlsplit(location).query)["host"][0]) / ".s.PGSQL.5432"
    listening = socket.create_server(("127.0.0.1", 0))

    def carry(source: socket.socket, target: socket.socket) -> None:
        try:
            while some := source.recv(65_536):
                target.sendall(some)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def accept() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(path))
            for pair in ((client, server), (server, client)):
                threading.Thread(target=carry, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    parts = urlsplit(location)
    try:
        port = listening.getsockname()[1]
        yield parts._replace(netloc=f"postgres:@127.0.0.1:{port}", query="").geturl()
    finally:
        listening.close()


def add_odd_moments(location: str, table: str) -> None:
    """Rows that are set aside, and stop no other."""
    with psycopg.connect(location, autocommit=True) as connection:
        for moment in ("infinity", "294276-12-31", "4713-01-01 BC"):
            connection.execute(
                f"INSERT INTO {table} SELECT (jsonb_populate_record(one, %s::jsonb)).*"
                f" FROM {table} AS one LIMIT 1",
                [json.dumps({"timestamp": moment})],
            )


def on(cluster: str, file: Path, jar: str | None = None) -> None:
    edit(file, 'engine = "duckdb"', 'engine = "spark"')
    more = f'\n"spark.jars" = "{jar}"' if jar else ""
    edit(
        file,
        "threads = 1",
        f'"spark.master" = "{cluster}"\n"spark.driver.host" = "127.0.0.1"'
        f'\n"spark.sql.shuffle.partitions" = 1{more}',
    )


def test_spark_reads_postgresql_without_a_copy(
    cluster: str, tmp_path: Path, put_postgresql: Put
) -> None:
    jar = driver()
    file = write_campaign(tmp_path)
    before = credits_of(file, "files.parquet")
    with ExitStack() as stack:

        def put(folder: Path, name: str, rows: pa.Table) -> str:
            location, _, table = put_postgresql(folder, name, rows).partition("#")
            add_odd_moments(location, table.replace("\\", ""))
            return f"{stack.enter_context(over_tcp(location))}#{table}"

        move(file, put)
        on(cluster, file, jar)
        done = in_a_process("attribute", file, "--out", "tables.parquet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    after = pq.read_table(tmp_path / "tables.parquet").to_pylist()
    assert sorted(tuple(row.values()) for row in after) == before


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("delta", "io.delta:delta-spark_2.13:VERSION"),
        ("iceberg", "org.apache.iceberg:iceberg-spark-runtime-SPARK_2.13:VERSION"),
        ("postgresql", "org.postgresql:postgresql:VERSION"),
    ],
)
def test_a_spark_without_the_connector_is_told_which(
    kind: str, told: str, cluster: str, tmp_path: Path, put_postgresql: Put
) -> None:
    file = write_campaign(tmp_path)
    move(file, {"delta": put_delta, "iceberg": put_iceberg, "postgresql": put_postgresql}[kind])
    on(cluster, file)
    done = in_a_process("attribute", file, "--out", "tables.parquet", cwd=tmp_path)
    assert done.returncode == 1, done.stdout
    assert f"a table of {kind}, for which this Spark has no connector" in done.stderr
    assert told in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
