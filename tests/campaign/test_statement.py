"""Statements: every figure is that of ledger and plan, nothing exact is in them, names stay text,
and signatures are those of the file."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from adsbpc import Campaign
from adsbpc.lab.journeys import make_campaign
from adsbpc.report.statement import Statement, schema
from tests.campaign.files import edit, write_campaign
from tests.campaign.stated import changed, faults, figures
from tests.cli.program import adsbpc
from tests.report.outline import Outline

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's campaign, smaller, and released to its end."""
    folder = tmp_path_factory.mktemp("demo")
    made = make_campaign(folder, 300, 4, 1, "uniform")
    Campaign.load(made.spec).release()
    return folder


@pytest.fixture(scope="module")
def stated(demo: Path) -> dict[str, Any]:
    done = adsbpc("statement", "campaign.toml", "--json", cwd=demo)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def plan(demo: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(adsbpc("plan", "campaign.toml", "--json", cwd=demo).stdout)
    return found


def test_every_figure_is_that_of_ledger_and_plan(
    demo: Path, stated: dict[str, Any], plan: dict[str, Any]
) -> None:
    assert faults(stated, demo, plan) == []


def test_a_wrong_figure_is_found(demo: Path, stated: dict[str, Any], plan: dict[str, Any]) -> None:
    paths = figures(stated)
    assert len(paths) > 100
    for path in paths:
        forged = copy.deepcopy(stated)
        *parents, last = path.strip("/").split("/")
        place: Any = forged
        for name in parents:
            place = place[int(name) if isinstance(place, list) else name]
        key: Any = int(last) if isinstance(place, list) else last
        place[key] = changed(place[key])
        # The Python that writes a statement need not be the one that released.
        assert faults(forged, demo, plan) or path == "/software/python", path


def test_pages_have_the_figures_of_the_json(demo: Path, stated: dict[str, Any]) -> None:
    statement = Statement.model_validate(stated)
    (own,) = statement.campaigns
    page, text = Outline(statement.to_html()).words, statement.to_markdown()
    for shown in (page, text):
        for release in own.releases:
            assert release.sha256 in shown
            assert all(f"{charge.pico_rho:,}" in shown for charge in release.charges)
        assert f"{statement.scope_spent_pico_rho:,}" in shown
        assert statement.software.code_sha256 in shown
        assert all(each.name in shown for each in own.audit.claims) if own.audit else False
    assert "<script" not in statement.to_html()


def test_nothing_exact_of_the_audit_is_told(demo: Path, stated: dict[str, Any]) -> None:
    """People are counted in the details of its claims."""
    details = [each.detail for each in Campaign.load(demo / "campaign.toml").audit().claims]
    assert any("people" in each for each in details)
    text = json.dumps(stated)
    assert not [each for each in details if each in text]
    assert {frozenset(each) for each in stated["campaigns"][0]["audit"]["claims"]} == {
        frozenset({"name", "held"})
    }


def test_a_broken_claim_is_told_and_ends_with_1(demo: Path, tmp_path: Path) -> None:
    shutil.copytree(demo, tmp_path / "demo")
    file = next((tmp_path / "demo").glob("adsbpc-books/**/*.parquet"))
    file.write_bytes(b"changed")
    done = adsbpc("statement", "campaign.toml", "--json", cwd=tmp_path / "demo")
    assert done.returncode == 1
    (own,) = json.loads(done.stdout)["campaigns"]
    assert not own["audit"]["held"]
    assert any(not each["held"] for each in own["audit"]["claims"])
    assert any("NOT ALL OF ITS CLAIMS HOLD" in each["answer"] for each in own["hazards"])


def test_before_the_first_release_there_is_a_promise(tmp_path: Path) -> None:
    file = write_campaign(tmp_path)
    statement = Campaign.load(file).statement(audited=False)
    (own,) = statement.campaigns
    assert statement.ledger is None
    assert own.releases == ()
    assert own.audit is None
    assert own.measures[0].limit is None
    assert own.budget.limit_pico_rho == 10**12
    assert own.budget.spent_pico_rho == 0
    assert "Not run for this statement." in statement.to_markdown()


def test_what_a_campaign_lacks_is_no_hazard_that_is_met(tmp_path: Path) -> None:
    file = write_campaign(tmp_path / "plain")
    watched = write_campaign(tmp_path / "watched", witness="elsewhere.json")
    standings = [
        {
            each.hazard: each.standing
            for each in Campaign.load(one).statement(audited=False).campaigns[0].hazards
        }
        for one in (file, watched)
    ]
    backup = "An old backup of the ledger is put back, which would refund budget"
    assert [each[backup] for each in standings] == ["met in part", "met"]
    # rho = 1 is weak, and no audit was run.
    assert standings[0]["The parameters are too weak to mean much"] == "met in part"
    assert standings[0]["The implementation has mistakes"] == "met in part"


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    name = "</title><script>alert(1)</script> | **b**"
    file = write_campaign(tmp_path)
    edit(file, 'name = "spring"', f'name = "{name}"')
    statement = Campaign.load(file).statement(audited=False)
    page = statement.to_html()
    assert "<script" not in page
    assert name in Outline(page).words
    text = statement.to_markdown()
    assert "<script" not in text.replace("\\<script", "")
    assert "\\*\\*b\\*\\*" in text


def test_the_schema_of_the_documents_is_that_of_the_code(stated: dict[str, Any]) -> None:
    kept = json.loads((ROOT / "docs" / "statement.schema.json").read_text())
    assert kept == json.loads(json.dumps(schema())), "run python docs/statement.py"
    assert json.loads(Statement.from_text(json.dumps(stated)).to_json()) == stated


def test_a_signature_is_of_the_file_and_the_key(demo: Path, tmp_path: Path) -> None:
    for name in ("key", "other"):
        _openssl("genpkey", "-algorithm", "ed25519", "-out", f"{name}.pem", cwd=tmp_path)
        _openssl("pkey", "-in", f"{name}.pem", "-pubout", "-out", f"{name}.pub", cwd=tmp_path)
    out = tmp_path / "statement.html"
    signed = adsbpc(
        *("statement", demo / "campaign.toml", "--no-audit", "--out", out, "--sign", "key.pem"),
        cwd=tmp_path,
    )
    assert signed.returncode == 0, signed.stderr
    held = adsbpc("verify", out, "--key", "key.pub", cwd=tmp_path)
    assert (held.returncode, "not changed since" in held.stdout) == (0, True)
    # Whoever has no adsbpc can check it as well.
    signature = tmp_path / "raw.sig"
    encoded = (tmp_path / "statement.html.sig").read_bytes()
    signature.write_bytes(subprocess.run(
        ["openssl", "base64", "-d", "-A"], input=encoded.strip(), capture_output=True, check=True
    ).stdout)  # fmt: skip
    _openssl(
        *("pkeyutl", "-verify", "-pubin", "-inkey", "key.pub", "-rawin", "-in", "statement.html"),
        *("-sigfile", "raw.sig"),
        cwd=tmp_path,
    )
    assert adsbpc("verify", out, "--key", "other.pub", cwd=tmp_path).returncode == 1
    out.write_text(out.read_text().replace("spring", "winter"))
    lost = adsbpc("verify", out, "--key", "key.pub", "--json", cwd=tmp_path)
    assert (lost.returncode, json.loads(lost.stdout)["signed"]) == (1, False)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--format", "pdf"], "expected one of html, json, md"),
        (["--sign", "key.pem"], "Add --out FILE"),
        (["--out", "s.json", "--sign", "campaign.toml"], "openssl genpkey"),
        (["--out", "s.json", "--sign", "missing.pem"], "openssl genpkey"),
        (["--out", "campaign.toml", "--format", "md"], "campaign.toml"),
    ],
)
def test_bad_usage_names_the_next_step(tmp_path: Path, arguments: list[str], told: str) -> None:
    write_campaign(tmp_path)
    done = adsbpc("statement", "campaign.toml", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_missing_signature_names_the_next_step(tmp_path: Path) -> None:
    _openssl("genpkey", "-algorithm", "ed25519", "-out", "key.pem", cwd=tmp_path)
    _openssl("pkey", "-in", "key.pem", "-pubout", "-out", "key.pub", cwd=tmp_path)
    (tmp_path / "statement.md").write_text("text")
    done = adsbpc("verify", "statement.md", "--key", "key.pub", cwd=tmp_path)
    assert done.returncode == 1
    assert "statement.md.sig" in done.stderr
    assert "--sign KEY" in done.stderr


def _openssl(*arguments: str, cwd: Path) -> None:
    subprocess.run(["openssl", *arguments], cwd=cwd, capture_output=True, check=True)
