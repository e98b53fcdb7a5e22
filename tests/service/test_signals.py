"""Ctrl-C and SIGTERM at any moment of a start: a server ends, and nobody has to press twice."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from adsbpc.cli.serve import hearing_signals
from adsbpc.service.backend import open_backend
from adsbpc.service.server import Server
from tests.service.processes import prepared, start
from tests.service.running import settings_in


@pytest.mark.parametrize("delay", [0, 0.01, 0.05, 0.2])
def test_an_interrupt_while_it_starts_is_heard(tmp_path: Path, delay: float) -> None:
    config, backend = prepared(tmp_path)
    backend.store.close()
    backend.presence.close()
    served = start(config)
    time.sleep(delay)
    os.kill(served.pid, signal.SIGINT)
    # One is enough: this one only waits.
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.kill(served.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    served.kill()
    raise AssertionError("it did not hear it")


def test_what_came_before_the_server_could_hear_ends_it(tmp_path: Path) -> None:
    backend = open_backend(settings_in(tmp_path))
    server = Server(backend, told_to_stop=lambda: True)
    server.run(sockets=[server.listen()])
    assert server.should_exit


def test_a_signal_is_noted_and_raised_at_the_end() -> None:
    seen = []

    def interrupted() -> None:
        with hearing_signals() as heard:
            signal.raise_signal(signal.SIGINT)
            seen.append(heard.is_set())

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert seen == [True]
    with hearing_signals() as heard:
        signal.raise_signal(signal.SIGINT)
        heard.clear()
