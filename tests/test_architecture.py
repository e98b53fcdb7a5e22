"""The rooms, the documents and the lock files hold what the README says of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_no_room_is_a_drawer() -> None:
    drawers = {"utils", "helpers", "common", "misc", "core"}
    assert not [p for p in (ROOT / "src").rglob("*.py") if {p.stem, p.parent.name} & drawers]


def test_every_module_says_what_it_owns() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        assert path.read_text(encoding="utf-8").startswith('"""'), path


LOCKS = [
    "requirements/dev.txt",
    "requirements/uv.txt",
    *(f"integrations/requirements/{tool}.txt" for tool in ("airflow", "dagster", "dbt")),
]


@pytest.mark.parametrize("lock", LOCKS)
def test_locks_carry_hashes_and_name_no_host(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert "://" not in text
    assert "index-url" not in text
    pinned = re.findall(r"^[a-z0-9][\w.\-\[\]]*==", text, flags=re.MULTILINE)
    assert pinned
    assert len(pinned) == len(re.findall(r"^[a-z0-9].*\\\n    --hash=sha256:", text, re.MULTILINE))


def test_every_command_is_documented() -> None:
    from adsbpc.cli.main import app

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    groups = [("adsbpc", app.registered_commands)]
    for group in app.registered_groups:
        assert group.typer_instance is not None
        groups.append((f"adsbpc {group.name}", group.typer_instance.registered_commands))
    assert len(groups) > 1
    for prefix, commands in groups:
        for command in commands:
            assert command.callback is not None
            assert f"{prefix} {command.name or command.callback.__name__}" in text


def test_every_room_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rooms = [p.name for p in (ROOT / "src" / "adsbpc").iterdir() if (p / "__init__.py").exists()]
    for room in rooms:
        assert f"`{room}/`" in text, room


def test_every_make_target_of_the_readme_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make ([a-z-]+)", (ROOT / "README.md").read_text(encoding="utf-8")):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
