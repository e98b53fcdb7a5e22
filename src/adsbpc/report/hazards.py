"""Known hazards of differential privacy in practice, and how a campaign meets each of them.

In the order of NIST SP 800-226: from the parameters and the unit of privacy, over algorithms and
their implementation, down to who collects the data and may look at it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from adsbpc.model import Adjacency, CampaignSpec, Promise
from adsbpc.model.release_spec import MechanismName
from adsbpc.report.numbers import rounded_up
from adsbpc.report.wording import MECHANISMS, strength

Standing = Literal["met", "met in part", "not covered"]


class Hazard(BaseModel):
    """What may go wrong, and what is done about it in this campaign."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hazard: str
    standing: Standing
    answer: str


@dataclass(frozen=True)
class _Facts:
    """What the answers depend on."""

    spec: CampaignSpec
    promise: Promise
    audited: bool | None

    @property
    def mechanism(self) -> MechanismName:
        # Where there is a promise, there is one.
        assert self.spec.privacy is not None
        return self.spec.privacy.mechanism


def hazards_of(spec: CampaignSpec, promise: Promise, audited: bool | None) -> tuple[Hazard, ...]:
    """`audited` is whether all claims of the audit hold, None if it was not run."""
    facts = _Facts(spec, promise, audited)
    return (
        _parameters(facts),
        Hazard(
            hazard="One person has several ids, or ids change",
            standing="not covered",
            answer="The unit of privacy is a user id. A person behind k ids loses up to k^2 times "
            "rho; a new id has a new budget.",
        ),
        _composition(facts),
        Hazard(
            hazard="Releases are repeated, or noise is drawn again",
            standing="met",
            answer="A slot is drawn, charged and published in one transaction, once. A repeated or "
            "killed run returns the stored release, and of two runs at once one wins.",
        ),
        Hazard(
            hazard="Sensitivity is larger than assumed",
            standing="met",
            answer=MECHANISMS[facts.mechanism].sensitivity,
        ),
        Hazard(
            hazard="Bounds, categories or parameters are read off the data",
            standing="met in part",
            answer="Bounds and allowances come from noisy figures that are charged. The lists of "
            "publishers and of other values, dates and questions are declared public: whoever read "
            "them off the events voids the promise.",
        ),
        Hazard(
            hazard="Floating-point noise gives exact values away",
            standing="met",
            answer="Noise is discrete Gaussian on whole numbers, from OpenDP's exact samplers; "
            "charges are whole millionths of a millionth of rho, rounded up.",
        ),
        Hazard(
            hazard="Randomness can be guessed",
            standing="met",
            answer="All noise comes from the operating system's cryptographic source, and the "
            "ledger refuses a release whose noise came from a seed.",
        ),
        Hazard(
            hazard="Exact figures are published beside the noisy ones",
            standing="met",
            answer="No figure about people leaves without noise. How many rows were read or set "
            "aside is for the operator alone.",
        ),
        Hazard(
            hazard="The time that a release takes tells about people",
            standing="met in part",
            answer="What one person can make a release cost is capped, and the service shows slots "
            "at declared moments. Who runs the program by hand should not publish when it ended.",
        ),
        _rollback(facts),
        _mistakes(facts),
        Hazard(
            hazard="Events, books and the ledger are looked at by others",
            standing="not covered",
            answer="The trust model is central: whoever operates this sees the events. Events, "
            "books, quarantine and ledger are as sensitive as each other, and need access control, "
            "encryption at rest and an end to their retention.",
        ),
        Hazard(
            hazard="Noise and bounds are not the same for all",
            standing="met in part",
            answer="Small publishers carry the same noise as large ones, so that their relative "
            "error is larger; what heavy users do beyond their bound is cut. Every figure has an "
            "interval, and reports mark what cannot be told from zero.",
        ),
    )


def not_covered(spec: CampaignSpec) -> tuple[str, ...]:
    """What the promise does not hold for, in sentences."""
    return (
        "One person behind several user ids: k ids lose up to k^2 times rho.",
        f"People who are measured again outside of scope {spec.campaign.scope}, or from another "
        "ledger: those budgets add up as well.",
        "What is declared public: the lists of publishers and other values, the dates, the "
        "questions, the budgets, the size of the noise.",
        "What is true of people in general, which is what the releases are there to show.",
        "Whoever can read the events, the books or the ledger.",
    )


def neighbours(adjacency: Adjacency) -> str:
    """What neighbouring data sets are, with the word that NIST has for it."""
    if adjacency is Adjacency.ADD_REMOVE:
        return "unbounded: all events of one user are added or removed"
    return "bounded: all events of one user are replaced by any others"


def _parameters(facts: _Facts) -> Hazard:
    promise = facts.promise
    return Hazard(
        hazard="The parameters are too weak to mean much",
        standing="met" if promise.epsilon <= 1 else "met in part",
        answer=f"(epsilon = {rounded_up(promise.epsilon)}, delta = {promise.delta:g}) for one user "
        f"over the whole campaign. {strength(promise)}",
    )


def _composition(facts: _Facts) -> Hazard:
    scope, limit = facts.spec.campaign.scope, rounded_up(facts.promise.scope_rho)
    return Hazard(
        hazard="Losses add up over slots and campaigns",
        standing="met in part",
        answer="The parameters hold for all slots together. All campaigns of scope "
        f"{scope} share a limit of rho = {limit}, which the ledger cannot pass; campaigns of other "
        "scopes are not added.",
    )


def _rollback(facts: _Facts) -> Hazard:
    witnessed = facts.spec.ledger.witness is not None
    return Hazard(
        hazard="An old backup of the ledger is put back, which would refund budget",
        standing="met" if witnessed else "met in part",
        answer="Release files and the mark beside them show it, and everything is refused. "
        + (
            "A witness in another place shows it even if those are lost."
            if witnessed
            else "No witness is configured: if folder and ledger are rolled back together, nobody "
            "notices."
        ),
    )


def _mistakes(facts: _Facts) -> Hazard:
    told = {
        None: "It was not run for this statement.",
        True: "All of its claims hold here.",
        False: "NOT ALL OF ITS CLAIMS HOLD HERE: see its results.",
    }[facts.audited]
    return Hazard(
        hazard="The implementation has mistakes",
        standing="met" if facts.audited else "met in part",
        answer="adsbpc audit recomputes from ledger, releases and books what was promised, in code "
        f"of its own. {told}",
    )
