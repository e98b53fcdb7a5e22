"""The application: routes, the one shape of errors, and what surrounds every request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from adsbpc import __version__
from adsbpc.errors import (
    AdsbpcError,
    BudgetError,
    PrivacyError,
    ReleaseError,
    SpecError,
    TermsError,
    WorkloadError,
)
from adsbpc.service.auth import api as key_api
from adsbpc.service.auth.access import SignInNeeded, address_of, request_id_of
from adsbpc.service.backend import Backend
from adsbpc.service.dashboard import (
    assets,
    campaigns,
    deliveries,
    keys,
    new_campaign,
    reference,
    steering,
)
from adsbpc.service.dashboard import operations as operations_page
from adsbpc.service.dashboard.keys import to_sign_in
from adsbpc.service.dashboard.pages import error_page
from adsbpc.service.http import operations
from adsbpc.service.http.bodies import schemas_of
from adsbpc.service.http.headers import RequestIds, SecurityHeaders
from adsbpc.service.http.limits import UnreadBodies
from adsbpc.service.http.monitoring import RequestLog
from adsbpc.service.http.problems import MEDIA_TYPE, Problem, ProblemDetails, phrase, unfit
from adsbpc.service.ingest import api as event_api
from adsbpc.service.logs import log_failure, public_text
from adsbpc.service.releases import (
    assignment_api,
    campaign_api,
    lifecycle_api,
    release_api,
    spend_api,
    statement_api,
)

_DESCRIPTION = """Private ad measurement: publishers push impressions, advertisers push conversions,
and every slot attributed conversions per publisher are released with user-level differential
privacy. Send a key as `Authorization: Bearer adsbpc_...`. Errors are problem details (RFC 9457)
with `to_do`, the next step."""

_REFUSED = (SpecError, PrivacyError, WorkloadError)
_CONFLICT = (BudgetError, ReleaseError, TermsError)
# Bodies that the routes read themselves.
_SENT = (
    key_api.KeyRequest, release_api.ReleaseRequest, spend_api.SpendContent, *event_api.ROWS,
)  # fmt: skip
_API = (
    event_api, campaign_api, lifecycle_api, release_api, statement_api, spend_api, assignment_api,
    key_api, operations,
)  # fmt: skip
# A new campaign before the page of one, whose path would take "new" for an id.
PAGES = (new_campaign, campaigns, steering, deliveries, keys, operations_page, reference, assets)


def create_app(backend: Backend) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        backend.start()
        yield
        await run_in_threadpool(backend.stop)

    app = FastAPI(
        title="adsbpc",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.backend = backend
    for module in _API:
        app.include_router(module.router)
    app.include_router(statement_api.public_router)
    for module in PAGES:
        app.include_router(module.router, include_in_schema=False)
    for kind in (Problem, RequestValidationError, HTTPException, AdsbpcError):
        app.add_exception_handler(kind, _answer_error)
    app.add_exception_handler(SignInNeeded, _answer_sign_in)
    # The last one added is the outermost.
    app.add_middleware(
        RequestLog, metrics=backend.metrics, strangers=backend.strangers, address_of=address_of
    )
    app.add_middleware(UnreadBodies)
    app.add_middleware(RequestIds)
    app.add_middleware(SecurityHeaders, over_tls=backend.settings.over_tls)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    return app


def answer(request: Request, problem: Problem) -> Response:
    """Problem details for machines, a page for people."""
    is_page = not request.url.path.startswith("/v1")
    if is_page and "text/html" in request.headers.get("accept", ""):
        return error_page(request, problem)
    details = problem.details(request_id_of(request))
    return JSONResponse(
        details.model_dump(), problem.status, headers=problem.headers, media_type=MEDIA_TYPE
    )


async def _answer_error(request: Request, error: Exception) -> Response:
    return answer(request, _problem_of(request, error))


def _problem_of(request: Request, error: Exception) -> Problem:
    if isinstance(error, Problem):
        return error
    if isinstance(error, RequestValidationError):
        return unfit(error.errors())
    if isinstance(error, HTTPException):
        return _unanswered(request, error)
    # What the rooms below refuse, in the words that they gave it.
    if isinstance(error, _REFUSED):
        return Problem(422, phrase(422), str(error), "Correct it and send it again")
    if isinstance(error, _CONFLICT):
        return Problem(409, phrase(409), str(error), "Nothing was released or charged")
    assert isinstance(error, AdsbpcError)
    # Where files and databases are is for the log.
    log_failure(
        "request failed", error, request_id=request_id_of(request), problem=public_text(error)
    )
    return Problem(
        503, phrase(503), "The server cannot do this now",
        "Try again later. The server's log tells the operator why", {"Retry-After": "30"},
    )  # fmt: skip


def _unanswered(request: Request, error: HTTPException) -> Problem:
    headers = dict(error.headers or {})
    if error.status_code == 405:
        # What was raised names the methods of one route, and a path may have several.
        path = getattr(request.scope.get("route"), "path", "")
        methods = request.app.openapi()["paths"].get(path, {})
        headers["Allow"] = ", ".join(sorted(map(str.upper, methods))) or headers.get("Allow", "")
    return Problem(
        error.status_code, phrase(error.status_code),
        f"{request.method} {request.url.path[:200]} has no answer here",
        "Compare it with /docs", headers,
    )  # fmt: skip


async def _answer_sign_in(request: Request, _error: Exception) -> Response:
    return to_sign_in(request)


def _document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with errors in the shape that they have here."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        schemas = document["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        for model in (ProblemDetails, *_SENT):
            schemas.update(schemas_of(model))
        schemas.update(campaign_api.content_schemas())
        app.openapi_schema = document
    return app.openapi_schema
