"""Every block of code in the documentation is run, or checked as far as it can be."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from adsbpc.cli.main import app
from adsbpc.errors import SpecError
from adsbpc.model import spec_of
from adsbpc.model.periods import Period, check_open, is_open, of_period
from adsbpc.service.settings import Settings
from tests.documents.pages import ROOT, RUN, Block, all_blocks, arguments, blocks, pages

# Blocks that hold no code: what a command prints, shapes of files, parts of the site.
_TEXT = ("", "text", "{toctree}", "{eval-rst}")
# Programs of others in commands that are shown, and why no test runs them.
_OTHERS = {
    "pip": "needs the network; its extras are compared with pyproject.toml",
    "make": "the targets of the Makefile, which are compared with it",
    "curl": "the service's tests send the same with another client",
    "sqlite3": "a tool of SQLite",
    "pg_dump": "a tool of PostgreSQL",
    "rsync": "copies files",
    "unzip": "unpacks files",
    "openssl": "makes a key",
    "export": "sets a variable of the shell",
    ".venv/bin/python": "an example, all of which are run",
}
_MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
_EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_no_block_is_of_a_kind_that_nobody_checks() -> None:
    known = {*_TEXT, "console", "python", "toml", "nginx", "sh", "yaml"}
    found = {each.language for page in pages() for each in blocks(page)}
    assert found <= known


@pytest.mark.parametrize("block", all_blocks("console"), ids=str)
def test_commands_that_are_shown_exist_as_they_are(block: Block) -> None:
    commands = block.commands()
    assert commands, "no line begins with a prompt"
    for command in commands:
        program, *given = arguments(command)
        if program == "adsbpc":
            _parse(given)
        elif block.page not in RUN:
            assert program in _OTHERS, f"{command}: run it, or say in _OTHERS why not"
        if program == "make":
            assert f"\n{given[0]}:" in _MAKEFILE, command
        if program == "pip":
            assert set(re.findall(r"\[(\w+)\]", command)) <= _EXTRAS.keys()


def _parse(given: list[str]) -> None:
    """As the program does, up to the point where it would run: unknown options are errors."""
    command: Any = get_command(app)
    context = command.make_context("adsbpc", given)
    while hasattr(command, "resolve_command"):
        name, command, given = command.resolve_command(context, given)
        context = command.make_context(name, list(given), parent=context)


def test_an_option_that_does_not_exist_is_found() -> None:
    with pytest.raises(Exception, match="No such option"):
        _parse(["release", "spring.toml", "--trough", "2026-03-01"])


@pytest.mark.parametrize("block", all_blocks("python"), ids=str)
def test_python_that_is_shown_is_python(block: Block) -> None:
    compile(block.text, block.page, "exec")


@pytest.mark.parametrize("block", all_blocks("toml"), ids=str)
def test_campaign_files_and_parts_of_them_are_valid(block: Block, tmp_path: Path) -> None:
    said = tomllib.loads(block.text)
    if "service" in said:
        Settings.model_validate(said)
        return
    (tmp_path / "publishers.txt").write_text("P-1\n")
    if "publishers" in said:
        said = {"campaign": said}
    campaign = {"name": "c", "advertiser": "Ad-1", "start": _day("2026-03-02"), "slots": 31}
    base = {
        "campaign": {**campaign, "publishers": ["P-1", "search"]},
        "events": {"impressions": "i.parquet", "conversions": "c.parquet"},
        "privacy": {"rho": 1.0},
    }
    whole = _merged(base, said)
    if "end" in whole["campaign"]:
        del whole["campaign"]["slots"]
    if "expected" in said:
        whole["measure"] = [
            {"name": name, **({"metric": "value", "value_cap": 200.0} if name == "revenue" else {})}
            for name in said["expected"]
        ]
    if any("arm" in each.get("by", ()) for each in whole.get("measure", ())):
        people = {"ads": 1_000, "control": 1_000}
        arms = {"table": "arms.csv", "arms": list(people), "people": people}
        whole.setdefault("lift", arms)
    shared = sum(each.get("share", 0) for each in whole.get("measure", ()))
    if 0 < shared < 1:
        whole["measure"].append({"name": "the rest", "share": round(1 - shared, 3)})
    if is_open(whole):
        start, renewal = check_open(whole, block.page)
        whole = of_period(whole, Period.of(start, renewal))
    try:
        spec_of(whole, tmp_path, block.page)
    except SpecError as error:
        pytest.fail(str(error))


def _day(text: str) -> Any:
    return tomllib.loads(f"day = {text}")["day"]


def _merged(base: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    both = {
        key: _merged(base[key], value) if isinstance(base.get(key), dict) else value
        for key, value in more.items()
    }
    return {**base, **both}
