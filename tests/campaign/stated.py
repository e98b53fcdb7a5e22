"""What a statement has to say, found again from the ledger's rows, the published files, the
campaign file and the plan, in code of its own."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import tomllib
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from fractions import Fraction
from hashlib import sha256
from importlib.metadata import version
from math import ceil, log
from pathlib import Path
from typing import Any

from scipy.optimize import minimize_scalar

import adsbpc

Leaf = str | int | float | bool | None
PICO = 10**12


def faults(statement: dict[str, Any], folder: Path, plan: dict[str, Any]) -> list[str]:
    """Leaves that are not as they should be: all numbers, hashes, results, and every text that has
    a digit in it."""
    stated, expected = dict(leaves(statement)), dict(leaves(_expected(folder, plan)))
    found = [
        f"{path}: {stated[path]!r}, not {wanted!r}"
        for path, wanted in expected.items()
        if path not in stated or not _alike(stated[path], wanted)
    ]
    unchecked = [
        path
        for path, value in stated.items()
        if path not in expected and not _checked_elsewhere(path, value, expected)
    ]
    return found + [f"{path}: {stated[path]!r} was not checked" for path in unchecked]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Leaf]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from leaves(each, f"{path}/{name}")
    elif isinstance(value, list | tuple):
        yield f"{path}/length", len(value)
        for number, each in enumerate(value):
            yield from leaves(each, f"{path}/{number}")
    else:
        yield path, value


def figures(statement: dict[str, Any]) -> list[str]:
    """The paths of everything that is a figure or a result."""
    return [
        path
        for path, value in leaves(statement)
        if not path.endswith("/length")
        and (isinstance(value, bool | int | float) or re.search(r"\d", str(value)))
        and path not in ("/format", "/made_at")
        and not re.search(r"k\^2", str(value))
    ]


def changed(value: Leaf) -> Leaf:
    """A little different."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * (1 + 1e-5)
    digit = re.search(r"\d", str(value))
    assert digit is not None
    return f"{value}"[: digit.start()] + str((int(digit[0]) + 1) % 10) + f"{value}"[digit.end() :]


def _expected(folder: Path, plan: dict[str, Any]) -> dict[str, Any]:
    file = tomllib.loads((folder / "campaign.toml").read_text())
    own, privacy = file["campaign"], file["privacy"]
    with closing(sqlite3.connect(folder / file["ledger"]["location"])) as connection:
        connection.row_factory = sqlite3.Row
        rows = [dict(row) for row in connection.execute(
            "SELECT * FROM adsbpc_entries WHERE scope = ? ORDER BY position", [own["scope"]]
        )]  # fmt: skip
    assert rows, "nothing was released: this checks nothing"
    spent = sum(row["pico_rho"] for row in rows if row["kind"] == "charge")
    (limit,) = (row["pico_rho"] for row in rows if row["kind"] == "scope")
    (reserved,) = (row["pico_rho"] for row in rows if row["kind"] == "campaign")
    rho, delta = float(privacy["rho"]), float(privacy.get("delta", 1e-6))
    assert Fraction(privacy["rho"]) * PICO == reserved
    newest = json.loads([row for row in rows if row["kind"] == "release"][-1]["body"])
    software = {
        "version": adsbpc.__version__,
        "code_sha256": _hash_of_code(),
        "libraries": {
            name: version(name)
            for name in ("opendp", "numpy", "scipy", "clarabel", "duckdb", "sqlalchemy")
        },
    }
    epsilons = {"epsilon": _epsilon(rho, delta), "rho": rho, "delta": delta}
    last_day = own["start"] + timedelta(days=own["slots"])
    lists = {name: each["values"] for name, each in file["dimensions"].items()}
    lists["publisher"] = own["publishers"]
    claims = {"held": True}
    return {
        "software": software,
        "scope": own["scope"],
        "scope_limit_pico_rho": limit,
        "scope_spent_pico_rho": spent,
        "ledger": {"position": rows[-1]["position"], "hash": rows[-1]["hash"]},
        "campaigns": [
            {
                "name": own["name"],
                "first_day": str(own["start"]),
                "slot": "1d",
                "slots": own["slots"],
                "closed": False,
                "mechanism": privacy["mechanism"],
                "promise": {
                    **epsilons,
                    "adjacency": privacy["adjacency"],
                    "scope_rho": limit / PICO,
                    "scope_epsilon": _epsilon(limit / PICO, delta),
                },
                "budget": {
                    "limit_pico_rho": reserved,
                    "spent_pico_rho": spent,
                    "spent_epsilon": _epsilon(spent / PICO, delta),
                },
                "measures": [
                    {
                        "name": each["name"],
                        "cells": _product(len(lists[name]) + 1 for name in each["by"]),
                        "by": each["by"],
                        "value_cap": each.get("value_cap"),
                        "rho": rho * each["share"],
                        "limit": drawn["allowance"],
                        "noise_scale": drawn["scale"],
                    }
                    for each, drawn in zip(file["measure"], newest["measures"], strict=True)
                ],
                "split": plan["split"],
                "releases": [
                    _release(folder, file, rows, slot)
                    for slot in range(1, len([r for r in rows if r["kind"] == "release"]) + 1)
                ],
                "audit": claims,
                "registry": {
                    **epsilons,
                    "deployment": own["name"],
                    "release_interval": "1d",
                    "first_day": str(own["start"]),
                    "last_moment": f"{last_day}T00:00:00+00:00",
                    "composition": "all releases of the campaign; all campaigns of scope "
                    f"{own['scope']} together up to rho = {limit / PICO:g}",
                    "accuracy_published": True,
                    "software_version": adsbpc.__version__,
                    "software_sha256": software["code_sha256"],
                },
            }
        ],
    }


