"""The API reference, errors as pages, and static files."""

from __future__ import annotations

import gzip
import re

import pytest

from adsbpc.report import page_parts
from adsbpc.service.dashboard import assets
from tests.report.outline import Outline
from tests.service.dashboard.stage import Stage, Visitor


def test_every_operation_and_shape_is_in_the_reference(stage: Stage, nobody: Visitor) -> None:
    document = nobody.get("/openapi.json").json()
    outline = nobody.look("/docs")
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert f"{method.upper()} {path}" in outline.words
            assert operation["summary"] in outline.words
    ids = [attrs["id"] for _, attrs in outline.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = {str(attrs["href"]) for tag, attrs in outline.tags if tag == "a" and "href" in attrs}
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    # Nothing of the dashboard itself.
    assert "/operations/keys/{" not in outline.words


@pytest.mark.parametrize("path", ["/nowhere", f"/campaigns/{'0' * 32}", "/static/nothing.js"])
def test_errors_are_pages_for_people(operator: Visitor, path: str) -> None:
    answer = operator.get(path)
    outline = Outline(answer.text)
    assert answer.status_code == 404
    assert "404 Not found" in outline.words
    assert "Check the address" in outline.words
    assert answer.headers["x-request-id"] in outline.words


def test_errors_are_problems_for_programs(nobody: Visitor) -> None:
    answer = nobody.http.get("/nowhere", headers={"Accept": "application/json"})
    assert answer.json()["status"] == 404


def test_a_path_in_an_error_stays_text(nobody: Visitor) -> None:
    outline = Outline(nobody.get("/<script>alert(1)</script>").text)
    assert outline.scripts == []


def test_pages_ask_for_nothing_from_elsewhere(stage: Stage, operator: Visitor) -> None:
    campaign = f"/campaigns/{stage.campaigns['spring']}"
    for path in ("/sign-in", "/campaigns", campaign, "/campaigns/new", "/operations", "/docs"):
        answer = operator.http.get(path, follow_redirects=True)
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert answer.headers["cache-control"] == "no-store"
        for tag, attrs in Outline(answer.text).tags:
            for key in ("src", "href", "action"):
                assert str(attrs.get(key) or "/").startswith(("/", "#")), (tag, attrs)
            # Scripts in the page are data only.
            if tag == "script" and "src" not in attrs:
                assert attrs["type"] == "application/json"


def test_static_files_are_kept_until_they_change(nobody: Visitor) -> None:
    text = nobody.get("/sign-in").text
    for link in re.findall(r'(?:src|href)="(/static/[^"]+)"', text):
        answer = nobody.get(link)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == assets.FOREVER
    old = nobody.get("/static/style-000000000000.css")
    assert old.headers["cache-control"] == "no-cache"
    assert "--accent" in old.text


@pytest.mark.parametrize("name", ["style.css", "report.js", "vega.js", "live.js", "icon.svg"])
def test_static_files_are_packed_for_who_takes_that(nobody: Visitor, name: str) -> None:
    url = assets.url(name)
    plain = nobody.http.get(url, headers={"Accept-Encoding": "identity"})
    packed = nobody.http.get(url, headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert plain.content == packed.content == assets.asset(name).content
    assert gzip.decompress(assets.asset(name).packed) == plain.content


def test_style_and_script_are_the_reports_own(nobody: Visitor) -> None:
    assert nobody.get(assets.url("style.css")).text.startswith(page_parts.style())
    assert nobody.get(assets.url("report.js")).text == page_parts.script()


@pytest.mark.parametrize("file", ["..%2f..%2fapp.py", "style.css", "%2e%2e", "style-"])
def test_no_other_file_is_served(nobody: Visitor, file: str) -> None:
    assert nobody.get(f"/static/{file}").status_code == 404
