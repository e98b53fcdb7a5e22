"""What the ledger holds of a campaign, read entry by entry and held against its hashes.

The formula of the chain is restated here: an entry's hash is SHA-256 over JSON of the hash before
it and its other columns, with the hash of its body for the body. In format 1 that is a list, in
format 2 an object with sorted keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

from adsbpc.audit.claims import BrokenClaimError
from adsbpc.errors import LedgerError
from adsbpc.ledger import Ledger

_SEALED = (
    "scope", "position", "kind", "campaign", "slot", "part", "pico_rho", "body_hash", "recorded_at",
)  # fmt: skip
# What a release gives out. Its answers are kept apart: of those there are many. Until format 2 it
# had one measure, with everything in one object, and answers one by one.
_ANSWERS = ("answers", "slot_totals", "running_totals")
_OF_MEASURES = {
    "measure", "metric", "dimensions", "weights", "slot", "mechanism", "bound", "allowance",
    "multipliers", "sizes", "is_renewal", "spread", "histogram", "scale", "values", "randomness",
    "charges", *_ANSWERS,
}  # fmt: skip
_OF_SLOTS = {
    "scope", "campaign", "slot", "starts_at", "ends_at", "attribution", "fit", "fit_charge",
    "ledger", "format", "measures",
}  # fmt: skip
_ONLY_OF_OLD = {"estimates"}

# How many dimensions are told apart, the place among the sums, or an old release's publisher, first
# and last slot, the answer, its standard error, what was added to all cells because it was cut.
Answer = tuple[int, int | str, tuple[int, int] | None, float, float, float]


@dataclass
class Slot:
    """`charges` are the ledger's by part, `text_hash` that of the stored release, `unknown` what a
    release should not give out, `step` SECRET. `measures` has what was released by measure, with
    `answers` beside it."""

    charges: dict[str, int] = field(default_factory=dict)
    release: dict[str, Any] = field(default_factory=dict)
    measures: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    text_hash: str = ""
    step: dict[str, Any] = field(default_factory=dict)

    def charged(self, part: str) -> int:
        return self.charges.get(part, 0)


@dataclass
class Record:
    """A scope's entries as far as they concern a campaign. `faults` are entries that are not what
    was written; `reserved`, `charged` and what was `returned` are in pico-rho by campaign; books of
    `erased` campaigns are no longer kept."""

    campaign: str
    entries: int = 0
    head: str = ""
    faults: list[str] = field(default_factory=list)
    limits: list[int] = field(default_factory=list)
    terms: dict[str, Any] = field(default_factory=dict)
    reserved: dict[str, int] = field(default_factory=dict)
    charged: dict[str, int] = field(default_factory=dict)
    returned: dict[str, int] = field(default_factory=dict)
    erased: set[str] = field(default_factory=set)
    opening: dict[str, Any] = field(default_factory=dict)
    slots: dict[int, Slot] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)

    @property
    def started(self) -> bool:
        return self.campaign in self.reserved

    def of(self, measure: str) -> Record:
        """The same for one measure alone: its plan, and of every slot what was charged and released
        for it, and its step. A campaign with one measure keeps all of that without a name."""
        if len(self.opening.get("measures") or {}) < 2:
            return replace(
                self,
                slots={
                    n: _of_slot(slot, slot.charges, slot.step) for n, slot in self.slots.items()
                },
            )
        prefix = f"{measure}: "
        return replace(
            self,
            opening={**self.opening, **self.opening["measures"][measure]},
            slots={
                number: _of_slot(
                    slot,
                    {
                        part.removeprefix(prefix): amount
                        for part, amount in slot.charges.items()
                        if part.startswith(prefix)
                    },
                    slot.step["measures"][measure],
                    measure,
                )
                for number, slot in self.slots.items()
            },
        )

    def in_order(self) -> list[Slot]:
        """The released slots; broken unless they are 1, 2, 3, ... without a gap."""
        if sorted(self.slots) != list(range(1, len(self.slots) + 1)):
            raise BrokenClaimError(f"slots are {sorted(self.slots)}: expected 1, 2, 3, ...")
        return [self.slots[number] for number in sorted(self.slots)]


def read_record(ledger: Ledger, scope: str, campaign: str) -> Record:
    """Follow the chain of a scope from its first entry to the last."""
    record, seen = Record(campaign), set()
    try:
        for row in ledger.entries(scope):
            record.entries += 1
            _follow(record, row)
            key = (row["kind"], row["campaign"], row["slot"], row["part"])
            if key in seen:
                record.repeated.append(f"{row['kind']} of slot {row['slot']} of {row['campaign']}")
            seen.add(key)
            _take(record, row)
    except (LedgerError, ValueError, TypeError, LookupError) as error:
        record.faults.append(f"entry {record.entries + 1} cannot be read ({error})")
    return record


def _follow(record: Record, row: Mapping[str, Any]) -> None:
    sealed = _hash(_chained(record.head, row))
    about = f"entry {record.entries} ({row['kind']} of slot {row['slot']})"
    if row["position"] != record.entries or sealed != row["hash"]:
        record.faults.append(f"{about} is not sealed with the one before it")
    if _hash(row["body"]) != row["body_hash"]:
        record.faults.append(f"the body of {about} is not what its hash says")
    record.head = str(row["hash"])


def _chained(head: str, row: Mapping[str, Any]) -> str:
    columns: Any = [head, *(row[name] for name in _SEALED)]
    if row["format"] == 2:
        columns = {"previous": head, "format": 2, **{name: row[name] for name in _SEALED}}
    elif row["format"] != 1:
        raise ValueError(f"format {row['format']!r}, and this adsbpc knows 1 and 2. Upgrade adsbpc")
    return json.dumps(
        columns, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=repr
    )


def _take(record: Record, row: Mapping[str, Any]) -> None:
    kind, campaign, amount = row["kind"], row["campaign"], int(row["pico_rho"])
    if kind == "scope":
        record.limits.append(amount)
        record.terms = _content(row)
    elif kind == "campaign":
        record.reserved[campaign] = record.reserved.get(campaign, 0) + amount
        if campaign == record.campaign:
            record.opening = _content(row)
    elif kind == "charge":
        record.charged[campaign] = record.charged.get(campaign, 0) + amount
    elif kind == "close":
        unspent = record.reserved.get(campaign, 0) - record.charged.get(campaign, 0)
        if campaign in record.returned or amount != unspent:
            record.faults.append(f"{campaign!r} returned {amount} pico-rho of {unspent} unspent")
        record.returned[campaign] = amount
        return
    elif kind == "erase":
        if campaign not in record.returned:
            record.faults.append(f"books of {campaign!r} were erased before it was closed")
        record.erased.add(campaign)
        return
    if campaign in record.returned:
        record.faults.append(f"entry {record.entries}: {kind} of {campaign!r} after it was closed")
    if campaign != record.campaign or kind not in ("charge", "state", "release"):
        return
    slot = record.slots.setdefault(int(row["slot"]), Slot())
    if kind == "charge":
        slot.charges[row["part"]] = slot.charged(row["part"]) + amount
    elif kind == "state":
        slot.step = _content(row)
    else:
        content = _content(row)
        is_old = "measures" not in content
        known = _OF_MEASURES | _OF_SLOTS | _ONLY_OF_OLD if is_old else _OF_SLOTS
        measures = [content] if is_old else content["measures"]
        slot.release = {name: content.get(name) for name in _OF_SLOTS}
        slot.unknown = sorted(content.keys() - known)
        for given in measures:
            name = given["metric"] if is_old else given["measure"]
            slot.measures[name] = {key: given.get(key) for key in _OF_MEASURES.difference(_ANSWERS)}
            if is_old:
                slot.answers[name] = [
                    _old_answer(each)
                    for key in ("estimates", *_ANSWERS)
                    for each in given.get(key, ())
                ]
            else:
                slot.unknown += sorted(given.keys() - _OF_MEASURES)
                slot.answers[name] = [
                    answer for key in _ANSWERS for each in given[key] for answer in _answers(each)
                ]
        slot.text_hash = _hash(row["body"])


def _of_slot(
    slot: Slot, charges: dict[str, int], step: dict[str, Any], measure: str | None = None
) -> Slot:
    """A slot as a measure sees it, the only one if none is named."""
    if not slot.measures:
        # Charged, and without a release that can be read.
        return replace(slot, charges=charges, step=step)
    name = next(iter(slot.measures)) if measure is None else measure
    told = list(slot.measures[name]["charges"])
    own_fit = {} if measure is None else {"fit": None}
    if measure is None and slot.release["fit_charge"] is not None:
        told.append(slot.release["fit_charge"])
    release = {**slot.release, **slot.measures[name], "charges": told, **own_fit}
    return replace(
        slot,
        charges=charges,
        release=release,
        measures={name: slot.measures[name]},
        answers={name: slot.answers[name]},
        step=step,
    )


def _span(given: Mapping[str, Any]) -> tuple[int, int] | None:
    span = given.get("span")
    return None if span is None else (int(span[0]), int(span[1]))


def _answers(given: Mapping[str, Any]) -> Iterator[Answer]:
    depth, span, added = len(given["view"]), _span(given), float(given.get("added", 0.0))
    for place, value in enumerate(given["values"]):
        yield depth, place, span, float(value), float(given["standard_error"]), added


def _old_answer(given: Mapping[str, Any]) -> Answer:
    error = float(given["standard_error"])
    return 1, given["publisher"], _span(given), float(given["value"]), error, 0.0


def _content(row: Mapping[str, Any]) -> dict[str, Any]:
    content = json.loads(row["body"])
    if not isinstance(content, dict):
        raise ValueError(f"the body of a {row['kind']} is no JSON object")
    return content


def _hash(content: object) -> str:
    text = content if isinstance(content, str) else repr(content)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
