"""Statements in the service: of what is visible, of one campaign or its scope, audited for
operators."""

from __future__ import annotations

import io
import json
import subprocess
import zipfile
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from adsbpc import Client
from adsbpc.client import ClientError
from adsbpc.errors import SpecError
from adsbpc.report import signing
from adsbpc.service.backend import open_backend
from tests.service.clocks import SetClock
from tests.service.raw import http
from tests.service.running import Running, content, running, settings_in, with_signing_key

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    settings = settings_in(tmp_path_factory.mktemp("stated"), scheduler={"enabled": False})
    with running(settings, SetClock(START)) as found:
        yield found


def stated(client: Client, campaign: str, **query: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(client.statement(campaign, **query))
    return found


def test_a_statement_tells_what_is_visible(server: Running) -> None:
    operator, reader = server.client("operator"), server.client("reader", "Ad-1")
    both: dict[str, Any] = {"privacy": {"rho": 1.0, "scope_rho": 2.0}}
    campaign = operator.create_campaign({**content(name="spring", scope="acme"), **both})["id"]
    other = operator.create_campaign({**content(name="summer", scope="acme"), **both})["id"]
    assert stated(reader, campaign)["campaigns"][0]["releases"] == []
    assert isinstance(server.backend.clock, SetClock)
    server.backend.clock.moment = START + DAY
    operator.release(campaign)
    # It is charged, and nobody sees it before its moment.
    hidden = stated(reader, campaign)
    assert hidden["campaigns"][0]["releases"] == []
    assert (hidden["scope_spent_pico_rho"], hidden["ledger"]) == (0, None)
    server.show(campaign)
    seen = stated(reader, campaign)
    (release,) = seen["campaigns"][0]["releases"]
    charged = sum(each["pico_rho"] for each in release["charges"])
    assert seen["scope_spent_pico_rho"] == charged > 0
    assert seen["ledger"] == {
        "position": release["ledger_position"],
        "hash": release["ledger_hash"],
    }
    assert seen["campaigns"][0]["audit"] is None
    scope = stated(reader, other, of="scope")
    assert [each["name"] for each in scope["campaigns"]] == ["summer", "spring"]
    assert [len(each["releases"]) for each in scope["campaigns"]] == [0, 1]


def test_the_audit_is_for_operators(server: Running) -> None:
    operator = server.client("operator")
    campaign = operator.create_campaign(content())["id"]
    assert isinstance(server.backend.clock, SetClock)
    server.backend.clock.moment = START + DAY
    operator.release(campaign)
    server.show(campaign)
    assert stated(operator, campaign, audit=True)["campaigns"][0]["audit"]["held"]
    with pytest.raises(ClientError) as refused:
        server.client("reader", "Ad-1").statement(campaign, audit=True)
    assert refused.value.status == 403
    page = operator.statement(campaign, format="html").decode()
    assert page.startswith("<!doctype html>")
    assert operator.statement(campaign, format="md").startswith(b"# ")


@pytest.fixture
def signing_server(tmp_path: Path) -> Iterator[Running]:
    statements = with_signing_key(tmp_path)
    settings = settings_in(tmp_path, scheduler={"enabled": False}, statements=statements)
    with running(settings, SetClock(START)) as found:
        yield found


@pytest.mark.parametrize("form", ["json", "html", "md"])
def test_statements_are_signed_as_on_the_command_line(
    signing_server: Running, tmp_path: Path, form: str
) -> None:
    operator, reader = signing_server.client("operator"), signing_server.client("reader", "Ad-1")
    campaign = operator.create_campaign(content())["id"]
    # An auditor has no key of the service, and needs none for that.
    answer = http().get(f"{signing_server.url}/signing-key")
    assert answer.content == reader.signing_key()
    (tmp_path / "public.pem").write_bytes(answer.content)
    key = signing.public_key(tmp_path / "public.pem")
    with zipfile.ZipFile(io.BytesIO(reader.statement(campaign, form, signed=True))) as archive:
        archive.extractall(tmp_path)
    file = tmp_path / f"spring.statement.{form}"
    assert signing.is_signed(file, key)
    file.write_bytes(file.read_bytes().replace(b"spring", b"winter"))
    assert not signing.is_signed(file, key)
    # The same without an archive, in a header; checked by what is not ours.
    url = f"{signing_server.url}/v1/campaigns/{campaign}/statement?format={form}"
    bearer = {"Authorization": f"Bearer {signing_server.key('reader', 'Ad-1')}"}
    plain = http().get(url, headers=bearer)
    (tmp_path / "plain").write_bytes(plain.content)
    (tmp_path / "raw.sig").write_bytes(b64decode(plain.headers["adsbpc-signature"], validate=True))
    subprocess.run(
        ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "public.pem", "-rawin", "-in",
         "plain", "-sigfile", "raw.sig"],
        cwd=tmp_path, capture_output=True, check=True,
    )  # fmt: skip


def test_the_private_key_stays_where_it_is(signing_server: Running, tmp_path: Path) -> None:
    operator = signing_server.client("operator")
    secret = (tmp_path / "signing.pem").read_text().splitlines()[1]
    told = json.dumps(operator.operations())
    assert secret not in told
    assert "signing.pem" in told
    assert b"PRIVATE" not in operator.signing_key()


def test_without_a_key_nothing_is_signed_and_nothing_pretends_to_be(server: Running) -> None:
    operator = server.client("operator")
    campaign = operator.create_campaign(content())["id"]
    bearer = {"Authorization": f"Bearer {server.key('operator')}"}
    url = f"{server.url}/v1/campaigns/{campaign}/statement"
    assert "adsbpc-signature" not in http().get(url, headers=bearer).headers
    for ask in (operator.signing_key, lambda: operator.statement(campaign, signed=True)):
        with pytest.raises(ClientError) as refused:
            ask()
        assert refused.value.status == 404
        assert "[statements] signing_key" in refused.value.to_do


def test_a_server_does_not_start_with_a_key_that_signs_nothing(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("no key")
    for name in ("key.pem", "missing.pem"):
        settings = settings_in(tmp_path, statements={"signing_key": name})
        with pytest.raises(SpecError, match="openssl genpkey"):
            open_backend(settings)
