"""The page: one file with styles, scripts and data inside, that asks the network for nothing.

The security policy lets only the two scripts of this package run.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING

from markupsafe import Markup

from adsbpc.report.page_parts import libraries, parts_of, script, style
from adsbpc.report.rendering import render
from adsbpc.report.wording import metric_name

if TYPE_CHECKING:
    from adsbpc.report.report import Report

# Beyond this a browser opens the page slowly; the other formats have no limit.
_MOST_CELLS_IN_PAGE = 50_000


def page_of(report: Report) -> str:
    with_cells = len(report.rows()) <= _MOST_CELLS_IN_PAGE
    parts = parts_of(report, _file_name(report) if with_cells else "")
    return render(
        "page.html",
        policy=_policy(libraries(), script()),
        name=report.spec.campaign.name,
        metric=metric_name(report),
        style=Markup(style()),
        parts=parts,
        data={**parts.data, "csv": report.to_csv() if with_cells else ""},
        libraries=Markup(libraries()),
        script=Markup(script()),
    )


def _policy(*scripts: str) -> str:
    """Only these scripts, known by their fingerprints; no request to anywhere."""
    prints = (b64encode(sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{each}'" for each in prints)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; connect-src 'none'; base-uri 'none'; form-action 'none'"
    )


def _file_name(report: Report) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", report.spec.campaign.name).strip("-.") or "campaign"
    return f"{name}-{report.timeline.word}-{report.newest.slot}.csv"
