"""Whether this machine can run a campaign: one finding for each thing that may be missing.

Must never: change anything, but for an empty file that is made and removed to see if that works,
and for a database of an older schema, which every command brings up to date.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

from adsbpc.campaign.release_folder import FOLDER, home_of
from adsbpc.engines import open_engine
from adsbpc.engines.outer_tables import OuterTable
from adsbpc.engines.spark_session import MISSING_JAVA, find_java
from adsbpc.errors import AdsbpcError, EngineError
from adsbpc.events.sources import dialect_of, resolve_source
from adsbpc.ledger.database import LEDGER, Database, DatabaseSchema
from adsbpc.ledger.marks import MARKS
from adsbpc.model import CampaignSpec
from adsbpc.model.spec import LedgerSection
from adsbpc.storage import Place, RemotePath, is_remote, problem_of_store, remove_tree

_OLDEST_PYTHON, _OLDEST_SQLITE, _OLDEST_JAVA = (3, 11), (3, 35, 0), 17
_LEAST_FREE = 256 * 2**20
# Clocks of machines that share a disk differ by less.
_MOST_AHEAD_SECONDS = 600
# What is imported of each extra.
EXTRAS: Mapping[str, tuple[str, ...]] = {
    "delta": ("deltalake",),
    "iceberg": ("pyiceberg",),
    "lineage": ("openlineage.client",),
    "postgresql": ("psycopg", "adbc_driver_postgresql"),
    "s3": ("s3fs",),
    "service": ("fastapi", "uvicorn", "httpx"),
    "signing": ("cryptography",),
    "spark": ("pyspark",),
    "telemetry": ("opentelemetry.sdk",),
}


class _Trouble(Exception):  # noqa: N818 - a finding that is on its way
    def __init__(self, found: str, to_do: str) -> None:
        super().__init__(found)
        self.found, self.to_do = found, to_do


@dataclass(frozen=True)
class Finding:
    """`to_do` is the next step, empty if all is well."""

    name: str
    held: bool
    found: str
    to_do: str = ""


@dataclass(frozen=True)
class Diagnosis:
    findings: tuple[Finding, ...]

    @property
    def held(self) -> bool:
        return all(each.held for each in self.findings)

    def to_object(self) -> dict[str, Any]:
        """For machines."""
        return {"checks": [asdict(each) for each in self.findings], "held": self.held}


@dataclass(frozen=True)
class Setup:
    """What is to run here: where it keeps things, with which engine, its databases by the key that
    names each, and the campaign whose events it reads, if it is about one. A `place` is a location
    from the folder, and the schema of what stands there."""

    folder: Path
    engine: str = "duckdb"
    engine_options: Mapping[str, str | int | bool] = field(default_factory=dict)
    databases: Mapping[str, tuple[str, DatabaseSchema]] = field(default_factory=dict)
    extras: frozenset[str] = frozenset()
    campaign: CampaignSpec | None = None

    @classmethod
    def of(cls, spec: CampaignSpec) -> Setup:
        return cls(
            spec.directory,
            spec.events.engine,
            spec.engine_options,
            databases_of(spec.ledger),
            campaign=spec,
        )

    @property
    def needed_extras(self) -> frozenset[str]:
        remote = any("://" in place for place, _ in self.databases.values())
        found: set[str] = {"postgresql"} if remote else set()
        found |= {"spark"} if self.engine == "spark" else set()
        kinds = {table.kind for table in self._outer_tables()}
        if self.engine == "spark" and not _is_local(self):
            # The cluster reads tables itself; the columns of PostgreSQL are looked at from here.
            kinds &= {"postgresql"}
        if any(url.startswith(("s3://", "s3a://")) for url in self._stores()):
            found.add("s3")
        return self.extras | found | kinds

    def _stores(self) -> Iterator[str]:
        """Locations that are read and written through clients of object stores."""
        if self.campaign is None:
            return
        spec = self.campaign
        found = [spec.storage.location, spec.ledger.witness]
        if self.engine == "duckdb":
            found += [spec.events.impressions, spec.events.conversions]
        yield from (each for each in found if each is not None and is_remote(each))

    def _outer_tables(self) -> Iterator[OuterTable]:
        if self.campaign is not None:
            events = self.campaign.events
            for location in (events.impressions, events.conversions):
                table = OuterTable.at(location, self.folder)
                yield from [] if table is None else [table]


def databases_of(section: LedgerSection) -> dict[str, tuple[str, DatabaseSchema]]:
    """The ledger, and a witness that is a database."""
    found = {LEDGER.key: (section.location, LEDGER)}
    witness = section.witness
    if witness is not None and "://" in witness and not is_remote(witness):
        found[MARKS.key] = witness, MARKS
    return found


def diagnose(setup: Setup) -> Diagnosis:
    """Everything that can be told without releasing anything; each thing apart, so that one that
    is broken hides no other."""
    return Diagnosis(tuple(_findings(setup)))


def _findings(setup: Setup) -> Iterator[Finding]:
    yield _finding("python", _python)
    yield _finding("sqlite", _sqlite)
    yield _finding("extras", lambda: _extras(setup.needed_extras))
    if setup.engine == "spark" and _is_local(setup):
        yield _finding("java", _java)
    engine = _finding("engine", lambda: _engine(setup))
    yield engine
    yield _finding("folder", lambda: _writable(setup.folder))
    yield _finding("disk", lambda: _disk(setup.folder))
    yield _finding("temporary files", _temporary)
    yield _finding("clock", lambda: _clock(setup))
    for place, schema in setup.databases.values():
        yield _finding(schema.noun, partial(_database, setup.folder, place, schema))
    if setup.campaign is not None:
        spec = setup.campaign
        if spec.storage.location is not None:
            yield _finding("storage", lambda: _storage(spec))
        if spec.ledger.witness is not None and is_remote(spec.ledger.witness):
            yield _finding("witness", lambda: _store(RemotePath(str(spec.ledger.witness)).parent))
        for source in ("impressions", "conversions"):
            if engine.held:
                yield _finding(source, partial(_events, setup.campaign, source))
            else:
                yield Finding(source, False, "not read without an engine", engine.to_do)


def _finding(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, True, check())
    except _Trouble as trouble:
        return Finding(name, False, trouble.found, trouble.to_do)
    except AdsbpcError as error:
        # Such messages end with the next step.
        told = " ".join(str(error).split())
        found, _, to_do = told.rpartition(". ")
        return Finding(name, False, found or told, to_do if found else "")


def _python() -> str:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < _OLDEST_PYTHON:
        raise _Trouble(f"Python {found}", "Install Python 3.11 or newer")
    return f"Python {found}"


def _sqlite() -> str:
    found = sqlite3.sqlite_version
    if tuple(map(int, found.split("."))) < _OLDEST_SQLITE:
        raise _Trouble(
            f"SQLite {found}, and the ledger needs {'.'.join(map(str, _OLDEST_SQLITE))}",
            "Use a Python that comes with a newer SQLite, or keep the ledger in PostgreSQL: "
            "[ledger] location",
        )
    return f"SQLite {found}"


def _extras(needed: frozenset[str]) -> str:
    there = [name for name, modules in EXTRAS.items() if all(map(_importable, modules))]
    missing = sorted(needed - set(there))
    if missing:
        raise _Trouble(
            f"this needs {', '.join(missing)}, which cannot be imported",
            f"pip install 'adsbpc[{','.join(missing)}]'",
        )
    return f"{', '.join(there) or 'none'} installed, {', '.join(sorted(needed)) or 'none'} needed"


def _importable(module: str) -> bool:
    try:
        import_module(module)
    except ImportError:
        return False
    return True


def _is_local(setup: Setup) -> bool:
    return str(setup.engine_options.get("spark.master", "local")).startswith("local")


def _java() -> str:
    java = find_java()
    if java is None:
        found, _, to_do = MISSING_JAVA.partition(". ")
        raise _Trouble(found, to_do)
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    number = re.search(r'version "(?:1\.)?(\d+)', told)
    if number is None or int(number[1]) < _OLDEST_JAVA:
        line = (told.splitlines() or ["nothing"])[0]
        raise _Trouble(
            f"{java} says {line}, and Spark needs Java {_OLDEST_JAVA}",
            f"Install Java {_OLDEST_JAVA} or newer, and set JAVA_HOME to it",
        )
    return f"Java {number[1]}, {java}"


def _engine(setup: Setup) -> str:
    if setup.engine == "spark" and not _importable("pyspark"):
        raise _Trouble("not tried without pyspark", "pip install 'adsbpc[spark]'")
    if setup.engine == "spark" and _is_local(setup):
        _java()
    engine = open_engine(setup.engine, setup.engine_options)
    try:
        ((answer,),) = engine.rows("try", "SELECT whole_div(CAST(7 AS BIGINT), CAST(2 AS BIGINT))")
    finally:
        engine.close()
    if answer != 3:
        raise _Trouble(f"{setup.engine} computes 7 / 2 = {answer}", "Install another version of it")
    return f"{setup.engine} starts and answers"


def _writable(folder: Path) -> str:
    if not folder.is_dir():
        raise _Trouble(f"{folder} is no folder", "Create it, or correct the path")
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".adsbpc-doctor-"):
            pass
    except OSError as error:
        raise _Trouble(
            f"{folder} cannot be written ({error.strerror})",
            "Give the user who runs adsbpc the right to write there, or free space",
        ) from None
    return f"{folder} can be written"


def _store(place: Place) -> str:
    if isinstance(place, Path):
        return _writable(place)
    problem = problem_of_store(place)
    if problem is not None:
        raise _Trouble(*problem)
    return f"{place} can be read and written"


def _storage(spec: CampaignSpec) -> str:
    place = home_of(spec)
    told = _store(place)
    if isinstance(place, RemotePath) and spec.events.engine == "spark":
        told += f", by {_cluster(spec, place)} too"
    return told


def _cluster(spec: CampaignSpec, place: RemotePath) -> str:
    """Executors reach the store on their own way."""
    folder = place / f"adsbpc-doctor-{uuid4().hex}"
    engine = open_engine(spec.events.engine, spec.engine_options)
    try:
        engine.write_parquet("try the store", "SELECT 1 AS one", folder)
    except EngineError as error:
        raise _Trouble(
            f"{place} cannot be written from Spark ({error.cause})",
            "Give executors the connector and credentials of this store, in [engine.options]",
        ) from None
    finally:
        remove_tree(folder)
        engine.close()
    return "executors"


def _disk(folder: Path) -> str:
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise _Trouble(f"{folder}: {error.strerror}", "Create it, or correct the path") from None
    if free < _LEAST_FREE:
        raise _Trouble(
            f"{free / 2**20:,.0f} MiB are free at {folder}, and a release should have "
            f"{_LEAST_FREE / 2**20:,.0f}",
            "Free some space, or move the campaign to a larger disk: a full disk loses nothing, "
            "and releases nothing",
        )
    return f"{free / 2**30:,.1f} GiB are free at {folder}"


def _temporary() -> str:
    try:
        folder = Path(tempfile.gettempdir())
    except OSError as error:
        raise _Trouble(
            f"no folder for temporary files ({error.strerror})", "Set TMPDIR to one with space"
        ) from None
    _writable(folder)
    return _disk(folder)


def _clock(setup: Setup) -> str:
    """What is on the disk was written before now."""
    now, newest = time.time(), (0.0, "")
    for path in _dated(setup):
        newest = max(newest, (path.stat().st_mtime, str(path)))
    if newest[0] > now + _MOST_AHEAD_SECONDS:
        raise _Trouble(
            f"it is {_moment(now)} here, and {newest[1]} was written at {_moment(newest[0])}",
            "Set the clock (timedatectl set-ntp true): slots that are not over would be refused, "
            "and others released too early",
        )
    return f"{_moment(now)}, after everything that was written here"


def _dated(setup: Setup) -> Iterator[Path]:
    """Databases, what was published, and event files."""
    for place, _ in setup.databases.values():
        yield from (path for path in [setup.folder / place] if path.is_file())
    yield from (path for path in (setup.folder / FOLDER).rglob("*.json") if path.is_file())
    if setup.campaign is not None:
        events = setup.campaign.events
        for location in (events.impressions, events.conversions):
            path = setup.folder / location
            yield from [path] if "://" not in location and path.is_file() else []


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def _database(folder: Path, place: str, schema: DatabaseSchema) -> str:
    database = Database(place, folder, schema)
    try:
        there = database.exists()
    except AdsbpcError as error:
        if database.file is not None:
            raise
        raise _Trouble(
            " ".join(str(error).split()).rpartition(". ")[0],
            f"Start the server, check the way to it and the password, or correct {schema.key}",
        ) from None
    told = f"{database.where} {'is there' if there else 'is made when it is needed'}"
    if not there or database.file is None:
        return told
    if database.file.stat().st_mode & 0o077:
        raise _Trouble(
            f"{database.file} may be read by others than its owner, and holds secret state",
            f"chmod 600 {database.file}",
        )
    with database.reading() as connection:
        damage = database.damage(connection)
    if damage is not None:
        raise _Trouble(
            f"{database.where}: {damage}", "Restore it from a backup; a fresh one refunds budget"
        )
    return told


def _events(spec: CampaignSpec, source: str) -> str:
    location = str(getattr(spec.events, source))
    found = resolve_source(location, spec.directory, f"[events] {source}", dialect_of(spec))
    engine = open_engine(spec.events.engine, spec.engine_options)
    try:
        schemas = found.describe(engine)
    finally:
        engine.close()
    files = f"{len(found.files):,} files" if len(found.files) > 1 else found.where
    return f"{files}, with {', '.join(sorted(schemas[0].columns)) or 'no columns'}"
