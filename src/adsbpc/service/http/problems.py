"""Errors in one shape (RFC 9457, problem details): what, why, and what to do."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from pydantic import BaseModel, Field

from adsbpc.model.rules import brief

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):  # noqa: N818 (the word of RFC 9457)
    """Ends a request. `title` is the same for all problems of a kind, `detail` is about this one,
    `to_do` is the next step."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str,
        to_do: str,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.status, self.title, self.detail, self.to_do = status, title, detail, to_do
        self.headers = headers or {}
        super().__init__(f"{status} {title}: {detail}. {to_do}")

    def details(self, request_id: str) -> ProblemDetails:
        return ProblemDetails(**vars(self), request_id=request_id)


class ProblemDetails(BaseModel):
    """The body of every answer that is an error."""

    type: str = Field(default="about:blank", description="No page beyond the status code.")
    title: str = Field(description="The kind of problem.", examples=["Not found"])
    status: int = Field(description="The HTTP status code.", ge=400, le=599)
    detail: str = Field(description="What was wrong with this request.")
    to_do: str = Field(description="The next step.")
    request_id: str = Field(description="Find this request in the logs by it.")


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What the OpenAPI document says of answers that are errors, besides those that every request
    may get."""
    schema = {"$ref": "#/components/schemas/ProblemDetails"}
    return {
        status: {"description": phrase(status), "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted({400, 401, 403, 408, 429, 500, 503, *statuses})
    }


def unfit(errors: Any) -> Problem:
    """Names and rules only: what was sent is not repeated."""
    told = "; ".join(map(brief, errors[:10]))
    return Problem(
        422, phrase(422), f"The request does not fit its description: {told[:1000]}",
        "Compare it with /docs",
    )  # fmt: skip


def phrase(status: int) -> str:
    return HTTPStatus(status).phrase.capitalize()
