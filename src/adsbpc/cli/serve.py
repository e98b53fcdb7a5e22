"""`adsbpc serve`: a server process."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from threading import Event
from types import FrameType

from adsbpc.cli.console import notes
from adsbpc.errors import ServiceError
from adsbpc.service.settings import Settings, load_settings


def run(config: Path | None, options: dict[str, str | int | None], show_config: bool) -> None:
    settings = _with_options(load_settings(config), options)
    if show_config:
        print(json.dumps(settings.without_secrets(), indent=2))
        return
    _check_installed()
    with hearing_signals() as stopping:
        _serve(settings, config, stopping)


@contextmanager
def hearing_signals() -> Iterator[Event]:
    """Notes SIGTERM and Ctrl-C from now on, also while nothing else would hear them: Python loses
    an interrupt that comes while a module is loaded. What came is raised again at the end,
    unless it was cleared."""
    heard, numbers = Event(), list[int]()

    def note(number: int, _frame: FrameType | None) -> None:
        numbers.append(number)
        heard.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if heard.is_set():
        signal.raise_signal(numbers[0])


def _serve(settings: Settings, config: Path | None, stopping: Event) -> None:
    from adsbpc.service.backend import open_backend
    from adsbpc.service.logs import to_stderr
    from adsbpc.service.server import Server, address_of, run_workers

    backend = open_backend(settings)
    if not backend.keys.has_operator():
        notes().print(
            "No operator can sign in yet. Make a key: "
            "adsbpc keys create --role operator --label me"
            + (f" --config {config}" if config else ""),
            style="bold yellow",
        )
    server = Server(backend, told_to_stop=stopping.is_set)
    opened = server.listen()
    if not (settings.over_tls or _is_loopback(settings.service.host)):
        notes().print(
            f"[service] host = {settings.service.host!r} is reached from other machines, and "
            "without TLS anybody in between can read keys and events. Put a proxy with TLS in "
            "front and set [service] public_url, or listen on 127.0.0.1.",
            style="bold yellow",
        )
    print(f"adsbpc serves {address_of(opened)} (Ctrl-C stops it)", flush=True)
    to_stderr()
    if settings.service.workers == 1:
        server.run(sockets=[opened])
    else:
        run_workers(settings, opened, stopping)
        # Heard, and done.
        stopping.clear()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _with_options(settings: Settings, options: dict[str, str | int | None]) -> Settings:
    given = {key: value for key, value in options.items() if value is not None}
    return settings.model_copy(update={"service": settings.service.model_copy(update=given)})


def _check_installed() -> None:
    missing = [name for name in ("fastapi", "uvicorn", "jinja2") if find_spec(name) is None]
    if missing:
        raise ServiceError(
            f"the service needs {missing[0]}, which is not installed. Install the extra: "
            "pip install 'adsbpc[service]'"
        )
