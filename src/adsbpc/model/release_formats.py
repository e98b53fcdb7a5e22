"""Releases of earlier formats, in the words of today.

Formats 1 and 2 had one measure by publisher, with an entry for every publisher and query, and all
charges in one list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import fsum, sqrt
from typing import Any

from adsbpc.model.guarantee import FIT_PART

_OF_THE_SLOT = (
    "format", "scope", "campaign", "slot", "starts_at", "ends_at", "attribution", "fit", "ledger",
)  # fmt: skip
_OF_THE_MEASURE = (
    "slot", "mechanism", "bound", "allowance", "histogram", "scale", "values", "randomness",
)  # fmt: skip


def with_measures(content: Mapping[str, Any]) -> dict[str, Any]:
    """A flat release as one with a measure. What is missing or not known stays so, and is refused
    where releases are read."""
    lists = {name: content.get(old, ()) for name, old in _ANSWERS.items()}
    publishers = [each["publisher"] for each in next(_by_query(lists["running_totals"]), [])]
    charges = content.get("charges", ())
    fits = [charge for charge in charges if charge["part"] == FIT_PART]
    measure = {name: content[name] for name in _OF_THE_MEASURE if name in content} | {
        "measure": content.get("metric"),
        "metric": content.get("metric"),
        "dimensions": [{"name": "publisher", "values": publishers}],
        "weights": [0, 1],
        "charges": [charge for charge in charges if charge["part"] != FIT_PART],
        **{name: list(_answers(estimates)) for name, estimates in lists.items()},
    }
    known = {*_OF_THE_SLOT, *_OF_THE_MEASURE, "metric", "charges", *_ANSWERS.values()}
    return (
        {name: content[name] for name in _OF_THE_SLOT if name in content}
        | {name: value for name, value in content.items() if name not in known}
        | {"measures": [measure]}
        | ({"fit_charge": fits[0]} if fits else {})
    )


_ANSWERS = {
    "answers": "estimates", "slot_totals": "slot_totals", "running_totals": "running_totals",
}  # fmt: skip


def _answers(estimates: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """For everything together, and by publisher. Noise of publishers was independent."""
    for found in _by_query(estimates):
        values = [each["value"] for each in found]
        error = found[0]["standard_error"]
        of_both = {
            "query": found[0]["query"],
            "span": found[0].get("span"),
            "cut": fsum(each.get("cut", 0.0) for each in found),
            "cut_error": fsum(each.get("cut_error", 0.0) for each in found),
        }
        yield {
            "view": [], "values": [fsum(values)], "standard_error": sqrt(len(found)) * error,
            **of_both,
        }  # fmt: skip
        yield {"view": ["publisher"], "values": values, "standard_error": error, **of_both}


def _by_query(estimates: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Answers come query by query with the publishers in one order; two workloads of a campaign
    may ask the same query."""
    found: list[Mapping[str, Any]] = []
    for each in estimates:
        same = found and each["query"] == found[0]["query"]
        if found and (not same or each["publisher"] == found[0]["publisher"]):
            yield found
            found = []
        found.append(each)
    if found:
        yield found
