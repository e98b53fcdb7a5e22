"""Who asks, and who may do what: the one table.

Must never: allow what the table does not name. Nobody reads events or secret state: no action is.
The key of a trial is read by who shows its ads, and by no reader of figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    OPERATOR = "operator"
    PUBLISHER = "publisher"
    ADVERTISER = "advertiser"
    READER = "reader"


@dataclass(frozen=True)
class Principal:
    """`subject` is a publisher's or advertiser's id. Operators have none; a reader without one
    reads every campaign."""

    key_id: str
    role: Role
    subject: str

    @property
    def owner(self) -> str:
        """Whose batches these are, whichever of its keys sent them."""
        return f"{self.role}:{self.subject}"


class Action(StrEnum):
    PUSH_IMPRESSIONS = "push impressions"
    PUSH_CONVERSIONS = "push conversions"
    READ_DELIVERIES = "read own deliveries"
    PUSH_SPEND = "push spend"
    ASSIGN_ARMS = "assign arms"
    LIST_CAMPAIGNS = "list campaigns"
    CREATE_CAMPAIGN = "create campaign"
    PLAN = "plan"
    READ_CAMPAIGN = "read campaign"
    READ_RELEASES = "read releases"
    RELEASE = "release"
    WITHDRAW = "withdraw campaign"
    PAUSE = "pause or resume campaign"
    CLOSE = "close campaign"
    VERIFY = "verify"
    MANAGE_KEYS = "manage keys"
    OPERATE = "operate"
    WHO_AM_I = "who am I"


_READING = frozenset({Action.LIST_CAMPAIGNS, Action.READ_CAMPAIGN, Action.READ_RELEASES})
_SENDING = frozenset({Action.READ_DELIVERIES, Action.WHO_AM_I})
_RUNNING = frozenset(
    {
        Action.CREATE_CAMPAIGN, Action.PLAN, Action.PUSH_SPEND, Action.ASSIGN_ARMS, Action.RELEASE,
        Action.VERIFY, Action.WITHDRAW, Action.PAUSE, Action.CLOSE,
    }
)  # fmt: skip
ALLOWED: dict[Role, frozenset[Action]] = {
    # The one who runs the service has no events of its own.
    Role.OPERATOR: _READING | _RUNNING | {Action.MANAGE_KEYS, Action.OPERATE, Action.WHO_AM_I},
    Role.PUBLISHER: _SENDING | {Action.PUSH_IMPRESSIONS},
    Role.ADVERTISER: (
        _READING | _SENDING | {Action.PUSH_CONVERSIONS, Action.PUSH_SPEND, Action.ASSIGN_ARMS}
    ),
    Role.READER: _READING | {Action.WHO_AM_I},
}

# Each is about one campaign: who speaks for one advertiser may do it to that one's only.
_TO_ONE_CAMPAIGN = frozenset(
    {Action.READ_CAMPAIGN, Action.READ_RELEASES, Action.PUSH_SPEND, Action.ASSIGN_ARMS}
)


def allows(principal: Principal, action: Action, advertiser: str | None = None) -> bool:
    """Whether this may be done, to what belongs to this advertiser.

    Advertisers and readers of one advertiser may read no campaign whose advertiser is not given.
    Listing needs none, and every campaign of the list is asked about by READ_CAMPAIGN.
    """
    if action not in ALLOWED[principal.role]:
        return False
    if not _speaks_for_one_advertiser(principal):
        return True
    if advertiser is None:
        return action not in _TO_ONE_CAMPAIGN
    return advertiser == principal.subject


def _speaks_for_one_advertiser(principal: Principal) -> bool:
    return principal.role is Role.ADVERTISER or (
        principal.role is Role.READER and principal.subject != ""
    )
