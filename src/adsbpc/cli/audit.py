"""`adsbpc audit`: an independent check of what a campaign promised, claim by claim."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.progress import TimeElapsedColumn

from adsbpc.audit import Claim, Findings
from adsbpc.campaign import Campaign
from adsbpc.cli.console import progress, results, stoppable

_EXACT = "Figures are exact, without any noise: for auditors, not for publication."


def run(file: Path, as_json: bool) -> None:
    campaign = Campaign.load(file)
    found = findings_of(campaign)
    if as_json:
        print(json.dumps(found.to_object()))
    else:
        _print(found)
    if not found.held:
        raise typer.Exit(1)


def findings_of(campaign: Campaign) -> Findings:
    """The findings, with a bar while the books are gone through."""
    with stoppable("Stopped. An audit changes nothing."), audit_progress() as told:
        return campaign.audit(told)


@contextmanager
def audit_progress() -> Iterator[Callable[[int, int], None]]:
    # How many steps there are, is known once the books are found.
    with progress("Auditing the books", None, TimeElapsedColumn()) as step:
        yield lambda done, total: step(completed=done, total=total)


def _print(found: Findings) -> None:
    out, widest = results(), max(len(claim.name) for claim in found.claims)
    for claim in found.claims:
        style = "" if claim.held else "bold red"
        out.print(_line(claim, widest), style=style, soft_wrap=True)
    if found.held:
        out.print(f"All {len(found.claims)} claims hold.")
    else:
        out.print(f"Claims that DO NOT HOLD: {len(found.broken)} of {len(found.claims)}.")
    out.print(_EXACT)


def _line(claim: Claim, widest: int) -> str:
    mark = "holds" if claim.held else "FAILS"
    return f"{mark}  {claim.name:<{widest}}  {_sentence(claim.checked)} {_sentence(claim.detail)}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
