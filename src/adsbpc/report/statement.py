"""A statement: what was promised about people and what was spent of it, for auditors.

Must never: hold a figure before noise. Of the audit it has which claims hold, and none of their
exact figures, so that a statement may be published.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from adsbpc.model.formats import format_of
from adsbpc.report.formats import write_whole
from adsbpc.report.hazards import Hazard

STATEMENT_FORMAT: Final = 1
FORMATS: Final = ("html", "json", "md")

PicoRho = Annotated[int, Field(ge=0, description="In whole millionths of a millionth of rho.")]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Software(_Part):
    """What made the releases, as far as the machine that wrote the statement knows."""

    name: Literal["adsbpc"] = "adsbpc"
    version: str
    code_sha256: Annotated[
        str, Field(description="Of all files of the package: docs/statement.md says how.")
    ]
    python: str
    libraries: Annotated[dict[str, str], Field(description="Versions of what draws and computes.")]


class StatedPromise(_Part):
    """The guarantee, in the words of NIST SP 800-226. `scope_rho` and `scope_epsilon` are the limit
    that all campaigns of the scope share."""

    definition: Literal["zero-concentrated differential privacy (zCDP)"] = (
        "zero-concentrated differential privacy (zCDP)"
    )
    unit_of_privacy: Literal["user"] = "user"
    adjacency: Literal["add-remove", "substitute"]
    neighbours: Annotated[str, Field(description="What the adjacency means, with NIST's word.")]
    rho: float
    epsilon: Annotated[float, Field(description="Of the whole campaign, at delta.")]
    delta: float
    scope_rho: float
    scope_epsilon: float
    trust_model: Literal["central"] = "central"


class StatedBudget(_Part):
    limit_pico_rho: PicoRho
    spent_pico_rho: PicoRho
    spent_epsilon: Annotated[float, Field(description="Of what was spent so far, at delta.")]


class StatedMeasure(_Part):
    """What is counted, and the bound on what one user adds to it. `limit` is what was in force with
    the newest release: conversions of a user over the campaign for personal budgets, of a user and
    slot for adsbpc; None before the first release."""

    name: str
    metric: str
    by: tuple[str, ...]
    cells: int
    value_cap: float | None
    rho: Annotated[float, Field(description="Planned for it: its part of the campaign's rho.")]
    limit: float | None
    noise_scale: Annotated[
        float | None, Field(description="Of the discrete Gaussian noise of the newest release.")
    ]


class StatedCharge(_Part):
    part: str
    pico_rho: PicoRho


class StatedRelease(_Part):
    """`sha256` is of the release file, byte for byte; `ledger_position` and `ledger_hash` are of
    the newest entry before its own, and missing from releases of early versions."""

    slot: int
    starts_at: str
    ends_at: str
    charges: tuple[StatedCharge, ...]
    sha256: str
    ledger_position: int | None
    ledger_hash: str | None


class StatedClaim(_Part):
    name: str
    held: bool


class StatedAudit(_Part):
    """Which claims of `adsbpc audit` hold. Their figures are exact, and are no part of this."""

    held: bool
    claims: tuple[StatedClaim, ...]


class RegistryEntry(_Part):
    """An entry for a public registry of deployments of differential privacy. Every field stands for
    itself, so that entries of different tools can be put side by side."""

    deployment: Annotated[str, Field(description="Name of the campaign.")]
    on_behalf_of: Annotated[str, Field(description="The advertiser, as events name it.")]
    data_product: Annotated[str, Field(description="What is published, in a sentence.")]
    data_subjects: Literal["people who see or click ads, or convert"] = (
        "people who see or click ads, or convert"
    )
    release_interval: Literal["1h", "1d", "1w", "1mo"]
    first_day: str
    last_moment: Annotated[str, Field(description="When the last slot ends.")]
    privacy_definition: Literal["zCDP"] = "zCDP"
    unit_of_privacy: Literal["user"] = "user"
    neighbouring_relation: Literal["add-remove", "substitute"]
    rho: float
    epsilon: float
    delta: float
    composition: Annotated[str, Field(description="Over what the parameters hold.")]
    trust_model: Literal["central"] = "central"
    mechanism: str
    noise: Literal["discrete Gaussian"] = "discrete Gaussian"
    randomness: Literal["operating system, through OpenDP"] = "operating system, through OpenDP"
    accuracy_published: Annotated[bool, Field(description="Whether intervals are.")] = True
    software: str
    software_version: str
    software_sha256: str


class CampaignStatement(_Part):
    """One campaign. `closed` ones release nothing more; `audit` is None if it was not run."""

    name: str
    advertiser: str
    first_day: str
    slot: str
    slots: int
    timezone: str
    closed: bool
    mechanism: str
    promise: StatedPromise
    budget: StatedBudget
    measures: tuple[StatedMeasure, ...]
    split: Annotated[dict[str, float], Field(description="Planned rho by part of the mechanism.")]
    releases: tuple[StatedRelease, ...]
    audit: StatedAudit | None
    not_covered: tuple[str, ...]
    hazards: tuple[Hazard, ...]
    registry: RegistryEntry


class StatedLedger(_Part):
    """The newest entry that everything shown here hangs on: where somebody has noted it, nothing
    before it can be changed unseen."""

    position: int
    hash: str


class Statement(_Part):
    """What an auditor reads of a scope: one campaign of it or several. `ledger` is None before
    anything is released."""

    format: int = STATEMENT_FORMAT
    made_at: str
    software: Software
    scope: str
    scope_limit_pico_rho: PicoRho
    scope_spent_pico_rho: PicoRho
    ledger: StatedLedger | None
    campaigns: Annotated[tuple[CampaignStatement, ...], Field(min_length=1)]

    @property
    def title(self) -> str:
        names = [each.name for each in self.campaigns]
        return names[0] if len(names) == 1 else f"Scope {self.scope}"

    @classmethod
    def from_text(cls, text: str) -> Statement:
        found = cls.model_validate_json(text)
        format_of({"format": found.format}, STATEMENT_FORMAT)
        return found

    def to_json(self) -> str:
        return self.model_dump_json(indent=2) + "\n"

    def to_html(self) -> str:
        from adsbpc.report.statement_page import page_of_statement

        return page_of_statement(self)

    def to_markdown(self) -> str:
        from adsbpc.report.statement_text import markdown_of

        return markdown_of(self)

    def to_text(self, written_as: str) -> str:
        """In one of FORMATS."""
        makers = {"html": self.to_html, "json": self.to_json, "md": self.to_markdown}
        return makers[written_as]()

    def write(self, path: Path, written_as: str) -> None:
        write_whole(path, self.to_text(written_as).encode())


def schema() -> dict[str, Any]:
    """The JSON Schema of a statement and of the registry entry in it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Statement.model_json_schema(mode="serialization"),
    }
