"""`adsbpc attribute`: credits before privacy, for debugging."""

from __future__ import annotations

import json
from pathlib import Path

from adsbpc.campaign import Campaign, attribute, check_targets, write_credits
from adsbpc.cli.console import notes
from adsbpc.cli.quarantine import as_objects, note_quarantine
from adsbpc.engines import open_engine


def run(file: Path, out: Path, quarantine: Path | None, as_json: bool) -> None:
    campaign = Campaign.load(file)
    spec = campaign.spec
    fit = campaign.fit()
    if spec.attribution.fit is not None and fit is None:
        notes().print(
            f"The fit of {spec.attribution.model!r} has not been made yet: all slots are "
            f"attributed with {spec.attribution.fit.fallback!r}."
        )
    targets = [out] if quarantine is None else [out, quarantine]
    check_targets(targets, spec, file)
    engine = open_engine(spec.events.engine, spec.engine_options)
    try:
        with notes().status(f"Reading events on {engine.name}"):
            attributed = attribute(spec, engine, fit=fit)
        with notes().status(f"Attributing ({spec.attribution.model})"):
            rows = write_credits(attributed, out)
        with notes().status("Counting quarantined rows"):
            bad = attributed.events.quarantined()
            if quarantine is not None:
                attributed.events.write_quarantine(quarantine)
    finally:
        engine.close()
    if as_json:
        summary = {
            "credits": rows,
            "out": str(out),
            "personal_data": True,
            "quarantined": as_objects(bad),
        }
        print(json.dumps(summary, indent=2))
        return
    print(f"{rows:,} credits written to {out}")
    print("This file is personal data: it holds users' credits without any noise.")
    note_quarantine(bad)
    if bad and quarantine is None:
        notes().print("add --quarantine FILE to look at them", style="dim")