def _release(
    folder: Path, file: dict[str, Any], rows: list[dict[str, Any]], slot: int
) -> dict[str, Any]:
    own = file["campaign"]
    published = folder / "adsbpc-releases" / own["scope"] / own["name"] / f"{slot:04}.json"
    (position,) = (r["position"] for r in rows if (r["kind"], r["slot"]) == ("release", slot))
    day = own["start"] + timedelta(days=slot - 1)
    return {
        "slot": slot,
        "starts_at": f"{day}T00:00:00+00:00",
        "ends_at": f"{day + timedelta(days=1)}T00:00:00+00:00",
        "charges": [
            {"part": row["part"], "pico_rho": row["pico_rho"]}
            for row in rows
            if (row["kind"], row["slot"]) == ("charge", slot)
        ],
        "sha256": sha256(published.read_bytes()).hexdigest(),
        "ledger_position": position - 1,
        "ledger_hash": rows[position - 2]["hash"],
    }


def _checked_elsewhere(path: str, value: Leaf, expected: dict[str, Leaf]) -> bool:
    """Texts without a figure; and those whose figures stand somewhere else, rounded up."""
    if path in ("/format", "/made_at", "/software/python") or path.endswith("/length"):
        return True
    if re.fullmatch(r"/campaigns/0/audit/claims/\d+/held", path):
        return value is True
    if isinstance(value, bool | int | float):
        return False
    told = re.findall(r"\d[\d.e-]*\d|\d", str(value).replace("k^2", ""))
    promise = "/campaigns/0/promise"
    known = {
        _up(expected[f"{promise}/{name}"]) for name in ("epsilon", "rho", "delta", "scope_rho")
    }
    return set(told) <= known


def _up(value: Leaf) -> str:
    """Six digits, never below."""
    assert isinstance(value, float)
    scale = 10 ** (5 - int(f"{value:e}".partition("e")[2]))
    return f"{ceil(Fraction(str(value)) * Fraction(scale)) / scale:g}"


def _alike(found: Leaf, wanted: Leaf) -> bool:
    if isinstance(wanted, float) and isinstance(found, int | float):
        return abs(found - wanted) <= 1e-7 * abs(wanted)
    return found == wanted


def _epsilon(rho: float, delta: float) -> float:
    """Canonne, Kamath and Steinke 2020, in another library's search."""

    def bound(alpha: float) -> float:
        rest = alpha * log(1 - 1 / alpha) - log(alpha - 1) - log(delta)
        return alpha * rho + rest / (alpha - 1)

    found = minimize_scalar(bound, bounds=(1.0001, 1e4), method="bounded", options={"xatol": 1e-10})
    return float(found.fun)


def _product(sizes: Iterator[int]) -> int:
    found = 1
    for size in sizes:
        found *= size
    return found


def _hash_of_code() -> str:
    """As docs/statement.md says, with other people's programs."""
    command = (
        "find . -type f -not -path '*/__pycache__/*' | LC_ALL=C sort | xargs -d '\\n' sha256sum"
        " | sha256sum"
    )
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, check=True,
        cwd=Path(adsbpc.__file__).parent,
    )  # fmt: skip
    return done.stdout.split()[0]
