"""Moments, spans of time, numbers and code as pages write them."""

from __future__ import annotations

from datetime import UTC, datetime

from markupsafe import Markup

from adsbpc.model.slots import to_moment

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def moment(value: int | str | datetime) -> Markup:
    """In UTC, for people and for programs.

    >>> moment(0)
    Markup('<time datetime="1970-01-01T00:00:00+00:00">1 Jan 1970, 00:00 UTC</time>')
    """
    found = value if isinstance(value, datetime) else _parsed(value)
    found = found.astimezone(UTC)
    shown = f"{found.day} {found:%b %Y, %H:%M} UTC"
    return Markup('<time datetime="{}">{}</time>').format(
        found.isoformat(timespec="seconds"), shown
    )


def _parsed(value: int | str) -> datetime:
    return to_moment(value) if isinstance(value, int) else datetime.fromisoformat(value)


def span(seconds: float) -> str:
    """Roughly, in one unit.

    >>> span(5400), span(90_000), span(1), span(0)
    ('2 hours', '1 day', '1 second', '0 seconds')
    """
    size, unit = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    count = int(seconds / size + 0.5)
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def number(value: int) -> str:
    return f"{value:,}"


def coded(text: str) -> Markup:
    """What stands between backticks as code.

    >>> coded("send `a<b`, then wait")
    Markup('send <code>a&lt;b</code>, then wait')
    """
    parts = enumerate(text.split("`"))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part for place, part in parts
    )
