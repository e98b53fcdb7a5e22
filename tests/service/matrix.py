"""Who may ask what: everybody who may come to a server, and the table of its endpoints."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import httpx
import pyarrow.parquet as pq

from adsbpc.model.slots import to_microseconds
from adsbpc.service.auth.permissions import Role
from adsbpc.service.auth.sessions import cookie_name
from adsbpc.service.http.app import PAGES
from adsbpc.service.ingest.rows import Source
from tests.service.running import Running, content

DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
NEXT_DAY = DAY + timedelta(days=1)
NOWHERE = "0" * 32
NUMBERS = count(1)
Headers = dict[str, str]
# Of one advertiser each, released to the end, so that their streams end.
TENANTS = ("Ad-1", "Ad-2")


@dataclass(frozen=True)
class World:
    """A server with a campaign of each advertiser, and headers for everybody who may ask."""

    server: Running
    campaigns: dict[str, str]
    callers: dict[str, Headers]
    # The server keeps a connection that is not used for five seconds.
    http: httpx.Client = field(
        default_factory=lambda: httpx.Client(timeout=30, limits=httpx.Limits(keepalive_expiry=2))
    )

    def send(self, method: str, path: str, caller: str, call: Call) -> httpx.Response:
        try:
            headers = {**call.headers, **self.callers[caller]}
            url = self.server.url + path
            return self.http.request(method, url, content=call.body(), headers=headers)
        finally:
            self.http.cookies.clear()
            # Wrong keys are sent on purpose here, more than anybody may.
            self.server.backend.throttle.record_success("127.0.0.1")


@dataclass(frozen=True)
class Call:
    """`allowed` is what each role is answered; who is not named there gets 403, and who is nobody
    gets 401."""

    allowed: dict[str, int]
    body: Callable[[], str] = str
    headers: Headers = field(default_factory=lambda: {"Content-Type": "application/json"})
    is_open: bool = False
    of_campaign: bool = False
    # Whether it changes a campaign, and is tried on one that nothing else asks for.
    of_new_campaign: bool = False


def new_campaign(advertiser: str = "Ad-1") -> dict[str, Any]:
    own = {"advertiser": advertiser, "start": "2026-04-01"}
    return content(name=f"another {next(NUMBERS)}", scope=f"scope {next(NUMBERS)}", **own)


def new_content() -> str:
    return json.dumps(new_campaign())


def new_key() -> str:
    return json.dumps({"role": "reader", "label": f"reader {next(NUMBERS)}"})


def no_rows() -> str:
    return "[]"


def push(role: str) -> Call:
    headers = {"Content-Type": "application/json", "Idempotency-Key": "matrix"}
    return Call({role: 200}, no_rows, headers)


def steer(status: int) -> Call:
    return Call({"operator": status}, of_campaign=True, of_new_campaign=True)


READERS = {"operator": 200, "advertiser": 200, "reader of one": 200, "reader of all": 200}
OPERATOR = {"operator": 200}
EVERYBODY = {**READERS, "publisher": 200}
# The table of docs/service.md. Every endpoint of the OpenAPI document has to be here.
TABLE = {
    ("POST", "/v1/impressions"): push("publisher"),
    ("POST", "/v1/conversions"): push("advertiser"),
    ("GET", "/v1/deliveries"): Call({"publisher": 200, "advertiser": 200}),
    ("POST", "/v1/plan"): Call(OPERATOR, new_content),
    ("GET", "/v1/campaigns"): Call(READERS),
    ("POST", "/v1/campaigns"): Call({"operator": 201}, new_content),
    ("GET", "/v1/campaigns/{campaign}"): Call(READERS, of_campaign=True),
    ("DELETE", "/v1/campaigns/{campaign}"): steer(204),
    ("POST", "/v1/campaigns/{campaign}/pause"): steer(200),
    ("POST", "/v1/campaigns/{campaign}/resumption"): steer(200),
    # One that has not started has nothing to return.
    ("POST", "/v1/campaigns/{campaign}/closing"): steer(409),
    ("PUT", "/v1/campaigns/{campaign}/spend"): Call(
        {"operator": 200, "advertiser": 200}, lambda: '{"rows": []}', of_campaign=True
    ),
    ("GET", "/v1/campaigns/{campaign}/assignment"): Call(
        {"operator": 200, "advertiser": 200}, of_campaign=True
    ),
    ("GET", "/v1/campaigns/{campaign}/verification"): Call(OPERATOR, of_campaign=True),
    ("GET", "/v1/campaigns/{campaign}/releases"): Call(READERS, of_campaign=True),
    ("POST", "/v1/campaigns/{campaign}/releases"): Call(OPERATOR, of_campaign=True),
    ("GET", "/v1/campaigns/{campaign}/releases/{slot}"): Call(READERS, of_campaign=True),
    ("GET", "/v1/campaigns/{campaign}/report"): Call(READERS, of_campaign=True),
    ("GET", "/v1/campaigns/{campaign}/statement"): Call(READERS, of_campaign=True),
    ("GET", "/v1/campaigns/{campaign}/stream"): Call(READERS, of_campaign=True),
    ("GET", "/v1/whoami"): Call(EVERYBODY),
    ("GET", "/v1/keys"): Call(OPERATOR),
    ("POST", "/v1/keys"): Call({"operator": 201}, new_key),
    ("DELETE", "/v1/keys/{key_id}"): Call({"operator": 204}),
    ("GET", "/v1/operations"): Call(OPERATOR),
    ("GET", "/signing-key"): Call({}, is_open=True),
    ("GET", "/healthz"): Call({}, is_open=True),
    ("GET", "/readyz"): Call({}, is_open=True),
    ("GET", "/metrics"): Call({}, is_open=True),
}
NOBODIES = ("no key", "wrong key", "revoked key", "expired key", "key as a cookie", "wrong session")
ROLES = ("operator", "publisher", "advertiser", "reader of one", "reader of all")
SESSIONS = ("signed in", "signed in, another site", "signed in, this site")
# Pages that anybody may open.
OPEN_PAGES = {"/sign-in", "/docs", "/static/{file}", "/openapi.json"}


def impression(user: str, **fields: Any) -> dict[str, Any]:
    return {
        "user_id": user,
        "publisher_id": "P-1",
        "advertiser_id": "Ad-1",
        "timestamp": DAY,
        "kind": "click",
        **fields,
    }


def conversion(user: str, **fields: Any) -> dict[str, Any]:
    return {"user_id": user, "advertiser_id": "Ad-1", "timestamp": DAY, **fields}


def callers_of(server: Running) -> dict[str, Headers]:
    def bearer(key: str) -> Headers:
        return {"Authorization": f"Bearer {key}"}

    backend = server.backend
    operator, text = backend.keys.create(Role.OPERATOR, "", "operator", None)
    revoked, revoked_text = backend.keys.create(Role.OPERATOR, "", "revoked", None)
    # Who uses it waits until then.
    soon = to_microseconds(datetime.now(UTC) + timedelta(seconds=1))
    _, expired_text = backend.keys.create(Role.OPERATOR, "", "expired", soon)
    assert backend.keys.revoke(revoked.key_id)
    cookie, token = cookie_name(over_tls=False), backend.sessions.open(operator.key_id)
    signed_in = {"Cookie": f"{cookie}={token}"}
    return {
        "operator": bearer(text),
        "publisher": bearer(server.key("publisher", "P-1")),
        "advertiser": bearer(server.key("advertiser", "Ad-1")),
        "reader of one": bearer(server.key("reader", "Ad-1")),
        "reader of all": bearer(server.key("reader")),
        "no key": {},
        "wrong key": bearer(text[:-2] + ("AA" if text[-2:] != "AA" else "BB")),
        "revoked key": bearer(revoked_text),
        "expired key": bearer(expired_text),
        "key as a cookie": {"Cookie": f"{cookie}={text}"},
        "wrong session": {"Cookie": f"{cookie}={'A' * 43}"},
        "signed in": signed_in,
        "signed in, another site": {**signed_in, "Origin": "https://evil.example"},
        "signed in, this site": {**signed_in, "Origin": server.url},
    }


def pages() -> list[tuple[str, str]]:
    """Every page of the dashboard: method and path."""
    found = [("GET", "/openapi.json")]
    for page in PAGES:
        for route in page.router.routes:
            found += [(method, route.path) for method in route.methods]
    assert len(found) > 10
    return sorted(found)


def users_on_disk(server: Running, source: Source) -> list[str]:
    files = [path for tenant in TENANTS for path in server.backend.files.live(source, tenant)]
    return [user for path in set(files) for user in pq.read_table(path)["user_id"].to_pylist()]
