"""Spans and counts for OpenTelemetry, where it is installed and an exporter is configured; nothing
otherwise.

Must never: carry what is about people. Attributes are those of the table below and no others: no
ids of users, no rows, no sizes, no figure before noise, no words of an exception.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

NAME: Final = "adsbpc"
# What a span or a count may say, and of which type: names and numbers that are public, or will be
# with the release.
ATTRIBUTES: Final[dict[str, type]] = {
    "scope": str,
    "campaign": str,
    "slot": int,
    "engine": str,
    "mechanism": str,
    "replayed": bool,
    "charged_pico_rho": int,
    "source": str,
    "outcome": str,
    "error": str,
}
_SETTING = "OTEL_EXPORTER_OTLP"

Tell = Callable[..., None]


@contextmanager
def span(name: str, **attributes: Any) -> Iterator[Tell]:
    """Around a piece of work; what is yielded adds attributes to it. A failure is told by its type
    alone, because its message may quote a row."""
    api = _api()
    if api is None:
        yield _tell_nobody
        return
    tracer = api.trace.get_tracer(NAME)
    with tracer.start_as_current_span(
        name, attributes=_named(attributes), record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield lambda **more: current.set_attributes(_named(more))
        except BaseException as error:
            current.set_attributes(_named({"error": type(error).__name__}))
            current.set_status(api.trace.Status(api.trace.StatusCode.ERROR))
            raise


def _tell_nobody(**attributes: Any) -> None:
    _named(attributes)


def count(name: str, amount: int, **attributes: Any) -> None:
    """Add to a counter."""
    api, named = _api(), _named(attributes)
    if api is not None:
        api.metrics.get_meter(NAME).create_counter(name).add(amount, named)


def _named(attributes: dict[str, Any]) -> dict[str, Any]:
    for name, value in attributes.items():
        if type(value) is not ATTRIBUTES.get(name):
            raise TypeError(f"{name} = {type(value).__name__}: no attribute that may be told")
    return {f"{NAME}.{name}": value for name, value in attributes.items()}


def _api() -> Any:
    """The two interfaces of OpenTelemetry, or None where it is not installed."""
    try:
        import opentelemetry.metrics
        import opentelemetry.trace
    except ImportError:
        return None
    return opentelemetry


def configure() -> None:
    """Export over OTLP where the usual variables of the environment say so, and nobody has set up
    anything else. What waits is sent when the process ends."""
    if not any(name.startswith(_SETTING) for name in os.environ):
        return
    try:
        from opentelemetry import metrics, trace
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        # The variables may be meant for others.
        return
    if isinstance(trace.get_tracer_provider(), TracerProvider):
        return
    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME", NAME)})
    spans, numbers = (
        TracerProvider(resource=resource),
        MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource=resource),
    )
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(spans)
    metrics.set_meter_provider(numbers)
    for provider in (spans, numbers):
        atexit.register(provider.shutdown)
