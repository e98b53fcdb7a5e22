"""From a campaign file to the measures of a campaign that is new."""

from __future__ import annotations

from adsbpc.campaign.promise import as_started
from adsbpc.errors import SpecError
from adsbpc.ledger import Ledger, Opening
from adsbpc.mechanisms import (
    Measures,
    guarantee_of,
    plan_measures,
    privacy_of,
    scope_limit_of,
)
from adsbpc.model import CampaignSpec, Release
from adsbpc.model.plan import StoredPlan
from adsbpc.model.rules import cause_of
from adsbpc.storage import Place, contents_of, folder_at


def plan_anew(spec: CampaignSpec) -> Measures:
    return plan_measures(spec, previous=_previous(spec))


def with_room(spec: CampaignSpec, ledger: Ledger) -> CampaignSpec:
    """The campaign as it has started; or as it is, unless its scope would not let it in."""
    guarantee, limit = guarantee_of(spec), scope_limit_of(spec)
    record = ledger.started(guarantee, spec.campaign.name, limit)
    if record is not None:
        return as_started(spec, record.promise)
    ledger.check_room(Opening(guarantee, spec.campaign.name, {}, StoredPlan(()), limit))
    return spec


def _previous(spec: CampaignSpec) -> tuple[Release, ...]:
    """The releases of the campaign that the file says to start from."""
    name = privacy_of(spec).personal_budget.previous
    if name is None or privacy_of(spec).mechanism != "personal-budget":
        return ()
    folder = folder_at(name, spec.directory, "[privacy.personal_budget] previous")
    try:
        files: list[Place] = sorted(folder.glob("*.json"), key=str)
        texts = [content.decode() for content in contents_of(files)]
        found = tuple(Release.from_text(text) for text in texts)
    except (OSError, ValueError) as error:
        raise SpecError(
            f"[privacy.personal_budget] previous = {name!r}: holds a release that cannot be read "
            f"({cause_of(error)}). Name a folder below adsbpc-releases"
        ) from None
    if len({(release.scope, release.campaign) for release in found}) > 1:
        raise SpecError(
            f"[privacy.personal_budget] previous = {name!r}: has releases of several campaigns. "
            "Name the folder of one"
        )
    if not found:
        raise SpecError(
            f"[privacy.personal_budget] previous = {name!r}: has no releases. Name the folder of "
            "an earlier campaign below adsbpc-releases"
        )
    return found
