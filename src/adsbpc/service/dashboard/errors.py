"""Errors as pages: what is wrong, and the next step, in the look of the others."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import HTMLResponse

from adsbpc.service.access import request_id_of, session_of
from adsbpc.service.dashboard.rendering import home_of, page
from adsbpc.service.problems import Problem

# What the API says of paths that lead nowhere is for programs.
_WRONG_ADDRESS = "Check the address, or start again from the first page"


def error_page(request: Request, problem: Problem) -> HTMLResponse:
    """The same problem as the API tells, for a person."""
    # What failed may be the store that knows who is signed in.
    principal = None if problem.status >= 500 else session_of(request)
    answer = page(
        request,
        "error.html",
        principal,
        problem.status,
        problem=problem,
        to_do=_WRONG_ADDRESS if problem.status == 404 else problem.to_do,
        request_id=request_id_of(request),
        home=home_of(principal) if principal else "/sign-in",
    )
    answer.headers.update(problem.headers)
    return answer
