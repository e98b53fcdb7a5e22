"""Statements: what stands in ledger, releases and plan, put together for auditors."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from adsbpc.audit import Findings
from adsbpc.ledger import Snapshot
from adsbpc.mechanisms import fit_rho, privacy_of, split_of
from adsbpc.model import Budget, CampaignSpec, Measure, Promise, Release
from adsbpc.privacy import epsilon_of
from adsbpc.report.hazards import hazards_of, neighbours, not_covered
from adsbpc.report.statement import (
    CampaignStatement,
    RegistryEntry,
    Software,
    StatedAudit,
    StatedBudget,
    StatedCharge,
    StatedClaim,
    StatedLedger,
    StatedMeasure,
    StatedPromise,
    StatedRelease,
    Statement,
)

# What noise, costs and answers are computed with.
_LIBRARIES = ("opendp", "numpy", "scipy", "clarabel", "duckdb", "sqlalchemy")


def statement_of(
    scope: str,
    budget: Budget,
    ledger: StatedLedger | None,
    campaigns: tuple[CampaignStatement, ...],
) -> Statement:
    return Statement(
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        software=software(),
        scope=scope,
        scope_limit_pico_rho=budget.limit_pico_rho,
        scope_spent_pico_rho=budget.spent_pico_rho,
        ledger=ledger,
        campaigns=campaigns,
    )


def ledger_of(seen: Snapshot, through: Mapping[str, int] | None) -> StatedLedger | None:
    """The newest entry; for those who see releases up to a slot, as the newest of them tells it."""
    if through is None:
        head = None if seen.mark is None else seen.mark.head
        return None if head is None else StatedLedger(position=head.position, hash=head.hash)
    carried = Release.from_text(seen.releases[-1]).ledger if seen.releases else None
    if carried is None:
        return None
    return StatedLedger(position=carried.position, hash=carried.hash)


def campaign_statement(
    spec: CampaignSpec,
    promise: Promise,
    budget: Budget,
    seen: Snapshot,
    findings: Findings | None,
) -> CampaignStatement:
    """What is stated of one campaign, from the ledger at one moment."""
    section, privacy = spec.campaign, privacy_of(spec)
    releases = tuple(Release.from_text(text) for text in seen.releases)
    stated = StatedPromise(
        adjacency=promise.guarantee.adjacency.value,
        neighbours=neighbours(promise.guarantee.adjacency),
        rho=float(promise.guarantee.rho),
        epsilon=promise.epsilon,
        delta=promise.delta,
        scope_rho=float(promise.scope_rho),
        scope_epsilon=promise.scope_epsilon,
    )
    return CampaignStatement(
        name=section.name,
        advertiser=section.advertiser,
        first_day=section.start.isoformat(),
        slot=section.slot,
        slots=section.slots,
        timezone=section.timezone,
        closed=seen.campaign is not None and seen.campaign.closed,
        mechanism=privacy.mechanism,
        promise=stated,
        budget=StatedBudget(
            limit_pico_rho=budget.limit_pico_rho,
            spent_pico_rho=budget.spent_pico_rho,
            spent_epsilon=epsilon_of(budget.spent, promise.delta),
        ),
        measures=tuple(
            _measure(spec, promise, each, releases[-1] if releases else None)
            for each in spec.measures
        ),
        split={part: float(rho) for part, rho in split_of(spec).items()},
        releases=tuple(
            _release(one, text) for one, text in zip(releases, seen.releases, strict=True)
        ),
        audit=None if findings is None else _audit(findings),
        not_covered=not_covered(spec),
        hazards=hazards_of(spec, promise, None if findings is None else findings.held),
        registry=_registry(spec, stated),
    )


def _measure(
    spec: CampaignSpec, promise: Promise, measure: Measure, newest: Release | None
) -> StatedMeasure:
    drawn = None if newest is None else newest.of(measure.name)
    limit = None if drawn is None else drawn.bound if drawn.allowance is None else drawn.allowance
    return StatedMeasure(
        name=measure.name,
        metric=measure.metric,
        by=tuple(dimension.name for dimension in measure.layout.dimensions),
        cells=len(measure.layout),
        value_cap=measure.value_cap,
        rho=float((promise.guarantee.rho - fit_rho(spec)) * measure.share),
        limit=limit,
        noise_scale=None if drawn is None else drawn.scale,
    )


def _release(release: Release, text: str) -> StatedRelease:
    carried = release.ledger
    return StatedRelease(
        slot=release.slot,
        starts_at=release.starts_at,
        ends_at=release.ends_at,
        charges=tuple(
            StatedCharge(part=line.part, pico_rho=line.pico_rho) for line in release.charges
        ),
        sha256=sha256(text.encode()).hexdigest(),
        ledger_position=None if carried is None else carried.position,
        ledger_hash=None if carried is None else carried.hash,
    )


def _audit(findings: Findings) -> StatedAudit:
    """Without what was found, which is exact."""
    claims = tuple(StatedClaim(name=each.name, held=each.held) for each in findings.claims)
    return StatedAudit(held=findings.held, claims=claims)


def _registry(spec: CampaignSpec, promise: StatedPromise) -> RegistryEntry:
    section, metrics = spec.campaign, [each.name for each in spec.measures]
    return RegistryEntry(
        deployment=section.name,
        on_behalf_of=section.advertiser,
        data_product=f"{', '.join(metrics)} by {_dimensions(spec)}, for every slot of the campaign",
        release_interval=section.slot,
        first_day=section.start.isoformat(),
        last_moment=spec.grid.bounds_text(section.slots)[1],
        neighbouring_relation=promise.adjacency,
        rho=promise.rho,
        epsilon=promise.epsilon,
        delta=promise.delta,
        composition=f"all releases of the campaign; all campaigns of scope {section.scope} "
        f"together up to rho = {promise.scope_rho:g}",
        mechanism=privacy_of(spec).mechanism,
        software="adsbpc",
        software_version=software().version,
        software_sha256=software().code_sha256,
    )


def _dimensions(spec: CampaignSpec) -> str:
    names = dict.fromkeys(
        dimension.name for each in spec.measures for dimension in each.layout.dimensions
    )
    return " and ".join(names)


@cache
def software() -> Software:
    return Software(
        version=version("adsbpc"),
        code_sha256=code_hash(Path(str(files("adsbpc")))),
        python=platform.python_version(),
        libraries={name: version(name) for name in _LIBRARIES},
    )


def code_hash(package: Path) -> str:
    """Of the list that sha256sum prints of the package's files, in the order of their names. What
    Python compiles as it goes is left out."""
    names = sorted(
        path.relative_to(package).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    lines = (f"{sha256((package / name).read_bytes()).hexdigest()}  ./{name}\n" for name in names)
    return sha256("".join(lines).encode()).hexdigest()
