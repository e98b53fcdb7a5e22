"""Folders of files in a store that executors write by themselves, and hash where they are: nothing
of what is in them passes through this machine.

Names are never used twice, and whoever reads such a folder knows its files by name: what an attempt
that failed has left behind counts for nothing.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from adsbpc.storage import RemotePath

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Whoever hashes a file has all of it in memory.
_MOST_ROWS = 2_000_000

Address = Callable[[str], str]


def write_folder(frame: DataFrame, folder: RemotePath, address: Address) -> None:
    """Write rows to a folder, and note size and hash of each file. The store's list of them is only
    taken if they have as many rows as were written."""
    from pyspark.sql import Observation
    from pyspark.sql.functions import count, lit

    written = Observation()
    (
        frame.hint("rebalance")
        .observe(written, count(lit(1)).alias("rows"))
        .write.mode("error")
        .option("maxRecordsPerFile", _MOST_ROWS)
        .option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        .parquet(address(str(folder)))
    )
    files = [file for file in folder.stamps() if len(file.below(folder)) == 1]
    reader = frame.sparkSession.read.schema(frame.schema)
    rows = reader.parquet(*[address(str(file)) for file in files]).count() if files else 0
    if not files or rows != written.get["rows"]:
        raise OSError(
            errno.EIO,
            f"{written.get['rows']} rows were written, and the files that the store lists have "
            f"{rows}: it has to list files as soon as they are written",
            str(folder),
        )
    for file, (size, digest) in zip(
        files, _hashed(frame.sparkSession, files, address), strict=True
    ):
        folder.uploaded[str(file)] = size, digest


def hashes_in_store(
    session: SparkSession, files: Sequence[RemotePath], address: Address
) -> list[str | OSError]:
    with ThreadPoolExecutor() as threads:
        missing = list(threads.map(_missing, files))
    there = [file for file, error in zip(files, missing, strict=True) if error is None]
    found = iter(_hashed(session, there, address))
    return [next(found)[1] if error is None else error for error in missing]


def _missing(file: RemotePath) -> OSError | None:
    try:
        file.stamp()
    except OSError as error:
        return error
    return None


def _hashed(
    session: SparkSession, files: Sequence[RemotePath], address: Address
) -> list[tuple[int, str]]:
    """Size and SHA-256 of each, computed by the executors."""
    if not files:
        return []
    addresses = [address(str(file)) for file in files]
    contents = session.read.format("binaryFile").load(addresses)
    rows = contents.selectExpr("path", "length", "sha2(content, 256)").collect()
    found = {str(path): (int(size), str(digest)) for path, size, digest in rows}
    return [found[each] for each in addresses]
