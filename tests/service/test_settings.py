"""Settings: from a file, from the environment, checked, shown without secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adsbpc.errors import SpecError
from adsbpc.service.settings import load_settings


def write(directory: Path, text: str) -> Path:
    file = directory / "service.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_environment_overrules_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, '[service]\nport = 9000\ndata = "kept"\n[scheduler]\ngrace = "2m"\n')
    found = load_settings(file, {"ADSBPC_SERVICE_PORT": "9001", "PATH": "/bin"})
    assert found.service.port == 9001
    assert found.data == tmp_path.resolve() / "kept"
    assert found.scheduler.grace == 120_000_000


def test_without_a_file() -> None:
    found = load_settings(None, {})
    assert found.service.host == "127.0.0.1"
    assert found.data == Path.cwd() / "adsbpc-data"
    assert not found.over_tls


@pytest.mark.parametrize(
    ("text", "environment", "told"),
    [
        ("[service]\nprot = 1", {}, r"\[service\] prot: unknown key. Did you mean \"port\"\?"),
        ("[servce]\nport = 1", {}, r"\[servce\]: unknown key"),
        (
            '[scheduler]\ngrace = "15m"',
            {},
            r"\[scheduler\] publish_after = '15m': expected more than grace",
        ),
        (
            '[scheduler]\ngrace = "5m"\npublish_after = "5m"',
            {},
            r"\[scheduler\] publish_after = '5m': expected more than grace",
        ),
        ("[service]\nport = 70000", {}, r"\[service\] port = 70000: .*65535"),
        ('[scheduler]\ngrace = "soon"', {}, r"\[scheduler\] grace = 'soon'"),
        (
            '[scheduler]\ngrace = "0s"',
            {},
            r"\[scheduler\] grace = '0s': expected one second or more",
        ),
        ('[ingest]\ncompact_every = "0s"', {}, r"\[ingest\] compact_every = '0s'"),
        ('[service]\npublic_url = "ads.example"', {}, r"\[service\] public_url"),
        ("service = ", {}, "is not valid TOML"),
        ('directory = "/"', {}, r"unknown key \[directory\]"),
        ("", {"ADSBPC_SERVICE_PROT": "1"}, 'ADSBPC_SERVICE_PROT: no such.*"ADSBPC_SERVICE_PORT"'),
        ("", {"ADSBPC_SERVICE_PORT": "many"}, r"\[service\] port = 'many'"),
    ],
)
def test_bad_settings_are_told(
    tmp_path: Path, text: str, environment: dict[str, str], told: str
) -> None:
    with pytest.raises(SpecError, match=told):
        load_settings(write(tmp_path, text), environment)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nothing\.toml: cannot be read"):
        load_settings(tmp_path / "nothing.toml", {})


def test_shown_without_secrets(tmp_path: Path) -> None:
    hidden = "hunter2"
    file = write(
        tmp_path,
        f'[ledger]\nlocation = "postgresql://ads:{hidden}@host/db?password={hidden}"\n'
        f'[service]\ndatabase = "postgresql://ads:{hidden}@host/db"\n'
        f'[engine]\nname = "spark"\n'
        f'[engine.options]\n"spark.hadoop.fs.s3a.secret.key" = "{hidden}"\n'
        '"spark.master" = "local[2]"\n',
    )
    shown = load_settings(file, {}).without_secrets()
    assert hidden not in json.dumps(shown)
    assert shown["ledger"]["location"].startswith("postgresql://ads:***@host/db")
    assert shown["engine"]["options"]["spark.master"] == "local[2]"


def test_cookies_know_of_tls(tmp_path: Path) -> None:
    file = write(tmp_path, '[service]\npublic_url = "https://ads.example"')
    assert load_settings(file, {}).over_tls


def test_a_password_does_not_stand_in_what_is_told(tmp_path: Path) -> None:
    long = f"postgresql://ads:hunter2@host/{'d' * 300}"
    with pytest.raises(SpecError) as told:
        load_settings(write(tmp_path, f'[ledger]\nlocation = "{long}"'), {})
    assert "location" in str(told.value)
    assert "hunter2" not in str(told.value)
