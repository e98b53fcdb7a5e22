"""A session of Spark: the Java that it needs, its settings, its errors, its end."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from adsbpc.errors import AdsbpcError, SpecError

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

# What the portable texts rely on; set on a session of our own, so that nobody else's changes.
_SESSION = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.variable.substitute": "false",
}

# What an operator may set otherwise in [engine.options].
_DEFAULTS: dict[str, str | int | bool] = {
    "spark.master": "local[*]",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": False,
    "spark.ui.showConsoleProgress": False,
    # What a cluster writes of people is for the owner alone.
    "spark.hadoop.fs.permissions.umask-mode": "077",
    # A slot makes code for more steps than Spark keeps by itself.
    "spark.sql.codegen.cache.maxEntries": 1_000,
}

MISSING_JAVA = (
    "Spark needs Java 17 or newer and none was found. Install one (on Debian: "
    "apt-get install openjdk-17-jre-headless) or set JAVA_HOME to where it is"
)


def find_java() -> str | None:
    """Path of a Java that starts, or None."""
    home = os.environ.get("JAVA_HOME")
    candidate = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if candidate is None:
        return None
    try:
        started = subprocess.run([candidate, "-version"], capture_output=True, check=False)
    except OSError:
        return None
    return candidate if started.returncode == 0 else None


@cache
def _stop_in_the_end(context: SparkContext) -> None:
    """Before the program takes Java down, which would leave executors of a cluster to complain of
    what is gone, with tracebacks."""
    atexit.register(context.stop)


def started_session(
    options: Mapping[str, str | int | bool],
) -> tuple[SparkSession, bool, set[str]]:
    """A session of our own, whether it is on this machine, and the settings that somebody chose."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise AdsbpcError(
            'engine = "spark" needs pyspark. Install it with: pip install "adsbpc[spark]"'
        ) from None
    settings = {**_DEFAULTS, **options}
    is_local = str(settings["spark.master"]).startswith("local")
    if is_local and find_java() is None:
        raise AdsbpcError(MISSING_JAVA)
    builder = SparkSession.builder.appName("adsbpc")
    for key, value in settings.items():
        builder = builder.config(
            key, str(value).lower() if value is True or value is False else value
        )
    try:
        session = builder.getOrCreate().newSession()
    except Exception as error:  # noqa: BLE001 - Spark raises whatever its JVM could not do
        raise SpecError(
            f"[engine.options]: Spark does not start with them: {cause_of(error)}. "
            "Options are Spark settings such as spark.master"
        ) from None
    context = session.sparkContext
    if not re.fullmatch(r"local(\[.*\])?", str(settings["spark.master"])):
        _stop_in_the_end(context)
    for key, value in _SESSION.items():
        session.conf.set(key, value)
    return session, is_local, {*settings, *(key for key, _ in context.getConf().getAll())}


def spark_errors() -> tuple[type[Exception], ...]:
    """What a Spark call may raise: its own exceptions, or a bare one from the JVM."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JJavaError


def cause_of(error: Exception) -> str:
    """The messages of an exception and of what caused it, without the JVM's stack traces."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        return str(error).split("\n\nJVM stacktrace")[0].strip()
    messages = []
    while cause is not None:
        first_line = str(cause.getMessage()).splitlines()[0]
        if first_line not in messages:
            messages.append(first_line)
        cause = cause.getCause()
    return "; caused by: ".join(messages)
