"""Claims about the ledger and about what was published: chain, budgets, plan, charges, releases."""

from __future__ import annotations

from hashlib import sha256

from adsbpc.audit.claims import Claim, claim, listed, require, result_or_claim
from adsbpc.audit.long_strategy import ShiftedRows
from adsbpc.audit.promised_plan import (
    FIT,
    HISTOGRAM,
    MEASUREMENT,
    PICO,
    QUANTILE,
    SOURCE,
    SPARSE_VECTOR,
    PromisedPlan,
)
from adsbpc.audit.record import Record
from adsbpc.storage import Place

# The largest entry of a strategy; more would not fit the books' integers.
_LARGEST_ENTRY = 2**12
_LARGEST_LONG_ENTRY = 2**15


def chain(record: Record) -> Claim:
    def check() -> str:
        require(not record.faults, listed(record.faults))
        require(not record.repeated, f"stands there twice: {listed(record.repeated)}")
        return f"the last hash is {record.head}" if record.entries else "there is no entry yet"

    checked = f"{record.entries:,} entries: each sealed with the one before, each body by its hash"
    return claim("chain of the ledger", checked, check)


def budgets(record: Record) -> Claim:
    def check() -> str:
        if not record.entries:
            return "nothing is reserved or charged yet"
        require(len(record.limits) == 1, f"{len(record.limits)} limits: expected one")
        (limit,) = record.limits
        reserved = sum(record.reserved.values()) - sum(record.returned.values())
        charged = sum(record.charged.values())
        require(reserved <= limit, f"{reserved} pico-rho are reserved, above the limit of {limit}")
        require(charged <= limit, f"{charged} pico-rho were charged, above the limit of {limit}")
        for campaign, amount in record.charged.items():
            own = record.reserved.get(campaign, 0) - record.returned.get(campaign, 0)
            require(
                amount <= own, f"{campaign!r} was charged {amount} pico-rho, and has reserved {own}"
            )
        return f"{charged} of {limit} pico-rho were charged, {reserved} are reserved"

    checked = "the limits of the scope and of every campaign in it against all charges"
    return claim("budgets", checked, check)


def planned(record: Record, plan: PromisedPlan) -> Claim:
    """The plan is one that can keep the promise, and every slot ran by it."""

    def check() -> str:
        own = record.reserved[record.campaign]
        whole = plan.campaign_rho
        require(whole * PICO >= own, f"{own} pico-rho are reserved for rho = {whole}")
        require(sum(plan.split.values()) <= plan.rho, "the parts of the budget pass rho")
        measured = sum(plan.budgets)
        require(
            len(plan.budgets) == plan.slots and min(plan.budgets) >= 1,
            f"{len(plan.budgets)} budgets for {plan.slots} slots: expected one above 0 for each",
        )
        require(
            measured <= plan.split[MEASUREMENT] * PICO,
            f"slots may be charged {measured} pico-rho for measurement, which has "
            f"{float(plan.split[MEASUREMENT]):.12g} of rho",
        )
        if plan.is_personal:
            _check_strategy(plan)
        plans = {slot.step.get("plan") for slot in record.in_order()}
        require(len(plans) <= 1, "slots ran by different plans")
        return f"{measured} pico-rho of rho = {float(plan.rho):.12g} are for measurement"

    strategy = ", entries of the strategy" if plan.is_personal else ""
    return claim("plan", f"the split of rho, the budgets of {plan.slots:,} slots{strategy}", check)


def _check_strategy(plan: PromisedPlan) -> None:
    """Entries >= 0 make B^T B >= 0, so that costs only grow, and replacing a person costs at most
    twice as much as adding one."""
    require(len(plan.rows) == plan.slots, f"{len(plan.rows)} rows of the strategy for {plan.slots}")
    if isinstance(plan.rows, ShiftedRows):
        first, *others = plan.rows.numbers
        require(
            1 <= first <= _LARGEST_LONG_ENTRY
            and min(others) >= 0
            and max(plan.rows.entries) <= _LARGEST_LONG_ENTRY,
            "the strategy has an entry below 0, or too large a one",
        )
        return
    for number, row in enumerate(plan.rows, start=1):
        whole = all(type(entry) is int and 0 <= entry <= _LARGEST_ENTRY for entry in row)
        require(
            whole and len(row) == number and row[-1] >= 1,
            f"row {number} of the strategy: expected {number} whole numbers from 0 to "
            f"{_LARGEST_ENTRY}, the last one above 0",
        )


