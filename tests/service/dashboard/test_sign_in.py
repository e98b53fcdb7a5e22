"""Signing in and out, and who is sent where."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsbpc.service.dashboard.keys import _is_page
from tests.report.outline import Outline
from tests.service.dashboard.stage import Stage, Visitor
from tests.service.running import running, settings_in

PAGES = ("/", "/campaigns", "/campaigns/new", "/operations", "/operations/keys")


@pytest.mark.parametrize("path", PAGES)
def test_nobody_is_sent_to_sign_in(nobody: Visitor, path: str) -> None:
    answer = nobody.get(path)
    assert answer.status_code == 303
    assert answer.headers["location"].partition("?")[0] == "/sign-in"


def test_who_signs_in_comes_to_campaigns_and_out_again(stage: Stage, nobody: Visitor) -> None:
    key = stage.server.key("operator")
    answer = nobody.sign_in(f"  {key} ")
    assert (answer.status_code, answer.headers["location"]) == (303, "/campaigns")
    cookie = answer.headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=Strict", "Path=/"):
        assert part in cookie
    assert key not in cookie
    session = dict(nobody.http.cookies)
    assert nobody.get("/").headers["location"] == "/campaigns"
    # Already signed in.
    assert nobody.get("/sign-in").headers["location"] == "/campaigns"
    out = nobody.send("/sign-out", {})
    assert (out.status_code, out.headers["location"]) == (303, "/sign-in")
    assert "Max-Age=0" in out.headers["set-cookie"]
    # The session is over on the server too, whoever kept the cookie.
    nobody.http.cookies.update(session)
    assert nobody.get("/campaigns").status_code == 303


def test_the_page_that_was_asked_for_opens_after_signing_in(stage: Stage, nobody: Visitor) -> None:
    outline = nobody.look("/sign-in?next=/operations/keys")
    kept = next(attrs["value"] for _, attrs in outline.tags if attrs.get("name") == "next")
    answer = nobody.http.post(
        "/sign-in", data={"key": stage.server.key("operator"), "next": str(kept)}
    )
    assert answer.headers["location"] == "/operations/keys"


@pytest.mark.parametrize(
    "elsewhere",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/a\nb",
     "/%2f/evil.example", "/.//evil.example", "", "/sign-out"],
)  # fmt: skip
def test_the_next_page_is_never_elsewhere(stage: Stage, nobody: Visitor, elsewhere: str) -> None:
    data = {"key": stage.server.key("operator"), "next": elsewhere}
    assert nobody.http.post("/sign-in", data=data).headers["location"] == "/campaigns"


@given(st.text(alphabet="/\\a.:%?#@-_\n\t ", max_size=8))
def test_a_next_page_is_a_plain_path(path: str) -> None:
    if _is_page(path):
        assert path.startswith("/")
        assert not path.startswith("//")
        assert not set(path) & set("\\.:%?#@\n\t ")


def test_a_wrong_key_is_told_on_the_page_and_never_repeated(nobody: Visitor) -> None:
    wrong = f"adsbpc_{'0' * 16}_{'x' * 43}"
    answer = nobody.sign_in(wrong)
    outline = Outline(answer.text)
    assert answer.status_code == 401
    assert "This key is wrong, expired or revoked." in outline.words
    assert wrong not in answer.text
    assert "set-cookie" not in answer.headers


def test_guessing_is_slowed_down(stage: Stage, nobody: Visitor) -> None:
    throttle = stage.server.backend.throttle
    for _ in range(10):
        nobody.sign_in("wrong")
    answer = nobody.sign_in("wrong")
    assert answer.status_code == 429
    assert int(answer.headers["retry-after"]) > 0
    assert "Too many wrong keys came from this address. Try again in" in Outline(answer.text).words
    # Who has a key need not wait for those who have none.
    assert nobody.sign_in(stage.server.key("operator")).status_code == 303
    assert throttle.refused_for("127.0.0.1") is None


def test_a_publisher_comes_to_its_deliveries(stage: Stage) -> None:
    publisher = stage.visitor("publisher", "search")
    assert publisher.get("/").headers["location"] == "/deliveries"
    refused = publisher.get("/campaigns")
    assert refused.status_code == 403
    assert "A key with the role publisher may not do this." in Outline(refused.text).words


def test_a_revoked_key_is_signed_out_at_once(stage: Stage) -> None:
    backend = stage.server.backend
    visitor = stage.visitor("reader")
    assert visitor.get("/campaigns").status_code == 200
    newest = [each for each in backend.keys.list() if each.role == "reader"][-1]
    assert backend.keys.revoke(newest.key_id)
    assert visitor.get("/campaigns").status_code == 303


def test_decisions_are_in_the_audit_log(stage: Stage, nobody: Visitor) -> None:
    # What other tests were refused in this minute counts as told.
    stage.server.backend.refused_strangers.close()
    nobody.sign_in("wrong")
    nobody.sign_in(stage.server.key("reader", "Ad-1"))
    stage.server.backend.throttle.record_success("127.0.0.1")
    lines = stage.server.backend.audit.newest(2)
    assert [(line["action"], line["decision"]) for line in lines] == [
        ("sign in", "allowed"),
        ("sign in", "refused"),
    ]
    assert lines[0]["subject"] == "Ad-1"


FORMS = ("/sign-out", "/campaigns/new", "/operations/keys", "/operations/verification",
         f"/operations/keys/{'0' * 16}/revocation")  # fmt: skip


@pytest.mark.parametrize("path", ["/sign-in", *FORMS])
def test_no_form_comes_from_another_site(stage: Stage, path: str) -> None:
    visitor = stage.visitor("operator")
    own = stage.server.url
    del visitor.http.headers["Sec-Fetch-Site"]
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": ""},
        # What a browser says of the site counts, whatever stands beside it.
        {"Sec-Fetch-Site": "cross-site", "Origin": own},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"{own}.evil.example"},
        {"Origin": own.rpartition(":")[0]},
        # No browser of today.
        {},
    ):
        answer = visitor.http.post(path, data={"name": "x"}, headers=headers)
        assert answer.status_code == 403, headers
        assert "sent by a page of another site" in answer.text
    twice = [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "cross-site")]
    assert visitor.http.post(path, data={}, headers=twice).status_code == 403
    twice = [("Origin", own), ("Origin", "https://evil.example")]
    assert visitor.http.post(path, data={}, headers=twice).status_code == 403
    assert visitor.get("/docs").status_code == 200
    line = stage.server.backend.audit.newest(1)[0]
    assert (line["decision"], line["target"]) == ("refused", path)


@pytest.mark.parametrize("said", ["Sec-Fetch-Site", "Origin"])
def test_a_form_of_this_server_acts(stage: Stage, said: str) -> None:
    visitor = stage.visitor("operator")
    visitor.http.headers.pop("Sec-Fetch-Site")
    value = {"Sec-Fetch-Site": "same-origin", "Origin": stage.server.url}[said]
    answer = visitor.http.post("/sign-out", headers={said: value}, data={"a": "b"})
    assert answer.status_code == 303


def test_behind_a_proxy_the_origin_is_the_public_one(tmp_path: Path) -> None:
    own = {"public_url": "https://ads.example"}
    with running(settings_in(tmp_path, service=own)) as server:
        for origin, status in (("https://ads.example", 401), (server.url, 403), (None, 403)):
            headers = {"Accept": "text/html"} | ({"Origin": origin} if origin else {})
            sent = httpx.post(f"{server.url}/sign-in", data={"key": "x"}, headers=headers)
            assert sent.status_code == status, origin


@pytest.mark.parametrize(
    ("body", "media_type", "status"),
    [
        (b"key=" + b"x" * 300_000, "application/x-www-form-urlencoded", 413),
        (b"key=%ff", "application/x-www-form-urlencoded", 400),
        (b"key=\xff", "application/x-www-form-urlencoded", 400),
        (b"&".join(b"a=1" for _ in range(200)), "application/x-www-form-urlencoded", 400),
        (b'{"key": ""}', "application/json", 415),
        (b"", "", 415),
    ],
    ids=["large", "no UTF-8", "no ASCII", "many fields", "JSON", "nothing"],
)
def test_odd_forms_are_refused(nobody: Visitor, body: bytes, media_type: str, status: int) -> None:
    answer = nobody.http.post("/sign-in", content=body, headers={"Content-Type": media_type})
    assert answer.status_code == status
