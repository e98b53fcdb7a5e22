"""For what watches the server: is it up, can it work, and figures that follow from no user."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from adsbpc.errors import AdsbpcError
from adsbpc.service.access import backend_of
from adsbpc.service.api.documented import problems
from adsbpc.service.problems import Problem

router = APIRouter(tags=["health"])


class Health(BaseModel):
    status: str


@router.get("/healthz", summary="Is the process up")
async def healthz() -> Health:
    return Health(status="up")


@router.get("/readyz", summary="Can it work", responses={503: problems(503)[503]})
def readyz(request: Request) -> Health:
    """Whether both databases answer, and what stores and releases is at work."""
    backend = backend_of(request)
    if backend.watch.stopping:
        raise Problem(503, "Service unavailable", "The server is stopping", "Ask another one")
    if not (backend.scheduler.is_alive() and backend.intake.is_alive()):
        raise Problem(
            503, "Service unavailable", "A part of the server has ended",
            "Start it again. Its log says why",
        )  # fmt: skip
    try:
        backend.keys.has_operator()
        backend.campaigns.ledger.exists()
    except AdsbpcError as error:
        raise Problem(
            503, "Service unavailable", "A database does not answer", "Look into the server's log"
        ) from error
    return Health(status="ready")


@router.get(
    "/metrics",
    summary="Figures for Prometheus",
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    response_class=Response,
)
def metrics(request: Request) -> Response:
    """None of them follows from users; those of slots change at declared moments only."""
    backend = backend_of(request)
    return Response(
        backend.metrics.text(backend.publication.totals()),
        media_type="text/plain; version=0.0.4; charset=utf-8",
    )
