"""dbt: a release as a Python model, for adapters that run Python beside dbt, such as dbt-duckdb.

Events are written as files to the folder of the campaign file, which names them there; the release
reads these, and the model becomes the table of everything that is released, with intervals. Running
the model again releases nothing again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adsbpc_integrations.program import Program

_REPORT = "releases.parquet"


def released(
    session: Any,
    impressions: Any,
    conversions: Any,
    campaign: str,
    program: Sequence[str] = ("adsbpc",),
) -> Any:
    """A relation of all cells of the report. `impressions` and `conversions` are the relations of
    the two models; their files are named for these."""
    folder = Path(campaign).resolve().parent
    write_events(impressions, folder / "adsbpc_impressions.parquet")
    write_events(conversions, folder / "adsbpc_conversions.parquet")
    adsbpc = Program(program)
    adsbpc.release(campaign)
    adsbpc.report(campaign, str(folder / _REPORT))
    return session.read_parquet(str(folder / _REPORT))


def write_events(relation: Any, path: Path) -> None:
    """Whole or not at all, and for nobody else to read: they are of people."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    os.close(os.open(unfinished, os.O_CREAT | os.O_WRONLY, 0o600))
    relation.write_parquet(str(unfinished))
    os.replace(unfinished, path)
