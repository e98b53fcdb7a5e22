"""`adsbpc close`: the end of a campaign before its last slot."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import typer

from adsbpc.campaign import Campaign


def run(file: Path, yes: bool, as_json: bool) -> None:
    campaign = Campaign.load(file)
    section = campaign.spec.campaign
    if not yes:
        typer.confirm(
            f"Nothing more will ever be released of campaign {section.name!r}. Close it?",
            abort=True,
            err=True,
        )
    returned = campaign.close()
    if as_json:
        found = {"campaign": section.name, "scope": section.scope, "returned": float(returned)}
        print(json.dumps(found))
        return
    # To the last of its twelve decimals: a campaign that asked for more would not fit.
    exact = f"{Decimal(returned.numerator) / returned.denominator:f}"
    print(
        f"Closed campaign {section.name!r}: rho = {exact} went back to scope "
        f"{section.scope!r}. What was released stays, and adsbpc report still shows it."
    )
