"""Folders that are full or read-only, also for the superuser: mounts in a namespace of its own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def in_a_small_world(mount: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command after a shell line that mounts something only it will see."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is missing: full disks and read-only folders are NOT TESTED")
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", f'{mount} && exec "$0" "$@"',
         *command],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    if "unshare failed" in done.stderr or "permission denied" in done.stderr.lower():
        pytest.skip(f"no namespace here, full disks are NOT TESTED: {done.stderr.strip()}")
    return done


def read_only(directory: Path) -> str:
    return f"mount --bind '{directory}' '{directory}' && mount -o remount,bind,ro '{directory}'"


def small(directory: Path, kilobytes: int) -> str:
    return f"mount -t tmpfs -o size={kilobytes}k tmpfs '{directory}'"


def fill_and_free(room: int, out: Path) -> str:
    """A script: release with so many KiB left on the disk, then again with all of it. Prints both
    exit codes; what the commands say is in `out`."""
    return f"""
free=$(df --output=avail . | tail -n 1)
head -c $(( (free - {room}) * 1024 )) /dev/zero > ballast
adsbpc release spring.toml --json > '{out}/first'; full=$?
rm ballast
adsbpc release spring.toml --json > '{out}/second'; freed=$?
adsbpc status spring.toml --verify --json > '{out}/status'
echo $full $freed"""
