"""The program adsbpc, run from a scheduler: what it released, or why it did not.

A release is safe to repeat: whatever was committed before a task died is returned as it was, and
charged once. So every failure but bad usage may be retried.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_BAD_USAGE = 2


class ProgramError(Exception):
    """It was refused, or stopped: trying again is safe, and may help."""


class UsageError(ProgramError):
    """The campaign file or an option is wrong: trying again will not help."""


@dataclass(frozen=True)
class Program:
    """`command` is how the program is started, such as the path of another environment's."""

    command: Sequence[str] = ("adsbpc",)

    def release(self, campaign: str, through: str | None = None) -> list[dict[str, Any]]:
        """Release what is due, or everything up to a date; one object for each slot, those that
        were released before among them."""
        until = [] if through is None else ["--through", through]
        text = self.run("release", campaign, *until, "--json")
        return [json.loads(line) for line in text.splitlines()]

    def status(self, campaign: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("status", campaign, "--json"))
        return found

    def report(self, campaign: str, out: str) -> None:
        """Write the report; the ending of the file says in which format."""
        self.run("report", campaign, "--out", out)

    def run(self, *arguments: str) -> str:
        """What the program prints, or an error with what it says."""
        command = [*self.command, *arguments]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise UsageError(
                f"{command[0]}: cannot be started ({error.strerror}). Install adsbpc, or name the "
                "program of the environment that has it"
            ) from None
        if done.returncode == 0:
            return done.stdout
        kind = UsageError if done.returncode == _BAD_USAGE else ProgramError
        raise kind(_reason(done.stderr) or f"{' '.join(command)} ended with {done.returncode}")


def _reason(notes: str) -> str:
    """The message of the error alone. Notes before it are for the operator's eyes and have counts
    without noise, which must not come into the logs of a scheduler."""
    _, sign, message = f"\n{notes}".rpartition("\nadsbpc: ")
    return message.strip() if sign else ""


def summary_of(slots: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What a scheduler keeps of a run: which slots are new, and what was charged for them."""
    new = [each for each in slots if not each["replayed"]]
    return {
        "released": [each["slot"] for each in new],
        "released_before": len(slots) - len(new),
        "charged_rho": sum(charge["rho"] for each in new for charge in each["charges"]),
    }
