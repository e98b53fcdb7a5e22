"""Airflow: a sensor that waits for a slot to be over, and an operator that releases what is due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.exceptions import AirflowException, AirflowFailException
from airflow.sdk import BaseOperator, BaseSensorOperator

from adsbpc_integrations.program import Program, ProgramError, UsageError, summary_of


class SlotSensor(BaseSensorOperator):
    """Waits until a slot of a campaign is over and not released yet, or until there is none left:
    the campaign is complete, or was closed."""

    template_fields: Sequence[str] = ("campaign",)

    def __init__(
        self, *, campaign: str, program: Sequence[str] = ("adsbpc",), **settings: Any
    ) -> None:
        super().__init__(**settings)
        self.campaign, self.program = campaign, program

    def poke(self, context: Any) -> bool:
        found = _explained(lambda: Program(self.program).status(self.campaign))
        done = found["closed"] or found["released"] == found["slots"]
        return bool(done or found["over"] > found["released"])


class ReleaseOperator(BaseOperator):
    """Releases what is due, or everything up to a date, exactly once however often the task is
    retried. Returns which slots are new, and what was charged for them.

    Let tasks retry: what was released before a worker died is returned as it was. A campaign file
    that is wrong fails the task at once, because trying again will not mend it.
    """

    template_fields: Sequence[str] = ("campaign", "through")

    def __init__(
        self,
        *,
        campaign: str,
        through: str | None = None,
        program: Sequence[str] = ("adsbpc",),
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.campaign, self.through, self.program = campaign, through, program

    def execute(self, context: Any) -> dict[str, Any]:
        slots = _explained(lambda: Program(self.program).release(self.campaign, self.through))
        found = summary_of(slots)
        self.log.info("released %s, %s before", found["released"], found["released_before"])
        return found


def _explained(ask: Any) -> Any:
    """What Airflow retries, and what it does not."""
    try:
        return ask()
    except UsageError as error:
        raise AirflowFailException(str(error)) from None
    except ProgramError as error:
        raise AirflowException(str(error)) from None
