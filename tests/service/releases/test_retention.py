"""What is deleted: old events and books that nothing open needs, and people who are forgotten."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from adsbpc.campaign.books import BookFolder
from adsbpc.campaign.erasure import is_named
from adsbpc.cli.main import app
from adsbpc.errors import LedgerError
from adsbpc.model import PICO_RHO, spec_of
from adsbpc.model.durations import MICROSECONDS_PER_DAY
from adsbpc.service.ingest.compaction import compact
from adsbpc.service.ingest.removal import remove_rows
from adsbpc.service.ingest.rows import SCHEMAS
from adsbpc.service.releases.retention import needed_from
from tests.effort import examples
from tests.service.keeping import DAY, START, Service


@pytest.fixture
def service(tmp_path: Path) -> Any:
    made = Service(tmp_path, keep="2d")
    yield made
    made.close()


def test_old_events_go_and_what_an_open_campaign_may_need_stays(service: Service) -> None:
    campaign = service.create("spring", slots=9, slot="1w", week_starts="sunday")
    service.put("early", "young", day=0)
    service.put("theirs", day=0, advertiser="Ad-2")
    service.put("young", "late", day=10)
    service.clock.moment = START + 11 * DAY
    service.backend.retention.apply()
    # Nobody needs those of another advertiser; a purchase may come 30 days late.
    assert service.users() == {"early": 1, "young": 2, "late": 1}
    service.clock.moment = START + 36 * DAY
    service.backend.scheduler.release(campaign, 5)
    service.backend.retention.apply()
    assert service.users() == {"young": 1, "late": 1}
    assert service.users("conversions") == {"young": 1, "late": 1}
    service.backend.lifecycle.close(campaign)
    service.backend.retention.apply()
    assert not service.users()
    service.backend.files.delete_retired()
    assert not service.anywhere("young") or all(
        "adsbpc-books" in str(each) for each in service.anywhere("young")
    )


def test_books_go_when_a_campaign_is_long_over_and_the_audit_says_so(service: Service) -> None:
    campaign = service.create("spring", days=2)
    service.put("ann", "bob", day=0)
    service.release(campaign, 1)
    service.clock.moment = START + 30 * DAY
    service.backend.retention.apply()
    assert is_named(campaign.spec, "ann"), "an open campaign needs its books"
    service.backend.scheduler.look()
    service.backend.retention.apply()
    assert not is_named(campaign.spec, "ann")
    ledger = service.backend.campaigns.ledger
    record = ledger.campaign("spring", "spring")
    assert record is not None
    assert (record.closed, record.erased) == (True, True)
    assert ledger.reserved("spring") == ledger.spent("spring") <= PICO_RHO
    assert campaign.campaign.verify().problem is None
    findings = campaign.campaign.audit()
    assert findings.held
    assert any("books were erased" in each.detail for each in findings.claims)


def test_books_that_are_gone_without_a_word_of_the_ledger_are_lost(service: Service) -> None:
    campaign = service.create("spring", days=2)
    service.put("ann", day=0)
    service.release(campaign, 1)
    with pytest.raises(LedgerError, match="may still release"):
        service.backend.campaigns.ledger.erase_books("spring", "spring")
    BookFolder.all_of(campaign.spec)[0].erase([])
    assert campaign.campaign.verify().problem is not None
    assert not campaign.campaign.audit().held


def test_a_person_is_forgotten_and_no_budget_comes_back(service: Service) -> None:
    over, running = service.create("over", days=1), service.create("running", days=3)
    service.put("ann", "bob", day=0)
    service.release(over, 1)
    service.release(running, 1)
    compact(service.backend.files, service.backend.store, "impressions")
    ledger = service.backend.campaigns.ledger
    spent = {scope: ledger.spent(scope) for scope in ("over", "running")}
    found = service.backend.retention.forget("ann")
    assert (found.rows, found.erased, found.keep) == (2, ("over",), ("running",))
    assert service.users() == service.users("conversions") == {"bob": 1}
    assert service.anywhere("ann") == list(
        BookFolder.all_of(running.spec)[0].folder.glob("slot=0001/*/names.parquet")
    )
    assert {scope: ledger.spent(scope) for scope in spent} == spent
    assert ledger.reserved("running") == PICO_RHO
    # The account is used for as long as the campaign runs, and goes with it.
    service.put("ann", day=1)
    service.release(running, 2)
    assert running.campaign.audit().held
    service.backend.lifecycle.close(running)
    service.backend.retention.apply()
    assert service.anywhere("ann") == []
    assert {scope: ledger.spent(scope) for scope in spent} == spent | {
        "running": ledger.reserved("running")
    }
    assert service.backend.retention.forget("nobody").rows == 0


def test_what_a_crash_left_of_a_person_is_forgotten_too(service: Service) -> None:
    """Files that were written and never listed; those of others are left to the sweep."""
    files = service.backend.files
    service.put("ann", "bob")
    (name,) = files.listed("impressions")
    both = pq.read_table(files.folder / name)
    left = [files.write("impressions", both), files.write("impressions", both.slice(1))]
    assert set(left[1:]) < {file.name for file in service.anywhere("bob")}
    assert service.backend.retention.forget("ann").rows == 2
    assert service.anywhere("ann") == []
    assert not (files.folder / left[0]).exists()
    assert (files.folder / left[1]).exists()


def test_the_command(service: Service, tmp_path: Path) -> None:
    service.put("ann", "bob", day=0)
    config = tmp_path / "service.toml"
    config.write_text('[service]\ndata = "data"\n', encoding="utf-8")
    answer = CliRunner().invoke(app, ["forget", "ann", "--config", str(config), "--json"])
    assert json.loads(answer.stdout) == {"user": "ann", "rows": 2, "erased": [], "kept": []}
    answer = CliRunner().invoke(app, ["forget", "bob", "--config", str(config)])
    assert "Removed 2 rows" in answer.stdout
    assert "No budget is returned" in answer.stdout
    assert not service.users()
    noted = service.backend.audit.newest(10)
    assert [line["action"] for line in noted] == ["forget somebody"] * 2
    # Who was forgotten is not remembered there.
    written = "".join(file.read_text() for file in (service.data / "audit").iterdir())
    assert "ann" not in written
    assert "bob" not in written


@given(data=st.data())
@settings(max_examples=examples(5, 40))
def test_rows_that_stay_are_neither_lost_nor_doubled(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever is removed and merged in whatever order."""
    service = Service(tmp_path_factory.mktemp("any"))
    try:
        expected: Counter[str] = Counter()
        files, store = service.backend.files, service.backend.store
        people = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True)
        for day in range(data.draw(st.integers(1, 5))):
            users = data.draw(people)
            service.put(*users, day=day)
            expected.update(users)
            if data.draw(st.booleans()):
                for source in SCHEMAS:
                    compact(files, store, source)
            if data.draw(st.booleans()):
                gone = data.draw(st.sampled_from("abcdef"))
                service.backend.retention.forget(gone)
                del expected[gone]
            assert service.users() == service.users("conversions") == expected
    finally:
        service.close()


