"""What is shown of the ledger comes from one moment: one connection, one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from adsbpc import Campaign
from tests.campaign.files import write_campaign
from tests.cli.program import adsbpc


@contextmanager
def listening(name: str) -> Iterator[list[tuple[Any, ...]]]:
    """What SQLAlchemy tells of every engine."""
    heard: list[tuple[Any, ...]] = []

    def hear(*told: Any) -> None:
        heard.append(told)

    event.listen(Engine, name, hear)
    try:
        yield heard
    finally:
        event.remove(Engine, name, hear)


@pytest.mark.parametrize("verb", ["status", "report", "audit"])
def test_a_verb_that_reads_connects_once(verb: str, tmp_path: Path) -> None:
    file = write_campaign(tmp_path)
    Campaign.load(file).release(through="2026-03-02")
    with listening("connect") as connections, listening("begin") as transactions:
        assert adsbpc(verb, file, cwd=tmp_path).returncode == 0
    assert (len(connections), len(transactions)) == (1, 1)


def test_a_charge_that_lands_midway_is_not_half_seen(tmp_path: Path) -> None:
    """Another process releases a slot after the first statement of a report, the second, ..."""
    file = write_campaign(tmp_path, slots=20)
    campaign = Campaign.load(file)
    campaign.release(1)
    with listening("after_cursor_execute") as statements:
        campaign.report()
    reads = [told for told in statements if "adsbpc_entries" in told[2]]
    assert len(reads) > 3, "nothing can land between the statements: this tests nothing"
    for slot, statement in enumerate(range(1, len(reads) + 1), start=2):
        _release_after(statement, file, slot)
        report = campaign.report()
        assert len(report.releases) == slot


def _release_after(statement: int, file: Path, slot: int) -> None:
    """Report, while the slot is released after a statement that reads entries."""
    heard = 0

    def hear(_connection: Any, _cursor: Any, text: str, *_more: Any) -> None:
        nonlocal heard
        if "adsbpc_entries" not in text:
            return
        heard += 1
        if heard == statement:
            Campaign.load(file).release(slot)

    event.listen(Engine, "after_cursor_execute", hear)
    try:
        report = Campaign.load(file).report()
    finally:
        event.remove(Engine, "after_cursor_execute", hear)
    assert heard > statement, "the slot was never released"
    charged = sum(line.pico_rho for each in report.releases for line in each.charges)
    assert len(report.releases) == slot - 1
    assert report.campaign_budget.spent_pico_rho == charged
    assert report.scope_budget.spent_pico_rho == charged
