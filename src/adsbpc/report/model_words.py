"""What the report says in words of attribution models, and of the noise of a fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adsbpc.model.attribution_spec import AttributionSection
from adsbpc.model.durations import duration_text

if TYPE_CHECKING:
    from adsbpc.report.report import Report

# Where the name in a campaign file is not what people call the model.
_MODEL_NAMES = {
    "shapley": "Shapley",
    "shapley_path": "Shapley, path form",
    "shapley_ordered": "Shapley in order",
    "probabilistic": "probabilistic (Shao and Li)",
    "markov": "Markov removal",
}

# From here on a fit misleads those who read intervals alone.
LARGE_FIT_NOISE = 0.1


def model_name(model: str) -> str:
    return _MODEL_NAMES.get(model, model.replace("_", " "))


def attribution(model: AttributionSection) -> str:
    """Which touches of a journey get the credit."""
    return (
        f"{model_name(model.model)}, clicks up to {duration_text(model.click_lookback)}, "
        f"views up to {duration_text(model.view_lookback)} before"
    )


def models_by_slot(report: Report) -> str:
    """Which model attributed which slots, where one of them is fitted."""
    models, section = report.models, report.spec.attribution
    if models is None or section.fit is None:
        return ""
    word, model, last = report.timeline.word, model_name(section.model), section.fit.slots
    if last is None:
        return f"Every {word} is attributed with {model}."
    newest, before = report.newest.slot, model_name(section.fit.fallback)
    if newest < last:
        return (
            f"Attributed with {before}. From {word} {last + 1} on it will be {model}, whose "
            f"parameters {word} {last} will release."
        )
    done = "" if newest > last else "will be "
    both = " Totals add up both." if newest > last else ""
    return (
        f"{_first_slots(report, last).capitalize()} {'was' if last == 1 else 'were'} attributed "
        f"with {before}, and later ones {done}with {model}, whose parameters {word} {last} "
        f"released.{both}"
    )


def fit_noise(report: Report) -> str:
    """The same of the fit that a report's figures rest on."""
    known = None if report.models is None else report.models.relative_noise
    return "" if known is None else noise_of_fit(known)


def noise_of_fit(relative: float) -> str:
    """How far a fit is off by its own noise, which no interval has."""
    size = f"about {100 * relative:.0f}%" if relative >= 0.01 else "less than 1%"
    if relative >= 1:
        size = "as much as it is, or more"
    if relative <= LARGE_FIT_NOISE:
        return (
            f"Noise of the fit moves what a publisher gets by {size}, which intervals do not "
            "include."
        )
    return (
        f"WARNING: noise of the fit moves what a publisher gets by {size}, and no interval "
        "includes it: compare publishers with care. A later campaign needs a larger rho of the "
        "fit, more people before it, or fewer publishers."
    )


def comparison_cost(report: Report, slot: int) -> str:
    """Why one look at people shows several models, and only one of them every slot."""
    word, rhythm = report.timeline.word, report.timeline.rhythm
    long_journeys = ""
    if report.spec.attribution.model == "markov":
        long_journeys = " Journeys of many stages count for less in them."
    return (
        f"All of these come from the one set of noisy counts that {word} {slot} released, about "
        f"people's first conversions in {_first_slots(report, slot)}, so comparing them costs "
        f"nothing more.{long_journeys} From {word} {slot + 1} on the {rhythm} figures above use "
        f"{model_name(report.spec.attribution.model)} only; figures of another model every {word} "
        "would be a campaign of its own, with its own budget."
    )


def _first_slots(report: Report, last: int) -> str:
    word = report.timeline.word
    return f"{word} 1" if last == 1 else f"{word}s 1 to {last}"
