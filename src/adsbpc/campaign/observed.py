"""A release as operators' tools see it: a span for each slot, and OpenLineage events of a run.

Must never: tell more than telemetry may, or change what is released. What a tool cannot take is
left out, and the release goes on.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from adsbpc import telemetry
from adsbpc.campaign.data_path import attribute
from adsbpc.campaign.overview import Overview
from adsbpc.campaign.release import Attributing, Released, Running, release_slot
from adsbpc.engines import Engine
from adsbpc.mechanisms import privacy_of
from adsbpc.model import CampaignSpec
from adsbpc.privacy import SecureRandomness

_PRODUCER = "https://pypi.org/project/adsbpc"
# OpenLineage's own settings: without one of them nothing is sent.
_SETTINGS = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG", "OPENLINEAGE__TRANSPORT")


def observed_release(
    running: Running,
    slot: int,
    engine: Callable[[], Engine],
    shown: Callable[[Overview], None],
    attributing: Attributing = attribute,
) -> Released:
    """`release_slot`, with its span and its counts."""
    section = running.spec.campaign
    about: dict[str, Any] = {"scope": section.scope, "campaign": section.name}
    how = {"engine": running.spec.events.engine, "mechanism": privacy_of(running.spec).mechanism}
    with telemetry.span("adsbpc.release", slot=slot, **about, **how) as tell:
        released = release_slot(running, slot, engine, SecureRandomness(), shown, attributing)
        tell(replayed=released.replayed)
        if not released.replayed:
            charged = sum(charge.pico_rho for charge in released.release.charges)
            tell(charged_pico_rho=charged)
            telemetry.count("adsbpc.released_slots", 1, **about)
            telemetry.count("adsbpc.charged_pico_rho", charged, **about)
    return released


@contextmanager
def lineage(spec: CampaignSpec, published: str) -> Iterator[None]:
    """OpenLineage events of a run: which data sets it reads, and where it publishes."""
    emit = _emitter(spec, published)
    emit("START")
    try:
        yield
    except GeneratorExit:
        emit("COMPLETE")
        raise
    except BaseException:
        emit("FAIL")
        raise
    emit("COMPLETE")


def _emitter(spec: CampaignSpec, published: str) -> Callable[[str], None]:
    if not any(name.startswith(_SETTINGS) for name in os.environ):
        return lambda state: None
    try:
        from openlineage.client import OpenLineageClient
        from openlineage.client.event_v2 import (
            InputDataset,
            Job,
            OutputDataset,
            Run,
            RunEvent,
            RunState,
        )
    except ImportError:
        return lambda state: None
    events, run = spec.events, Run(runId=str(uuid4()))
    job = Job(namespace="adsbpc", name=f"{spec.campaign.scope}.{spec.campaign.name}")
    inputs = [
        InputDataset(*_dataset(location, spec))
        for location in (events.impressions, events.conversions)
    ]
    outputs = [OutputDataset(*_dataset(published, spec))]
    client: Any = _tried(OpenLineageClient)

    def emit(state: str) -> None:
        nonlocal client
        moment = datetime.now(UTC).isoformat()
        event = RunEvent(
            eventTime=moment, producer=_PRODUCER, run=run, job=job, eventType=RunState[state],
            inputs=inputs, outputs=outputs,
        )  # fmt: skip
        # Who did not take the first event is not waited for again.
        if client is not None and _tried(lambda: (client.emit(event), True)) is None:
            client = None

    return emit


def _tried(act: Callable[[], Any]) -> Any:
    """A collector that is not there stops no release."""
    try:
        return act()
    except Exception as error:  # noqa: BLE001
        logging.getLogger(__name__).warning("no lineage was sent: %s", type(error).__name__)
        return None


def _dataset(location: str, spec: CampaignSpec) -> tuple[str, str]:
    """Namespace and name, without user, password or token."""
    if "://" not in location:
        kind, sign, rest = location.partition(":")
        if sign and kind in ("delta", "iceberg"):
            return kind, rest
        return "file", str(spec.directory / location)
    parts = urlsplit(location.removeprefix("delta:").removeprefix("iceberg:"))
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}", parts.path.strip("/") + (
        parts.fragment and f".{parts.fragment}"
    )
