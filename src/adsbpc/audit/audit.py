"""The audit of a campaign: claim by claim, from the ledger, the published files and the books.

An independent reading: nothing of the code that plans, admits, draws noise or writes the books is
imported here, and an import contract holds that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from adsbpc.audit import choice_claims, ledger_claims, multiplier_claims, noise_claims
from adsbpc.audit.answer_claims import answers
from adsbpc.audit.book_claims import BookAudit, Told
from adsbpc.audit.claims import Claim, Findings, claim, require, result_or_claim
from adsbpc.audit.promised_plan import PromisedPlan, fit_of, plans_of
from adsbpc.audit.record import Record, read_record
from adsbpc.engines import open_engine
from adsbpc.ledger import Ledger
from adsbpc.storage import Place


@dataclass(frozen=True)
class Subject:
    """What is audited: a campaign of a ledger, the folder that it published to, and those of the
    books of its measures."""

    ledger: Ledger
    scope: str
    campaign: str
    published: Place
    books: Callable[[str], Place]


def audit(
    subject: Subject,
    engine_options: Mapping[str, str | int | bool] | None = None,
    told: Told = lambda done, total: None,
) -> Findings:
    """Check every claim. `engine_options` are for DuckDB, which adds up the books."""
    record = read_record(subject.ledger, subject.scope, subject.campaign)
    found = [ledger_claims.chain(record), ledger_claims.budgets(record)]
    if not record.slots:
        found.append(claim("releases", "entries of the campaign", lambda: _nothing(record)))
    else:
        plans = result_or_claim("plan", "what the campaign promised", lambda: plans_of(record))
        if isinstance(plans, Claim):
            found.append(plans)
        else:
            for measure, plan in plans.items():
                own = _of_measure(
                    record, measure, plan, subject.books(measure), engine_options, told
                )
                found += own if len(plans) == 1 else [_named(each, measure) for each in own]
            if fit_of(record):
                found.append(noise_claims.fit(record, next(iter(plans.values())).two))
    found.append(ledger_claims.published(record, subject.published))
    return Findings(tuple(found))


def _of_measure(
    record: Record,
    measure: str,
    plan: PromisedPlan,
    books: Place,
    engine_options: Mapping[str, str | int | bool] | None,
    told: Told,
) -> list[Claim]:
    own = result_or_claim("plan", "what was released of it", lambda: record.of(measure))
    if isinstance(own, Claim):
        return [own]
    if plan.is_personal:
        return [
            *_released(own, plan),
            *_personal_budgets(own, plan, books, engine_options, told),
        ]
    return [*_released(own, plan), *_adsbpc(own, plan)]


def _named(each: Claim, measure: str) -> Claim:
    return replace(each, name=f"{measure}: {each.name}")


def _nothing(record: Record) -> str:
    require(not record.started, "the campaign was opened, and has no release")
    return "the campaign has not started: nothing of it was charged or released"


def _released(record: Record, plan: PromisedPlan) -> list[Claim]:
    """What holds under either mechanism."""
    return [
        ledger_claims.planned(record, plan),
        ledger_claims.charges(record, plan),
        ledger_claims.releases(record, plan),
        answers(record, plan),
    ]


def _personal_budgets(
    record: Record,
    plan: PromisedPlan,
    folder: Place,
    engine_options: Mapping[str, str | int | bool] | None,
    told: Told,
) -> list[Claim]:
    public = [
        noise_claims.scale_of_rows(record, plan),
        multiplier_claims.multipliers(record, plan),
        *([choice_claims.choices(record, plan)] if plan.by_rows else []),
    ]
    if record.campaign in record.erased:
        return [
            *public,
            claim("limits of this audit", "whether there are books to check people by", _erased),
        ]
    engine = open_engine("duckdb", engine_options)
    try:
        books = BookAudit(record, plan, folder, engine, told)
        found = books.claims()
    finally:
        engine.close()
    return [
        *public,
        *found,
        noise_claims.noise(record, plan),
        noise_claims.histograms(record, plan, books.newcomers),
    ]


def _erased() -> str:
    return (
        "NOT CHECKED, because the books were erased after the campaign was closed, as the ledger "
        "says: what each person cost, that the books add up to the totals, that the noise has the "
        "stated scale"
    )


def _adsbpc(record: Record, plan: PromisedPlan) -> list[Claim]:
    def no_books() -> str:
        named = [number for number, slot in record.slots.items() if "books" in slot.step]
        require(not named, f"the ledger names books for slots {named}, and adsbpc keeps none")
        return (
            "NOT CHECKED, because AdsBPC keeps no books: that everybody was held to the bound, "
            "what each person cost, that the noise has the stated scale"
        )

    return [
        noise_claims.scales_by_bound(record, plan),
        claim("limits of this audit", "whether there are books to check people by", no_books),
    ]
