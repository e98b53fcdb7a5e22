"""From a campaign file to the measures of a campaign that is new."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from adsbpc.campaign.promise import as_started
from adsbpc.campaign.release_folder import FOLDER, folder_name, home_of, release_texts
from adsbpc.errors import LedgerError, SpecError
from adsbpc.ledger import Ledger, Opening
from adsbpc.mechanisms import (
    Measures,
    guarantee_of,
    plan_measures,
    privacy_of,
    scope_limit_of,
)
from adsbpc.model import CampaignSpec, Release
from adsbpc.model.periods import named_for, parts_of
from adsbpc.model.plan import StoredPlan
from adsbpc.model.rules import cause_of
from adsbpc.model.slots import to_moment
from adsbpc.model.toml import place
from adsbpc.privacy.strategies import MOST_SLOTS
from adsbpc.storage import Place, folder_at


def plan_anew(spec: CampaignSpec) -> Measures:
    check_period(spec)
    return plan_measures(spec, previous=_previous(spec))


def check_period(spec: CampaignSpec) -> None:
    """Refuse a new campaign that reaches out of the period whose budget it would spend: what is
    released of the next one would cost people more than that one promises."""
    _, period = parts_of(spec.campaign.scope)
    if period is None:
        return
    zone, grid = ZoneInfo(spec.campaign.timezone), spec.grid
    first, last = (
        to_moment(at).astimezone(zone).date() for at in (grid.starts_at, grid.ends_at - 1)
    )
    if not period.first <= first <= last <= period.last:
        raise SpecError(
            f"is for {period.first} to {period.last}, and the campaign lasts from {first} to "
            f"{last}",
            place("campaign", "scope"),
            repr(spec.campaign.scope),
            "Change its days, or take a scope without a period",
        )


def with_room(spec: CampaignSpec, ledger: Ledger) -> CampaignSpec:
    """The campaign as it has started; or as it is, unless its scope would not let it in."""
    guarantee, limit = guarantee_of(spec), scope_limit_of(spec)
    record = ledger.started(guarantee, spec.campaign.name, limit)
    if record is not None:
        return as_started(spec, record.promise)
    check_period(spec)
    ledger.check_room(Opening(guarantee, spec.campaign.name, {}, StoredPlan(()), limit))
    return spec


def _previous(spec: CampaignSpec) -> tuple[Release, ...]:
    """The releases of the campaign that the file says to start from, or of the period before."""
    if privacy_of(spec).mechanism != "personal-budget":
        return ()
    name = privacy_of(spec).personal_budget.previous
    if name is None:
        return _period_before(spec)
    named = f"[privacy.personal_budget] previous = {name!r}"
    folder = folder_at(name, spec.directory, "[privacy.personal_budget] previous")
    found = _releases_in(folder, named)
    if len({(release.scope, release.campaign) for release in found}) > 1:
        raise SpecError(f"{named}: has releases of several campaigns. Name the folder of one")
    if not found:
        raise SpecError(
            f"{named}: has no releases. Name the folder of an earlier campaign below {FOLDER}"
        )
    return found


def _period_before(spec: CampaignSpec) -> tuple[Release, ...]:
    """None where budgets do not renew, in the first period, and where nothing was looked at. Nor of
    long periods: their plans start from what their own looks show."""
    name, period = parts_of(spec.campaign.name)
    if spec.campaign.renewal is None or period is None or spec.campaign.slots > MOST_SLOTS:
        return ()
    scope, _ = parts_of(spec.campaign.scope)
    earlier = [folder_name(named_for(each, period.before)) for each in (scope, name)]
    folder = home_of(spec) / FOLDER / earlier[0] / earlier[1]
    found = _releases_in(folder, str(folder))
    firsts = [release.measures[0] for release in found]
    looked = any(each.mechanism == "personal-budget" and each.histogram for each in firsts)
    return found if looked else ()


def _releases_in(folder: Place, named: str) -> tuple[Release, ...]:
    try:
        return tuple(Release.from_text(text) for text in release_texts(folder).values())
    except (LedgerError, ValueError) as error:
        raise SpecError(
            f"{named}: holds a release that cannot be read ({cause_of(error)}). Name a folder "
            f"below {FOLDER}, or restore it from a backup"
        ) from None