def charges(record: Record, plan: PromisedPlan) -> Claim:
    """The ledger charged what the releases say and the plan allots."""

    def check() -> str:
        spent: dict[str, int] = {}
        for number, slot in enumerate(record.in_order(), start=1):
            told = {line["part"]: line["pico_rho"] for line in slot.release["charges"]}
            require(
                told == slot.charges and len(told) == len(slot.release["charges"]),
                f"slot {number} was charged {slot.charges}, and its release says {told}",
            )
            allotted, charged = plan.budgets[number - 1], slot.charged(MEASUREMENT)
            fits = charged == allotted if plan.is_personal else 1 <= charged <= allotted
            require(
                fits, f"slot {number} was charged {charged} for measurement, allotted {allotted}"
            )
            _check_looks(number, slot.charges, bool(slot.release["histogram"]), plan)
            for part, amount in slot.charges.items():
                spent[part] = spent.get(part, 0) + amount
        for part, amount in spent.items():
            may = plan.split.get(part, 0) * PICO
            require(amount <= may, f"{part!r} was charged {amount}, and may be {float(may):.12g}")
        return ", ".join(f"{part} {amount}" for part, amount in spent.items()) + " pico-rho"

    checked = f"{len(record.slots):,} slots: the ledger against releases and plan, part by part"
    return claim("charges", checked, check)


def _check_looks(number: int, charged: dict[str, int], histogram: bool, plan: PromisedPlan) -> None:
    """Every look at people is charged in the slot that it is made in."""
    require(
        (HISTOGRAM in charged) == histogram,
        f"slot {number}: a histogram is released without a charge, or charged without one",
    )
    if plan.looks is not None and histogram:
        allotted, told = plan.looks.get(number, 0), charged[HISTOGRAM]
        require(
            told == allotted,
            f"slot {number} was charged {told} for a histogram, allotted {allotted}",
        )
    section = plan.privacy.adsbpc
    if not plan.is_personal and section.bounds == "svt":
        first = section.quantile_slots
        require((QUANTILE in charged) == (number <= first), f"slot {number}: charge for a quantile")
        require(
            (SPARSE_VECTOR in charged) == (number == first + 1),
            f"slot {number}: sparse vectors are charged once, on slot {first + 1}",
        )


def releases(record: Record, plan: PromisedPlan) -> Claim:
    def check() -> str:
        columns = plan.columns.count + (plan.cuts if plan.is_personal else 0)
        for number, slot in enumerate(record.in_order(), start=1):
            found = slot.release
            require(bool(found), f"slot {number} was charged, and has no release")
            require(
                not slot.unknown, f"slot {number} gives out {slot.unknown}, which nobody promised"
            )
            require(number <= plan.slots, f"slot {number} of a campaign with {plan.slots}")
            # An early version knew of one mechanism, and did not say which.
            about = (found["campaign"], found["slot"], found["mechanism"] or "adsbpc")
            require(
                about == (record.campaign, number, plan.privacy.mechanism),
                f"the release of slot {number} says that it is {about}",
            )
            require(
                found["randomness"] == SOURCE,
                f"slot {number}: its noise came from {found['randomness']!r}, not {SOURCE!r}",
            )
            require(
                len(found["values"]) == columns
                and all(type(value) is int for value in found["values"]),
                f"slot {number} has {len(found['values'])} values: expected {columns} integers",
            )
            require(
                found["values"] == slot.step["values"]
                and list(found["histogram"]) == slot.step["histogram"],
                f"slot {number}: the release is not what the mechanism drew",
            )
            require(
                (found["fit"] is None) == (FIT not in slot.charges),
                f"slot {number}: a fit is released without a charge, or charged without one",
            )
        return f"noise from {SOURCE!r} on every slot, none released twice or left out"

    checked = f"{len(record.slots):,} slots of {plan.slots:,}: one release each, in order"
    return claim("releases", checked, check)


def published(record: Record, folder: Place) -> Claim:
    def of_slots() -> list[Place]:
        found: list[Place] = [file for file in folder.glob("*.json") if file.stem.isdecimal()]
        return sorted(found, key=str)

    files = result_or_claim("published files", "files against the ledger", of_slots)
    if isinstance(files, Claim):
        return files

    def check() -> str:
        found = {int(file.stem) for file in files}
        beyond = sorted(found - record.slots.keys())
        require(not beyond, f"slots {beyond} were published, and the ledger does not know them")
        for file in files:
            same = sha256(file.read_bytes()).hexdigest() == record.slots[int(file.stem)].text_hash
            require(same, f"{file} is not what the ledger says was released")
        missing = len(record.slots) - len(found)
        return f"{missing:,} slots are not there" if missing else "all slots are there"

    checked = f"{len(files):,} files, byte for byte against the ledger"
    return claim("published files", checked, check)
