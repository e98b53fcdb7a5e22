"""The mechanisms of the lab by name."""

from __future__ import annotations

from adsbpc.errors import no_such_choice
from adsbpc.lab.baselines import bounded, personal, strategies
from adsbpc.lab.baselines.ablation import WITHOUT
from adsbpc.lab.baselines.pipelinedp import PipelineDP
from adsbpc.lab.baselines.published import PublishedAdsBPC
from adsbpc.lab.baselines.stream import stream
from adsbpc.lab.evaluation import LabMechanism
from adsbpc.model.release_spec import AdsBPCSection, PersonalBudgetSection

# Personal budgets by name, with the weights of everything and of further levels, where sums have
# columns of their own.
PERSONAL: dict[str, tuple[int, int] | None] = {
    "personal-budget": None,
    "personal-budget-total": (1, 8),
    "personal-budget-views": (1, 3),
}


def personal_budgets(name: str, section: PersonalBudgetSection) -> LabMechanism:
    weights = PERSONAL[name]
    if weights is None:
        return personal.personal_budget(section)
    return personal.with_columns_for_sums(*weights, section)


MECHANISMS: dict[str, LabMechanism] = {
    "ipa": strategies.IPA,
    "bin": strategies.BINARY_TREE,
    "stream": stream,
    "umm": strategies.SQUARE_ROOT,
    "umm-optimal": strategies.OPTIMAL,
    "mmbpc": bounded.matrix_bounded,
    "adsbpc-published": PublishedAdsBPC(),
    "adsbpc": bounded.adsbpc(AdsBPCSection()),
    "adsbpc-svt": bounded.adsbpc(AdsBPCSection(bounds="svt")),
    "adsbpc-oracle": bounded.oracle,
    **{name: personal_budgets(name, PersonalBudgetSection()) for name in PERSONAL},
    "personal-budget-oracle": personal.oracle,
    **WITHOUT,
    "pipelinedp": PipelineDP(),
    "pipelinedp-guess": PipelineDP(limits="guess"),
    "pipelinedp-oracle": PipelineDP(limits="hindsight"),
}

# They are run if they are named: ablations, and what takes long and answers one query.
ONLY_IF_NAMED = (
    *WITHOUT, "personal-budget-views", "pipelinedp", "pipelinedp-guess", "pipelinedp-oracle",
)  # fmt: skip

# What each one needs or is, for tables and the page.
REMARKS = {
    "adsbpc-published": "as the paper's listings have it: spends more than it says",
    "adsbpc-oracle": "not private: its bound is read from the data",
    "personal-budget-oracle": "not private: its allowance is read from the data",
    "personal-budget-total": "with columns for sums: weight 1 for everything, 8 for further levels",
    "personal-budget-views": "with columns for sums: weight 1 for everything, 3 for further levels",
    "personal-budget-without-renewals": "the past is not measured again; publishers are alike",
    "personal-budget-without-sizes": "all publishers are measured alike",
    "personal-budget-without-cut": "what was cut is not added back",
    "personal-budget-without-pace": "everybody is let in whole until the budget is gone",
    "personal-budget-without-forecasts": "everybody's need is taken to grow as the slots do",
    "pipelinedp": "the library PipelineDP, released once at the end, limits by a noisy histogram",
    "pipelinedp-guess": "the same with limits for a heavy user of 30 conversions",
    "pipelinedp-oracle": "the same, not private: its limits are read from the data",
}


def mechanism_named(name: str) -> LabMechanism:
    if name not in MECHANISMS:
        raise no_such_choice(f"mechanism {name!r}", name, MECHANISMS)
    return MECHANISMS[name]
