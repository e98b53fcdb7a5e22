"""`adsbpc attribute`: credits before privacy, for debugging."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from adsbpc.campaign import attribute, check_targets, write_credits
from adsbpc.engines import open_engine
from adsbpc.events import source_files
from adsbpc.model import load_spec


def run(file: Path, out: Path, quarantine: Path | None, as_json: bool) -> None:
    notes = Console(stderr=True)
    spec = load_spec(file)
    targets = [out] if quarantine is None else [out, quarantine]
    check_targets(targets, source_files(spec))
    engine = open_engine(spec.events.engine, spec.engine_options)
    try:
        with notes.status(f"Reading events on {engine.name}"):
            events = attribute(spec, engine)
        with notes.status(f"Attributing ({spec.attribution.model})"):
            rows = write_credits(engine, out)
        with notes.status("Counting quarantined rows"):
            bad = events.quarantined()
            if quarantine is not None:
                events.write_quarantine(quarantine)
    finally:
        engine.close()
    if as_json:
        summary = {
            "credits": rows,
            "out": str(out),
            "personal_data": True,
            "quarantined": [
                {"source": source, "reason": reason, "rows": count}
                for (source, reason), count in bad.items()
            ],
        }
        print(json.dumps(summary, indent=2))
        return
    print(f"{rows:,} credits written to {out}")
    print("This file is personal data: it holds users' credits without any noise.")
    for (source, reason), count in bad.items():
        notes.print(f"quarantined {count:,} {source}: {reason}", style="yellow", highlight=False)
    if bad and quarantine is None:
        notes.print("add --quarantine FILE to look at them", style="dim")
