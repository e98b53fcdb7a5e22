"""Structured logs: one JSON object a line on stderr.

Must never hold personal data: no event, no user id, no key, no text of an engine's error, which may
quote a row.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from adsbpc.errors import AdsbpcError, EngineError

_LOG = logging.getLogger("adsbpc.service")


class JsonLines(logging.Formatter):
    """What happened, and the fields that were handed over with it. Of an exception only its kind
    and the place."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = record.exc_info[0].__name__
            line["place"] = _place(record.exc_info[2])
        return json.dumps(line, default=str)


def log(event: str, level: int = logging.INFO, **fields: Any) -> None:
    _LOG.log(level, event, extra={"fields": fields})


def log_failure(event: str, error: BaseException, **fields: Any) -> None:
    _LOG.error(event, extra={"fields": fields}, exc_info=error)


def to_stderr() -> None:
    """For a server process; nothing is set up at import."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("adsbpc", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(logging.INFO)
    logging.getLogger("uvicorn.error").addFilter(_is_no_warning)


def _is_no_warning(record: logging.LogRecord) -> bool:
    """uvicorn's are about what anybody sends, a line each time, and do not say who."""
    return record.levelno != logging.WARNING


def public_text(error: AdsbpcError) -> str:
    """What may be shown and stored of an error: an engine's own words may quote a row."""
    if isinstance(error, EngineError):
        return (
            f"{error.engine} failed in step {error.step!r}. Run adsbpc release --dry-run on the "
            "server's machine to see why"
        )
    return str(error)


def _place(trace: TracebackType | None) -> str:
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(trace)]
    return "{}:{}".format(*places[-1]) if places else ""
