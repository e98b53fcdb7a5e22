"""The public list of publishers in a file of its own, one name a line."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from adsbpc.model.rules import cause_of
from adsbpc.model.section import Name
from adsbpc.model.toml import MisfitError

# Some fifty thousand names: a larger file is another one, named by mistake.
_MOST_BYTES = 1_000_000
_LONGEST_SHOWN = 60


def with_listed_publishers(content: Any) -> Any:
    """What a campaign file says, with the names themselves where it names a file of them.

    The list is a part of the promise: a file that changes later must be found out.
    """
    file = publisher_file(content)
    if file is None:
        return content
    return {**content, "campaign": {**content["campaign"], "publishers": _names_in(file)}}


def publisher_file(content: Any) -> Path | None:
    """The file that a campaign file lists its publishers in, if it does."""
    section = content.get("campaign") if isinstance(content, Mapping) else None
    named = section.get("publishers") if isinstance(section, Mapping) else None
    if not isinstance(named, str):
        return None
    directory = content.get("directory", "")
    return Path(directory if isinstance(directory, str | Path) else "") / named


def _names_in(file: Path) -> list[str]:
    lines, one_name = dict[str, int](), TypeAdapter(Name)
    # Line breaks are those of Unix, Windows and old Macs; other signs that may break lines are a
    # part of a name, and refused there.
    for number, line in enumerate(StringIO(_text_of(file), newline=None), start=1):
        name = line.strip()
        if not name or name.startswith("#"):
            continue
        shown = repr(name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}...")
        if name in lines:
            raise _problem(file, f"line {number} repeats {shown} of line {lines[name]}. Remove one")
        try:
            one_name.validate_python(name)
        except ValidationError as error:
            rule = cause_of(error)
            raise _problem(
                file, f"line {number}, {shown}: {rule}. Correct it: one name a line"
            ) from None
        lines[name] = number
    if not lines:
        raise _problem(file, "the file has no names. Write one a line")
    return list(lines)


def _text_of(file: Path) -> str:
    try:
        with file.open("rb") as source:
            content = source.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        draft = file.with_name(f"{file.stem}.draft{file.suffix}")
        if isinstance(error, FileNotFoundError) and draft.exists():
            raise _problem(
                file,
                f"the list is still a draft, {draft.name}. Read it, take out what is not public "
                "anyway, and rename it to this",
            ) from None
        cause = getattr(error, "strerror", None) or str(error)
        raise _problem(
            file, f"the file cannot be read ({cause}). Check the path, or give a list of names"
        ) from None
    if len(content) > _MOST_BYTES:
        raise _problem(
            file,
            f"the file has more than {_MOST_BYTES:,} bytes. Check that it is a list of publishers, "
            "one name a line",
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _problem(
            file, f"the file is not text in UTF-8 (byte {error.start + 1}). Save it as UTF-8"
        ) from None


def _problem(file: Path, rule: str) -> MisfitError:
    return MisfitError(rule, "campaign", "publishers", value=repr(str(file)))
