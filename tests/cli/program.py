"""The program: within the process of the tests, or as people run it, in one of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NoReturn
from unittest import mock

from adsbpc.cli.main import main


def adsbpc(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program here, which saves starting it: seconds for each command."""
    command = ["adsbpc", *map(str, arguments)]
    stdout, stderr = _stream(), _stream()
    with (
        mock.patch.object(sys, "argv", command),
        mock.patch.dict(os.environ, environment),
        _in_folder(cwd),
        _survived_exits(),
        redirect_stdout(stdout),
        redirect_stderr(stderr),
    ):
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return subprocess.CompletedProcess(command, code, _written(stdout), _written(stderr))


def in_a_process(
    *arguments: object, cwd: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "adsbpc", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=cwd,
        env={**os.environ, **environment},
    )  # fmt: skip


def _stream() -> io.TextIOWrapper:
    # As a pipe is: text over bytes, and no terminal.
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


@contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def _survived_exits() -> Iterator[None]:
    """The program ends at once when its output cannot be written; the tests go on."""
    here, end = os.getpid(), os._exit

    def leave(code: int) -> NoReturn:
        if os.getpid() != here:
            end(code)
        raise SystemExit(code)

    with mock.patch.object(os, "_exit", leave):
        yield
