"""From a campaign file to its mechanism: anew, or with what the ledger keeps of the plan."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from adsbpc.errors import SpecError
from adsbpc.ledger import StoredPlan
from adsbpc.mechanisms import Mechanism, PersonalBudget, plan_mechanism, privacy_of
from adsbpc.model import PICO_RHO, CampaignSpec, Release
from adsbpc.privacy import Strategy


def plan_anew(spec: CampaignSpec) -> Mechanism:
    return plan_mechanism(spec, previous=_previous(spec))


def plan_again(spec: CampaignSpec, stored: StoredPlan) -> Mechanism:
    """The plan of a campaign that has started."""
    slot_rho = tuple(Fraction(part, PICO_RHO) for part in stored.slot_pico_rho)
    strategy = Strategy(stored.strategy) if stored.strategy else None
    mechanism = plan_mechanism(spec, slot_rho, strategy)
    if isinstance(mechanism, PersonalBudget) and stored.start is not None:
        return replace(mechanism, allowance=stored.start)
    return mechanism


def stored_plan(mechanism: Mechanism) -> StoredPlan:
    slot_pico_rho = tuple(int(rho * PICO_RHO) for rho in mechanism.slot_rho)
    if isinstance(mechanism, PersonalBudget):
        start = mechanism.allowance if mechanism.forecast is not None else None
        return StoredPlan(slot_pico_rho, mechanism.strategy.rows, start)
    return StoredPlan(slot_pico_rho)


def _previous(spec: CampaignSpec) -> tuple[Release, ...]:
    """The releases of the campaign that the file says to start from."""
    name = privacy_of(spec).personal_budget.previous
    if name is None or privacy_of(spec).mechanism != "personal-budget":
        return ()
    folder = spec.directory / name
    try:
        texts = [file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.json"))]
        found = tuple(Release.from_text(text) for text in texts)
    except (OSError, ValueError) as error:
        raise SpecError(
            f"[privacy.personal_budget] previous = {name!r}: holds a release that cannot be read "
            f"({error}). Name a folder below adsbpc-releases"
        ) from None
    if not found:
        raise SpecError(
            f"[privacy.personal_budget] previous = {name!r}: has no releases. Name the folder of "
            "an earlier campaign below adsbpc-releases"
        )
    return found
