"""Every exception that adsbpc raises on purpose.

AdsbpcError
├── InputError       what somebody wrote is wrong                   (exit code 2)
│   ├── SpecError        in the campaign file, settings, options
│   ├── PrivacyError     a privacy parameter or a budget
│   └── WorkloadError    a workload or an objective that makes no sense
├── SourceError      an events file, table or schema cannot be used (exit code 1)
├── EngineError      the engine failed while running a named step   (exit code 1)
├── ContributionError  contributions break the interface's rules    (exit code 1)
├── LedgerError      the ledger refuses, or cannot be used           (exit code 1)
│   ├── BudgetError  a charge would pass what was promised          (exit code 1)
│   └── TermsError   a campaign does not fit what the ledger has     (exit code 1)
├── ReleaseError     a slot cannot be released now                  (exit code 1)
└── ServiceError     the service's settings, database or files       (exit code 1)

A message gives the name, the value, the rule and the next step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


class AdsbpcError(Exception):
    """Root of the tree; `exit_code` is what the command line returns."""

    exit_code = 1


@dataclass(frozen=True)
class SpecProblem:
    """A rule that is broken, by the value of a key or by something else that has a path, and the
    next step: each apart for machines."""

    rule: str
    path: str = ""
    value: str = ""
    to_do: str = ""

    @property
    def advice(self) -> str:
        return f"{self.rule}. {self.to_do}" if self.to_do else self.rule

    def __str__(self) -> str:
        section, _, key = self.path.rpartition(" ")
        # A rule may open with the key's name, which then is not said twice.
        path = section if section and self.rule.startswith(f"{key} ") else self.path
        given = f" = {self.value}" if self.value else ""
        return f"{path}{given}: {self.advice}" if path else self.advice


class InputError(AdsbpcError):
    """One problem, or a sentence about several of them that follow."""

    exit_code = 2

    def __init__(
        self,
        rule: str,
        path: str = "",
        value: str = "",
        to_do: str = "",
        problems: tuple[SpecProblem, ...] = (),
    ) -> None:
        self._parts = rule, path, value, to_do, problems
        whole = SpecProblem(rule, path, value, to_do)
        self.problems = problems or (whole,)
        super().__init__("\n  ".join(map(str, (whole, *problems))))

    def __reduce__(self) -> tuple[type[InputError], tuple[object, ...]]:
        """So that it comes through from another process."""
        return type(self), self._parts


class SpecError(InputError):
    pass


class PrivacyError(InputError):
    pass


class WorkloadError(InputError):
    pass


class SourceError(AdsbpcError):
    """Says where, what was found, what was expected and what to do, each apart for machines."""

    def __init__(self, where: str, found: str, expected: str, to_do: str) -> None:
        self.where, self.found, self.expected, self.to_do = where, found, expected, to_do
        super().__init__(f"{where}: found {found}; expected {expected}. {to_do}")

    def __reduce__(self) -> tuple[type[SourceError], tuple[str, ...]]:
        return type(self), (self.where, self.found, self.expected, self.to_do)


class EngineError(AdsbpcError):
    """Carries the failing SQL beside the name of the step it was for."""

    def __init__(self, engine: str, step: str, cause: str, sql: str = "") -> None:
        self.engine, self.step, self.cause, self.sql = engine, step, cause, sql
        shown = f"\n--- SQL of step {step!r} ---\n{sql.strip()}" if sql else ""
        super().__init__(f"{engine} failed in step {step!r}: {cause}{shown}")

    def __reduce__(self) -> tuple[type[EngineError], tuple[str, ...]]:
        return type(self), (self.engine, self.step, self.cause, self.sql)


class ContributionError(AdsbpcError):
    pass


class LedgerError(AdsbpcError):
    pass


class BudgetError(LedgerError):
    """Amounts are in rho."""

    def __init__(self, whose: str, requested: float, spent: float, left: float, to_do: str) -> None:
        self.requested, self.spent, self.left = requested, spent, left
        super().__init__(
            f"{whose}: requested {requested:.12g}, spent {spent:.12g}, left {left:.12g} (rho). "
            f"{to_do}"
        )


class TermsError(LedgerError):
    """Of its scope, or under its name."""


class ReleaseError(AdsbpcError):
    pass


class ServiceError(AdsbpcError):
    pass


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """' Did you mean "x"?' when something close is known, else an empty string."""
    import difflib

    close = difflib.get_close_matches(name, list(known), n=1)
    return f' Did you mean "{close[0]}"?' if close else ""


def no_such_choice(path: str, value: str, known: Iterable[str]) -> SpecError:
    """What is said of a word that is none of those known."""
    choices = list(known)
    hint = did_you_mean(value, choices).lstrip()
    return SpecError(f"expected one of {', '.join(choices)}", path, to_do=hint)
