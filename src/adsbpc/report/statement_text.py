"""A statement as tables of texts, and these as Markdown: one selection for every format."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from adsbpc.report.numbers import rounded_up
from adsbpc.report.statement import CampaignStatement, Statement

_EXACT = "{:,} of {:,}"


@dataclass(frozen=True)
class Table:
    """Texts under titles; `rows` each have as many."""

    title: str
    note: str
    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def facts_of(statement: Statement) -> dict[str, str]:
    """What stands above everything."""
    ledger, software = statement.ledger, statement.software
    return {
        "Scope": statement.scope,
        "Spent in the scope": _EXACT.format(
            statement.scope_spent_pico_rho, statement.scope_limit_pico_rho
        )
        + " pico-rho",
        "Ledger": "nothing is released yet"
        if ledger is None
        else f"entry {ledger.position:,}, {ledger.hash}",
        "Made": statement.made_at,
        "Software": f"{software.name} {software.version}, Python {software.python}, "
        + ", ".join(f"{name} {version}" for name, version in software.libraries.items()),
        "Code (SHA-256)": software.code_sha256,
    }


def summary_of(campaign: CampaignStatement) -> str:
    promise = campaign.promise
    return (
        f"It promises {promise.definition} with rho = {rounded_up(promise.rho)} for one "
        f"{promise.unit_of_privacy}, which is (epsilon = {rounded_up(promise.epsilon)}, "
        f"delta = {promise.delta:g}), over everything that the campaign releases."
    )


def parts_of(campaign: CampaignStatement) -> tuple[Table, ...]:
    """All tables of a campaign, in order."""
    return (
        _promise(campaign),
        Table(
            "Bounds and noise",
            "With the newest release: what one user may add, in conversions, and the scale of the "
            "noise that hides it, in the whole numbers that are released.",
            ("Measure", "Metric", "By", "Cells", "Rho", "Limit of a user", "Noise scale"),
            tuple(
                (
                    each.name,
                    each.metric
                    if each.value_cap is None
                    else f"{each.metric}, up to {each.value_cap:g}",
                    ", ".join(each.by),
                    f"{each.cells:,}",
                    f"{each.rho:.6g}",
                    "" if each.limit is None else f"{each.limit:.6g}",
                    "" if each.noise_scale is None else f"{each.noise_scale:.6g}",
                )
                for each in campaign.measures
            ),
        ),
        Table(
            "Planned split",
            "Of the campaign's rho, by what it is spent on.",
            ("Part", "Rho"),
            tuple((part, f"{rho:.6g}") for part, rho in campaign.split.items()),
        ),
        _releases(campaign),
        _audit(campaign),
        Table(
            "What is not covered",
            "The promise says nothing of these.",
            ("Not covered",),
            tuple((each,) for each in campaign.not_covered),
        ),
        Table(
            "Hazards",
            "Known ways in which differential privacy fails in practice, and how each is met here.",
            ("Hazard", "Standing", "Answer"),
            tuple((each.hazard, each.standing, each.answer) for each in campaign.hazards),
        ),
        Table(
            "Entry for a registry of deployments",
            "Also in the JSON form, under registry.",
            ("Field", "Value"),
            tuple(
                (name.replace("_", " "), "yes" if value is True else str(value))
                for name, value in campaign.registry.model_dump().items()
            ),
        ),
    )


def _promise(campaign: CampaignStatement) -> Table:
    promise, budget = campaign.promise, campaign.budget
    return Table(
        "The promise",
        "In the vocabulary of NIST SP 800-226. Parameters are rounded up to six digits; the JSON "
        "form has them in full. A pico-rho is a millionth of a millionth of rho.",
        ("Term", "Value"),
        (
            ("Definition", promise.definition),
            ("Unit of privacy", f"{promise.unit_of_privacy}: all events under one user id"),
            ("Neighbouring data sets", f"{promise.adjacency} ({promise.neighbours})"),
            ("Parameter rho", rounded_up(promise.rho)),
            ("Parameter epsilon", rounded_up(promise.epsilon)),
            ("Parameter delta", f"{promise.delta:g}"),
            ("Limit of the scope, rho", rounded_up(promise.scope_rho)),
            ("Limit of the scope, epsilon", rounded_up(promise.scope_epsilon)),
            (
                "Spent so far",
                _EXACT.format(budget.spent_pico_rho, budget.limit_pico_rho)
                + f" pico-rho, which is epsilon = {rounded_up(budget.spent_epsilon)}",
            ),
            ("Trust model", f"{promise.trust_model}: the operator sees the events"),
            ("Mechanism", campaign.mechanism),
            (
                "Period",
                f"{campaign.slots} slots of {campaign.slot} from {campaign.first_day} "
                f"({campaign.timezone}){', closed early' if campaign.closed else ''}",
            ),
        ),
    )


def _releases(campaign: CampaignStatement) -> Table:
    return Table(
        "Releases",
        f"{len(campaign.releases)} of {campaign.slots} slots, each charged once. A release file is "
        "the one with this SHA-256.",
        ("Slot", "Until", "Charged, pico-rho", "Parts", "SHA-256"),
        tuple(
            (
                f"{each.slot}",
                each.ends_at,
                f"{sum(charge.pico_rho for charge in each.charges):,}",
                "; ".join(f"{charge.part} {charge.pico_rho:,}" for charge in each.charges),
                each.sha256,
            )
            for each in campaign.releases
        ),
    )


def _audit(campaign: CampaignStatement) -> Table:
    audit = campaign.audit
    if audit is None:
        return Table("Audit", "Not run for this statement.", ("Claim", "Result"), ())
    broken = sum(not each.held for each in audit.claims)
    told = f"{broken} of {len(audit.claims)} claims DO NOT HOLD."
    if not broken:
        told = f"All {len(audit.claims)} claims of adsbpc audit hold."
    return Table(
        "Audit",
        f"{told} Its figures are exact, and no part of a statement.",
        ("Claim", "Result"),
        tuple((each.name, "holds" if each.held else "DOES NOT HOLD") for each in audit.claims),
    )


def markdown_of(statement: Statement) -> str:
    lines = [f"# {_plain(statement.title)}: privacy statement", ""]
    lines += [f"- {name}: {_plain(text)}" for name, text in facts_of(statement).items()]
    for campaign in statement.campaigns:
        lines += ["", f"## {_plain(campaign.name)}", "", _plain(summary_of(campaign))]
        for table in parts_of(campaign):
            lines += ["", f"### {table.title}", "", table.note]
            if table.rows:
                lines += ["", _row(table.titles), _row(["---"] * len(table.titles))]
                lines += [_row(map(_plain, row)) for row in table.rows]
    return "\n".join(lines) + "\n"


def _row(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _plain(text: str) -> str:
    """A name may hold anything: nothing of it is markup."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(text.split()))
