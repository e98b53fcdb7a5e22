"""Dagster: what a campaign released as an asset, and its report as one that follows."""

# Annotations stay what they are, because Dagster looks at them.
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dagster import (
    AssetExecutionContext,
    AssetsDefinition,
    Backoff,
    Failure,
    MaterializeResult,
    RetryPolicy,
    asset,
)

from adsbpc_integrations.program import Program, ProgramError, UsageError, summary_of

# Safe, because a slot that was released before is returned as it was.
USUAL_RETRIES = RetryPolicy(max_retries=3, delay=60, backoff=Backoff.EXPONENTIAL)

T = TypeVar("T")


def release_asset(
    campaign: str,
    *,
    name: str = "releases",
    program: Sequence[str] = ("adsbpc",),
    retry_policy: RetryPolicy = USUAL_RETRIES,
    **settings: Any,
) -> AssetsDefinition:
    """An asset that releases what is due whenever it is materialized, exactly once however often
    it is retried. A campaign file that is wrong is not retried."""

    @asset(name=name, retry_policy=retry_policy, kinds={"adsbpc"}, **settings)
    def released(context: AssetExecutionContext) -> MaterializeResult[None]:
        found = summary_of(_explained(lambda: Program(program).release(campaign)))
        context.log.info(f"released {found['released']}, {found['released_before']} before")
        return MaterializeResult(metadata=found)

    return released


def report_asset(
    campaign: str,
    out: str,
    *,
    releases: str = "releases",
    name: str = "report",
    program: Sequence[str] = ("adsbpc",),
    **settings: Any,
) -> AssetsDefinition:
    """The report of what is released, as a file, after the asset of that name."""

    @asset(name=name, deps=[releases], kinds={"adsbpc"}, **settings)
    def report() -> MaterializeResult[None]:
        _explained(lambda: Program(program).report(campaign, out))
        return MaterializeResult(metadata={"path": out})

    return report


def _explained(ask: Callable[[], T]) -> T:
    """What Dagster retries, and what it does not."""
    try:
        return ask()
    except UsageError as error:
        raise Failure(str(error), allow_retries=False) from None
    except ProgramError as error:
        raise Failure(str(error)) from None
