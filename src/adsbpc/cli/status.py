"""`adsbpc status`: how far a campaign is, and what it has spent."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from rich.table import Table

from adsbpc.campaign import Campaign, Status
from adsbpc.campaign.series import Series
from adsbpc.cli.console import counted, results
from adsbpc.errors import LedgerError
from adsbpc.ledger import Verification
from adsbpc.model import Budget
from adsbpc.report.numbers import budget_texts


def run(file: Path, verify: bool, as_json: bool) -> None:
    series = Series.load(file)
    if series is not None:
        _show_series(series, verify, as_json)
        return
    campaign = Campaign.load(file)
    checked = _verification_of(campaign) if verify else None
    if checked is not None and checked.problem is not None:
        if as_json:
            print(json.dumps({"verified": False, "problem": checked.problem}))
        raise LedgerError(f"does not verify: {checked.problem}")
    found = campaign.status()
    if as_json:
        print(json.dumps(_as_object(found, checked)))
        return
    results().print(_table(campaign, found))
    if checked is not None:
        print(
            f"Verified: none of {checked.entries:,} entries was changed, and every claim of the "
            "audit holds."
        )
        print("Note down the last hash, to show later that none was cut off either:")
        print(checked.head)


def _show_series(series: Series, verify: bool, as_json: bool) -> None:
    """A campaign without an end: how far each period is."""
    found = [(period, status) for period, status in series.standing()]
    if verify:
        for period, status in found:
            if status.released:
                checked = _verification_of(series.campaign(period))
                if checked.problem is not None:
                    raise LedgerError(f"{period.label}: does not verify: {checked.problem}")
    verified = True if verify else None
    if as_json:
        periods = [{"period": each.label, **status.to_object()} for each, status in found]
        print(json.dumps({"renewal": series.renewal, "verified": verified, "periods": periods}))
        return
    table = Table(title=f"{series.file.name}: budgets renew every {series.renewal}")
    for column in (series.renewal, "slots released", "rho spent", "rho of the scope"):
        table.add_column(column, justify="left" if column == series.renewal else "right")
    for each, status in found:
        spent, limit, _ = budget_texts(status.campaign_budget)
        released = f"{status.released} of {status.slots}" + (", closed" if status.closed else "")
        table.add_row(
            each.label, released, f"{spent} of {limit}", f"{float(status.scope_budget.limit):g}"
        )
    results().print(table)
    if verify:
        print("Verified: no entry was changed, and every claim of the audit holds.")


def _verification_of(campaign: Campaign) -> Verification:
    """Whether anything was changed; if not, whether what stands there keeps the promise."""
    from adsbpc.cli.audit import findings_of

    checked = campaign.verify()
    if checked.problem is not None:
        return checked
    broken = findings_of(campaign).broken
    if not broken:
        return checked
    problem = f"the audit's claim {broken[0].name!r} fails: {broken[0].detail}. Run adsbpc audit"
    return replace(checked, problem=problem)


def budget_line(budget: Budget) -> str:
    return f"Budget of the campaign: {_amounts(budget)}."


def _amounts(budget: Budget) -> str:
    spent, limit, left = budget_texts(budget)
    return f"{spent} of rho = {limit} spent, {left} left"


def _table(campaign: Campaign, found: Status) -> Table:
    spec = campaign.spec.campaign
    table = Table(title=f"Campaign {spec.name!r} of scope {spec.scope!r}", show_header=False)
    table.add_row("released", f"{found.released} of {found.slots} slots")
    waiting = found.over - found.released
    if found.closed:
        due = "nothing: the campaign was closed"
    elif found.released == found.slots:
        due = "nothing: the campaign is complete"
    elif waiting > 0:
        due = f"{counted(waiting, 'slot')}: run adsbpc release"
    else:
        due = f"slot {found.released + 1}, after {spec.grid.bounds_text(found.released + 1)[1]}"
    table.add_row("due", due)
    table.add_row("budget of the campaign", _amounts(found.campaign_budget))
    table.add_row("budget of the scope", _amounts(found.scope_budget))
    if found.scope_free is not None:
        table.add_row("free for new campaigns", f"rho = {float(found.scope_free):.4g}")
    if found.allowance is not None:
        table.add_row(
            "allowance in force",
            f"{found.allowance:.3g} conversions of a person with one publisher on one slot; more "
            "where they are spread out",
        )
    elif found.bound is not None:
        table.add_row("bound in force", f"{counted(found.bound, 'conversion')} per person and slot")
    table.add_row("ledger", found.ledger)
    return table


def _as_object(found: Status, checked: Verification | None) -> dict[str, object]:
    return {
        **found.to_object(),
        "ledger": found.ledger,
        "verified": None if checked is None else True,
        "entries": None if checked is None else checked.entries,
        "head": None if checked is None else checked.head,
    }
