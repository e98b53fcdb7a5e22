"""Now and then a slot's books have the rows of slots before it as well: less is opened, and nothing
else changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc import Campaign
from adsbpc.audit import noise_claims
from adsbpc.audit.claims import Claim
from adsbpc.audit.promised_plan import PromisedPlan
from adsbpc.audit.record import Record
from adsbpc.campaign.books import GATHERED_EVERY, BookFolder
from adsbpc.contributions.account_books import first_ungathered, slots_read
from adsbpc.errors import LedgerError
from adsbpc.mechanisms.by_rows.outlook import Outlook
from adsbpc.mechanisms.by_rows.state import Row
from adsbpc.model import load_spec
from tests.audit.campaigns import broken
from tests.audit.forgery import Forgery
from tests.campaign.book_files import FILES, committed, kept, rows_of, steps
from tests.campaign.files import FIXED, PERSONAL, edit, write_campaign
from tests.campaign.test_books import fail_to_commit

NAMES, CELLS, CUT, REST, USERS = FILES
GATHERED = FILES[:-1]
SLOTS = 10
# Everybody comes near the limit, and the past is let in again.
RENEWING = f'{PERSONAL}\n[privacy.personal_budget]\nstrategy = "square-root"'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("adsbpc.campaign.books.GATHERED_EVERY", 3)
    return write_campaign(tmp_path / "gathered", SLOTS, privacy=FIXED)


def audited(file: Path) -> dict[str, str]:
    return broken(Campaign.load(file).audit(), False)


def present(file: Path) -> list[set[str]]:
    """Names of the files of each slot."""
    return [{found.name for found in folder.iterdir()} for folder in committed(file.parent)]


def test_a_release_late_in_the_year_opens_few_files() -> None:
    """Figures of docs/ledger.md: four files of each slot that is read, and the last accounts."""
    firsts: tuple[int, ...] = ()
    for slot in range(1, 365):
        firsts += (slot if slot % GATHERED_EVERY else first_ungathered(firsts),)
    assert len(GATHERED) * len(slots_read(firsts, 1)) + 1 == 93
    assert len(GATHERED) * len(slots_read(range(1, 365), 1)) + 1 == 1_457


def test_nothing_else_changes(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Campaign.load(file).release()
    monkeypatch.setattr("adsbpc.campaign.books.GATHERED_EVERY", 1_000)
    other = write_campaign(tmp_path / "other", SLOTS, privacy=FIXED)
    Campaign.load(other).release()
    assert kept(file.parent) == kept(other.parent)
    assert rows_of(committed(file.parent)[-1], [USERS]) == rows_of(
        committed(other.parent)[-1], [USERS]
    )
    assert audited(file) == audited(other) == {}
    # What three slots have written, one of them has.
    alone = [rows_of(folder, GATHERED) for folder in committed(other.parent)]
    sixth = rows_of(committed(file.parent)[5], GATHERED)
    assert sixth == {
        name: sorted(row for rows in alone[3:6] for row in rows[name]) for name in GATHERED
    }
    assert [step["books"].get("first") for step in steps(file.parent)] == [
        None, None, 1, None, None, 4, None, None, 7, None,
    ]  # fmt: skip


def test_what_was_gathered_is_removed_when_nobody_can_still_be_reading_it(file: Path) -> None:
    Campaign.load(file).release(through="2026-03-06")
    assert all(set(GATHERED) <= names for names in present(file))
    Campaign.load(file).release()
    found = present(file)
    # Slot 9 has gathered too late for that.
    assert found[:6] == [set(), set(), set(GATHERED), set(), set(), set(GATHERED)]
    assert all(set(GATHERED) <= names for names in found[6:])
    (books,) = BookFolder.all_of(load_spec(file))
    assert books.problem(steps(file.parent), whole=True) is None


def test_a_lost_file_of_a_gathering_slot_stops_everything(file: Path) -> None:
    Campaign.load(file).release(through="2026-03-05")
    (committed(file.parent)[2] / CELLS).unlink()
    with pytest.raises(LedgerError, match=r"slot=0003.*cells.*cannot be read"):
        Campaign.load(file).release()


def test_files_out_of_use_stop_nothing(file: Path) -> None:
    Campaign.load(file).release(through="2026-03-05")
    for name in GATHERED:
        (committed(file.parent)[0] / name).write_bytes(b"spoilt")
    Campaign.load(file).release()
    assert audited(file) == {}


def test_an_attempt_to_gather_that_was_not_committed_does_not_count(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Campaign.load(file).release(through="2026-03-05")
    left = fail_to_commit(file, 6, monkeypatch)
    for name in FILES:
        (left / name).write_bytes(b"spoilt")
    Campaign.load(file).release()
    assert audited(file) == {}


def test_a_campaign_that_an_earlier_version_began_is_gathered_whole(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("adsbpc.campaign.books.GATHERED_EVERY", 1_000)
        Campaign.load(file).release(through="2026-03-05")
    Campaign.load(file).release()
    assert [step["books"].get("first") for step in steps(file.parent)][5:] == [
        1, None, None, 7, None,
    ]  # fmt: skip
    assert audited(file) == {}


def test_what_was_let_in_before_the_past_was_renewed_stays(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An audit counts what people cost before."""

    def choose(_: Outlook, rows: Sequence[Row], *_given: Any) -> float:
        return 0.9 if len(rows) < 3 else 0.7 if len(rows) < 7 else 0.5

    monkeypatch.setattr(Outlook, "choose", choose)
    monkeypatch.setattr("adsbpc.mechanisms.by_rows.mechanism.sizes_of", lambda *given: given[2])
    renewing = write_campaign(tmp_path / "renewing", SLOTS, privacy=RENEWING)
    Campaign.load(renewing).release()
    renewed = [n for n, step in enumerate(steps(renewing.parent), start=1) if step["renewal"]]
    assert renewed == [4, 8]
    assert broken(Campaign.load(renewing).audit(), True) == {}
    rows = {CELLS, CUT, REST}
    assert present(renewing)[:6] == [set(), set(), set(GATHERED), rows, set(), set(GATHERED)]


