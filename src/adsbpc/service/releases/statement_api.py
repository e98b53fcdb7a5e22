"""Statements for auditors, of a campaign or of all campaigns of its scope."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response, Security

from adsbpc.report.statement import Statement
from adsbpc.service.auth.access import Caller, backend_of, bearer, campaign_for
from adsbpc.service.auth.permissions import Action
from adsbpc.service.http.problems import Problem, problems
from adsbpc.service.releases.campaign_api import CampaignId
from adsbpc.service.releases.release_api import PAGE_POLICY, file_name

router = APIRouter(
    prefix="/v1/campaigns/{campaign}", tags=["releases"], dependencies=[Security(bearer)]
)

_MEDIA_TYPES = {"json": "application/json", "html": "text/html", "md": "text/markdown"}
ARCHIVE = "application/zip"
SIGNATURE = "adsbpc-signature"
# Whoever checks a signature need not have a key of the service.
public_router = APIRouter(tags=["releases"])


@public_router.get(
    "/signing-key",
    summary="Read the public key of statements",
    responses={
        200: {
            "description": "An Ed25519 key in PEM: the one that statements are signed with.",
            "content": {"application/x-pem-file": {"schema": {"type": "string"}}},
        },
        404: problems(404)[404],
    },
    response_class=Response,
)
def read_signing_key(request: Request) -> Response:
    """For `adsbpc verify`, and for whoever else checks what this server has signed. It is public,
    and needs no key of the service."""
    signer = backend_of(request).signer
    if signer is None:
        raise _unsigned()
    return Response(signer.public, media_type="application/x-pem-file")


def _unsigned() -> Problem:
    return Problem(
        404, "Not found", "The server signs nothing: it has no key for that",
        "Ask the operator to set [statements] signing_key",
    )  # fmt: skip


@router.get(
    "/statement",
    summary="Download the statement for auditors",
    responses={
        200: {
            "description": "Promise, hazards, charges and releases, in the format asked for.",
            "model": Statement,
            "headers": {
                SIGNATURE: {
                    "description": "Of the body, in base64, if the server signs statements.",
                    "schema": {"type": "string"},
                }
            },
            "content": {
                "text/html": {"schema": {"type": "string"}},
                "text/markdown": {"schema": {"type": "string"}},
                ARCHIVE: {"schema": {"type": "string", "format": "binary"}},
            },
        },
        **problems(404, 422),
    },
)
def read_statement(
    request: Request,
    caller: Caller,
    campaign: CampaignId,
    of: Annotated[
        Literal["campaign", "scope"], Query(description="All campaigns of the scope, or this one.")
    ] = "campaign",
    format: Annotated[Literal["json", "html", "md"], Query(description="Of the file.")] = "json",
    audit: Annotated[
        bool, Query(description="Run the audit and tell which claims hold; for operators.")
    ] = False,
    signed: Annotated[
        bool,
        Query(description="A ZIP of the statement and of its signature, in a file of its own."),
    ] = False,
) -> Response:
    """The same statement as `adsbpc statement` writes, of what is visible; signed, if the server
    has a key for that."""
    action = Action.VERIFY if audit else Action.READ_RELEASES
    registered = campaign_for(request, caller, campaign, action)
    backend, others = backend_of(request), []
    signer = backend.signer
    if signed and signer is None:
        raise _unsigned()
    if of == "scope":
        # A scope is one advertiser's: who may read one campaign of it may read them all.
        others = [
            each.campaign
            for each in backend.campaigns.all()
            if each.scope == registered.scope and each.campaign_id != registered.campaign_id
        ]
    visible = backend.publication.visible(registered)
    statement = registered.campaign.statement(audit, visible, others)
    content, name = statement.to_text(format).encode(), file_name(registered, f"statement.{format}")
    if signed and signer is not None:
        headers = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
        return Response(signer.archive_of(name, content), media_type=ARCHIVE, headers=headers)
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    if signer is not None:
        headers[SIGNATURE] = signer.signature_of(content)
    if format == "html":
        headers["Content-Security-Policy"] = PAGE_POLICY
    return Response(content, media_type=_MEDIA_TYPES[format], headers=headers)
