"""The pages of the documentation, and the blocks of code in them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_BLOCK = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Pages that are run from the top to the bottom; of the others, commands are parsed.
RUN = (
    "docs/concepts/rho.md",
    "docs/doctor.md",
    "docs/five-minutes.md",
    "docs/how-to.md",
    "docs/statement.md",
    "docs/tutorials/first-campaign.md",
    "docs/tutorials/lift.md",
    "docs/tutorials/reading-a-report.md",
    "docs/tutorials/revenue.md",
    "docs/tutorials/service.md",
    "docs/tutorials/spark.md",
)


@dataclass(frozen=True)
class Block:
    """One block, by the page that it stands on and its number there."""

    page: str
    number: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}-{self.number}"

    @property
    def file_name(self) -> str | None:
        """Where readers are asked to save it: its first line is a comment with the name."""
        found = re.match(r"# (\S+\.toml)\n", self.text)
        return found[1] if found else None

    def commands(self) -> list[str]:
        """What is typed after a prompt, each with its continued lines."""
        whole = self.text.replace("\\\n", " ")
        lines = [line for line in whole.splitlines() if line.startswith("$ ")]
        return [" ".join(line.removeprefix("$ ").split()) for line in lines]


def pages() -> list[str]:
    """All but the README, whose commands have a test of their own."""
    own = (ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md")
    found = [file for file in (*DOCS.rglob("*.md"), *own) if file.exists()]
    return sorted(str(file.relative_to(ROOT)) for file in found)


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = _BLOCK.findall(text)
    assert text.count("\n```") == 2 * len(found), f"{page}: a block does not end"
    return [Block(page, number, *each) for number, each in enumerate(found, start=1)]


def all_blocks(*languages: str) -> list[Block]:
    return [each for page in pages() for each in blocks(page) if each.language in languages]


def arguments(command: str) -> list[str]:
    """What a shell would hand over, without a comment at the end."""
    return shlex.split(command, comments=True)