def test_a_merge_at_the_same_time_is_overtaken_or_overtakes(service: Service) -> None:
    files, store = service.backend.files, service.backend.store
    service.put("ann", "bob", day=0)
    service.put("cid", day=0)
    calls: list[int] = []

    def theirs(table: Any) -> Any:
        if not calls:
            # Between reading a file and taking it off the list, it is merged with another.
            calls.append(compact(files, store, "impressions"))
        return pc.equal(table["user_id"], "ann")

    assert remove_rows(files, store, "impressions", theirs) == 1
    assert calls == [2]
    assert service.users() == {"bob": 1, "cid": 1}


def test_what_squares_are_of_stays_until_a_campaign_ends() -> None:
    """Of a trial: how much people differ is the square of all that they have done."""
    content: dict[str, Any] = {
        "campaign": {
            "name": "trial", "advertiser": "Ad-1", "start": date(2026, 3, 1), "slots": 9,
            "publishers": ["P-1"],
        },
        "events": {"impressions": "i.parquet", "conversions": "c.parquet"},
        "privacy": {"rho": 1.0},
        "lift": {"key_file": "lift.key", "shares": {"treatment": 0.5, "control": 0.5}},
        "measure": [{"name": "purchases", "by": ["arm"], "share": 0.5}],
    }  # fmt: skip
    squares = {"name": "squares", "metric": "squared_conversions", "by": ["arm"], "share": 0.5}
    alone = {**content, "measure": [{"name": "buyers", "metric": "converters", "by": ["arm"]}]}
    plain = spec_of(alone, Path(), "plain")
    squared = spec_of({**content, "measure": [*content["measure"], squares]}, Path(), "squared")
    assert needed_from(plain, 5) == needed_from(plain, 0) + 5 * MICROSECONDS_PER_DAY
    assert needed_from(squared, 5) == needed_from(squared, 0)