def test_an_audit_counts_newcomers_once(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Histograms of needs are held against them: here everybody is new on every slot."""
    counted: list[list[int]] = []
    histograms = noise_claims.histograms

    def watched(record: Record, plan: PromisedPlan, newcomers: Sequence[int] | None) -> Claim:
        counted.append([*(newcomers or ())])
        return histograms(record, plan, newcomers)

    monkeypatch.setattr(noise_claims, "histograms", watched)
    for name in ("impressions", "conversions"):
        path = file.parent / f"{name}.parquet"
        rows = pq.read_table(path)
        days = [str(moment.day) for moment in rows["timestamp"].to_pylist()]
        users = zip(rows["user_id"].to_pylist(), days, strict=True)
        column = pa.array([f"{user} on {day}" for user, day in users])
        pq.write_table(rows.set_column(0, "user_id", column), path)
    edit(file, FIXED, PERSONAL)
    Campaign.load(file).release()
    assert audited(file) == {}
    assert counted == [[12, 0, *[12] * 8]]


# ---- forged --------------------------------------------------------------------------------------


def row_of_another_slot(forged: Forgery) -> None:
    row = next(row for row in forged.rows(6, CELLS) if row["slot"] == 4)
    forged.rows(6, CELLS).append({**row, "slot": 3})


def row_moved_to_another_slot(forged: Forgery) -> None:
    row = next(row for row in forged.rows(6, CELLS) if row["slot"] == 4)
    row["slot"] = 5


def somebody_left_out(forged: Forgery) -> None:
    forged.rows(3, NAMES).pop()


def rows_from_another_slot_on(forged: Forgery) -> None:
    forged.step(6)["books"]["first"] = 3


def rows_from_no_slot_on(forged: Forgery) -> None:
    forged.step(6)["books"]["first"] = "4"


@pytest.mark.parametrize(
    ("plant", "claim", "said"),
    [
        (row_of_another_slot, "names", "1 rows are of no slot from 4 to 6"),
        (row_moved_to_another_slot, "kept totals", "slot 4, place"),
        (somebody_left_out, "people in the books", "without one name"),
        (rows_from_another_slot_on, "book files", "rows of slots from 3 on"),
        (rows_from_no_slot_on, "book files", "rows of slots from '4' on"),
    ],
)
def test_an_audit_finds_what_was_forged(plant: object, claim: str, said: str, file: Path) -> None:
    Campaign.load(file).release()
    forged = Forgery(file.parent)
    assert callable(plant)
    plant(forged)
    forged.finish()
    found = audited(file)
    assert said in found[claim], found
