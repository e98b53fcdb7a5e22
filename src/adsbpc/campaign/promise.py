"""What a campaign file promises: the keys that may not change once the campaign has started."""

from __future__ import annotations

from fractions import Fraction
from hashlib import sha256
from typing import Any

from pydantic import BaseModel, ValidationError

from adsbpc.errors import LedgerError, WorkloadError
from adsbpc.mechanisms import guarantee_of, privacy_of
from adsbpc.model import CampaignSpec
from adsbpc.model.attribution_spec import AttributionSection
from adsbpc.model.measure_spec import DimensionSection, MeasureSection
from adsbpc.model.release_spec import (
    PrivacySection,
    WorkloadSection,
    kept_privacy,
    stored_privacy,
)
from adsbpc.model.rules import cause_of
from adsbpc.model.spec import CampaignSection

_SECTIONS: dict[str, type[BaseModel]] = {
    "campaign": CampaignSection,
    "attribution": AttributionSection,
    "privacy": PrivacySection,
    "workload": WorkloadSection,
}
# Of which a file may have several, by name.
_NAMED_SECTIONS: dict[str, type[BaseModel]] = {
    "measures": MeasureSection,
    "dimensions": DimensionSection,
}


# Where people find what is compared exactly.
_KEYS = {
    "[exact] rho": "[privacy] rho",
    "[exact] user_id of impressions": "[events.impression_columns] user_id",
    "[exact] user_id of conversions": "[events.conversion_columns] user_id",
    "[exact] queries of the matrix": "the file of [[workload]] matrix",
    "[lift] arms": "[lift] arms, each with where its range of hashes ends",
    "[lift] mark": "the content of [lift] key_file or table, by a fingerprint",
}


def promise_of(spec: CampaignSpec) -> dict[str, Any]:
    """Whom it protects, how much, and what the released figures mean.

    Where events are read from, with which engine, and which further queries are answered may
    change: that is left out. Which column holds the user is the unit of protection, so it is in.
    """
    sections = {
        "campaign": spec.campaign,
        "attribution": spec.attribution,
        "workload": spec.workload[0],
    }
    promise = {
        name: section.model_dump(mode="json", exclude_unset=True)
        for name, section in sections.items()
    }
    if spec.measure:
        # What a later version might choose otherwise is stated: weights, wherever they come from.
        promise["measures"] = {
            each.name: {
                **each.model_dump(mode="json", exclude={"importance"}),
                "weights": list(measure.layout.weights),
            }
            for each, measure in zip(spec.measure, spec.measures, strict=True)
        }
        promise["dimensions"] = {
            name: section.model_dump(mode="json") for name, section in spec.dimensions.items()
        }
    if spec.lift is not None:
        # How far a campaign is, is asked often, and needs nothing of events.
        from adsbpc.events import arms_mark

        promise["lift"] = {**spec.lift.promised(), "mark": arms_mark(spec)}
    if spec.events.settle is not None:
        promise["events"] = spec.events.model_dump(mode="json", include={"settle", "wait"})
    promise["privacy"] = stored_privacy(privacy_of(spec))
    promise["privacy"].pop("scope_rho", None)
    if spec.attribution.fit is not None and spec.attribution.fit.slots is None:
        # The ledger keeps the parameters themselves, wherever they were read from.
        promise["attribution"]["fit"] = {"parameters": "declared public"}
    promise["exact"] = {
        "rho": str(guarantee_of(spec).rho),
        "user_id of impressions": spec.events.impression_columns.user_id,
        "user_id of conversions": spec.events.conversion_columns.user_id,
        "queries of the matrix": _matrix(spec),
    }
    return promise


def as_started(spec: CampaignSpec, started: dict[str, Any]) -> CampaignSpec:
    """The campaign file of a campaign that has started, with what it started with where the file
    leaves that to this version. Refuses a file that promises something else."""
    campaign = spec.campaign.name
    try:
        started = {**started, "privacy": kept_privacy(started["privacy"])}
        before = _flat(started)
        spec = _with_choices(spec, started)
    except (ValidationError, AttributeError, KeyError, TypeError) as error:
        raise LedgerError(
            f"campaign {campaign!r}: what it promised cannot be read ({cause_of(error)}). If a "
            "newer adsbpc started it, upgrade; otherwise run adsbpc status --verify"
        ) from None
    after = _flat(promise_of(spec))
    changed = [key for key in sorted(before | after) if before.get(key) != after.get(key)]
    if not changed:
        return spec
    lines = "\n".join(
        f"  {_KEYS.get(key, key)}: was {_shown(before.get(key), key)}, is now"
        f" {_shown(after.get(key), key)}"
        for key in changed
        # Said exactly below.
        if key != "[privacy] rho"
    )
    raise LedgerError(
        f"campaign {campaign!r} has started, and its file promises something else now\n{lines}\n"
        "Put the file back as it was. To go on with something else, such as other publishers: "
        "adsbpc close ends this campaign and returns to the scope what it has not spent; the new "
        "one needs another name and starts after the last slot (docs/campaign.md, A change of plan)"
    )


def _with_choices(spec: CampaignSpec, started: dict[str, Any]) -> CampaignSpec:
    privacy = privacy_of(spec)
    personal, choices = privacy.personal_budget, dict[str, Any]()
    left_out = {"heavy_user", "histogram_share"} - personal.model_fields_set
    if left_out:
        own = started["privacy"]["personal_budget"]
        update = {key: own[key] for key in left_out}
        choices["personal_budget"] = personal.model_copy(update=update)
    if "mechanism" not in privacy.model_fields_set:
        choices["mechanism"] = started["privacy"]["mechanism"]
    measures = [
        each.model_copy(update={"weights": tuple(started["measures"][each.name]["weights"])})
        if each.weights is None and each.name in started.get("measures", {})
        else each
        for each in spec.measure
    ]
    own = {"privacy": privacy.model_copy(update=choices), "measure": tuple(measures)}
    found = spec.model_copy(update=own)
    # A copy has what was computed of other weights.
    found.__dict__.pop("measures", None)
    return found


def _shown(value: Any, key: str) -> str:
    return f"{float(Fraction(value)):g}" if key == "[exact] rho" and value else repr(value)


def _flat(promise: dict[str, Any]) -> dict[str, Any]:
    """One entry per key, with defaults filled in: leaving out a default changes nothing."""
    found: dict[str, Any] = {}
    for name, content in promise.items():
        whole = content
        if name in _SECTIONS:
            whole = _SECTIONS[name].model_validate(content).model_dump(mode="json")
        elif name in _NAMED_SECTIONS:
            section = _NAMED_SECTIONS[name]
            whole = {
                key: section.model_validate(each).model_dump(mode="json")
                for key, each in content.items()
            }
        if name == "privacy" and whole["epsilon"] is None:
            # Only a way to state rho, which is compared itself.
            whole.pop("delta")
        if name == "attribution":
            whole["order"] = AttributionSection.model_validate(content).order_of_fit
        found |= {f"[{name}] {key}": value for key, value in whole.items()}
    return found


def _matrix(spec: CampaignSpec) -> str | None:
    name = spec.workload[0].matrix
    if name is None:
        return None
    try:
        return sha256((spec.directory / name).read_bytes()).hexdigest()
    except OSError as error:
        raise WorkloadError(f"{name}: cannot be read ({error}). Check the path") from None
