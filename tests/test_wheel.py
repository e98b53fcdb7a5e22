"""The wheel, in an environment that has nothing else: all files are in it, all needs are named."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[1]
UV = shutil.which("uv", path=str(Path(sys.executable).parent))


def run(*command: object, cwd: Path) -> str:
    # Nothing of the environment of the tests.
    kept = {name: os.environ[name] for name in os.environ if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(each) for each in command], cwd=cwd, env=kept, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(UV is None, reason="uv, which make setup installs, is not here")
def test_the_wheel_runs_in_an_empty_environment(tmp_path: Path) -> None:
    run(
        sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist", cwd=ROOT
    )
    (wheel,) = (tmp_path / "dist").iterdir()
    run(UV, "venv", "--python", sys.executable, tmp_path / "empty", cwd=tmp_path)
    python, adsbpc = (tmp_path / "empty" / "bin" / name for name in ("python", "adsbpc"))
    # The versions of the lock file.
    install = (UV, "pip", "install", "--python", python, "-c", ROOT / "requirements" / "dev.txt")

    run(*install, wheel, cwd=tmp_path)
    run(adsbpc, "demo", "--directory", "demo", "--users", 300, "--slots", 3, cwd=tmp_path)
    assert "</html>" in (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")

    run(*install, f"{wheel}[service]", cwd=tmp_path)
    server = subprocess.Popen(
        [adsbpc, "serve", "--port", "0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().split()[2]
        page = httpx.get(f"{url}/sign-in", trust_env=False, timeout=60)
        assert page.status_code == 200
        styles = page.text.partition('rel="stylesheet" href="')[2].partition('"')[0]
        assert httpx.get(f"{url}{styles}", trust_env=False, timeout=60).status_code == 200
    finally:
        server.terminate()
        server.wait(60)
