"""A statement as a page: one file without scripts, that asks the network for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

from adsbpc.report.page_parts import style
from adsbpc.report.rendering import render
from adsbpc.report.statement_text import facts_of, parts_of, summary_of

if TYPE_CHECKING:
    from adsbpc.report.statement import Statement

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)


def page_of_statement(statement: Statement) -> str:
    return render(
        "statement.html",
        policy=_POLICY,
        style=Markup(style()),
        statement=statement,
        facts=facts_of(statement),
        campaigns=[(each, summary_of(each), parts_of(each)) for each in statement.campaigns],
    )
