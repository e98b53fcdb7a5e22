"""What a campaign file promises, and what its fit costs of that: exact, and before any plan."""

from __future__ import annotations

from fractions import Fraction

from adsbpc.errors import PrivacyError
from adsbpc.model.guarantee import Guarantee, Promise
from adsbpc.model.release_spec import PrivacySection
from adsbpc.model.spec import CampaignSpec
from adsbpc.privacy import epsilon_of, exact_rho, rho_of


def guarantee_of(spec: CampaignSpec) -> Guarantee:
    """What the campaign promises."""
    privacy = privacy_of(spec)
    if privacy.rho is not None:
        rho = exact_rho(privacy.rho)
    else:
        assert privacy.epsilon is not None
        rho = rho_of(privacy.epsilon, privacy.delta)
    return Guarantee(rho, privacy.adjacency, spec.campaign.scope)


def fit_rho(spec: CampaignSpec) -> Fraction:
    """What a fit of the attribution model costs; 0 if the campaign makes none."""
    fit = spec.attribution.fit
    return Fraction(0) if fit is None or fit.rho is None else exact_rho(fit.rho)


def scope_limit_of(spec: CampaignSpec) -> Fraction | None:
    """The limit that the file states for the scope; None if it leaves that to the campaign."""
    limit = privacy_of(spec).scope_rho
    return None if limit is None else exact_rho(limit)


def promise_with(spec: CampaignSpec, limit: Fraction) -> Promise:
    """The guarantee in every form, for a scope of this limit."""
    guarantee, delta = guarantee_of(spec), privacy_of(spec).delta
    return Promise(
        guarantee, epsilon_of(guarantee.rho, delta), delta, limit, epsilon_of(limit, delta)
    )


def privacy_of(spec: CampaignSpec) -> PrivacySection:
    if spec.privacy is None:
        raise PrivacyError(
            "the campaign file has no [privacy] section. Add one, for example with rho = 1.0"
        )
    return spec.privacy
