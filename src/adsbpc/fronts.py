"""Fronts of packages whose names are imported when they are first asked for.

Such a front imports its names below `if TYPE_CHECKING:`, for readers and type checkers, and that is
where this looks up the module of each: so a command loads what it uses, not everything that there
is.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_front(package: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package. No name may be that of a module, which would hide it."""

    @cache
    def modules() -> dict[str, str]:
        source = Path(str(sys.modules[package].__file__)).read_text(encoding="utf-8")
        return {
            alias.name: str(statement.module)
            for statement in ast.walk(ast.parse(source))
            if isinstance(statement, ast.ImportFrom)
            for alias in statement.names
        }

    def find(name: str) -> Any:
        if name.startswith("__") or name not in modules():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(modules()[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
