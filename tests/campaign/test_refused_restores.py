"""What cannot be handed back to a ledger that was put back from a backup."""

from __future__ import annotations

import json
import shutil
from functools import partialmethod
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adsbpc import Campaign
from adsbpc.campaign.release import SlotRows
from adsbpc.errors import LedgerError, PrivacyError
from adsbpc.mechanisms import MeasuresState
from tests.campaign.accidents import Accident
from tests.campaign.book_files import attempts
from tests.campaign.drills import (
    SVT,
    WITNESS,
    accident_in,
    go_on,
    refuse,
)
from tests.campaign.files import FIXED, edit, write_campaign
from tests.effort import first


def unchanged(accident: Accident) -> None:
    assert accident.ledger.last_slot("acme", "spring") == 3
    assert accident.ledger.verify("acme").problem is None


@pytest.mark.parametrize("witness", [WITNESS, None])
@pytest.mark.parametrize("privacy", first(1, [FIXED, ""]), ids=["personal", "adsbpc"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"pico_rho":', '"pico_rho":1'),
        pytest.param('"values":[', '"values":[ ', marks=pytest.mark.slow),
        pytest.param("}", "}\n", marks=pytest.mark.slow),
    ],
)
def test_a_file_that_was_changed(
    before: str, after: str, privacy: str, witness: str | None, tmp_path: Path
) -> None:
    """Also if no mark knows it: the ledger's seal is on every byte."""
    accident = accident_in(tmp_path, privacy, witness=witness)
    edit(accident.seen / "0005.json", before, after)
    message = "the mark has another hash" if witness else "was changed, or released from another"
    with pytest.raises(LedgerError, match=rf"0005\.json: .*{message}"):
        accident.campaign().restore(accident.seen)
    unchanged(accident)


@pytest.mark.slow
def test_events_that_are_not_those_of_then(tmp_path: Path) -> None:
    accident = accident_in(tmp_path, FIXED)
    events = accident.home / "conversions.parquet"
    table = pq.read_table(events)
    # One conversion less, of the fourth slot; the second one has none.
    pq.write_table(pa.concat_tables([table.slice(0, 24), table.slice(25)]), events)
    message = r"the events of slot 4 are not those that were released\. The slot counts as spent"
    with pytest.raises(LedgerError, match=message):
        accident.campaign().restore(accident.seen)
    unchanged(accident)
    assert attempts(accident.home, 4) == set()
    pq.write_table(table, events)
    accident.campaign().restore(accident.seen)
    go_on(accident)


def test_events_of_others(tmp_path: Path) -> None:
    """The same totals under other user ids: whoever was in the slot would have its budget again,
    and nobody is cut who would give it away."""
    accident = accident_in(tmp_path, FIXED.replace("allowance = 1.0", "allowance = 50.0"))
    events = {each: accident.home / f"{each}.parquet" for each in ("impressions", "conversions")}
    before = {each: pq.read_table(file) for each, file in events.items()}
    for each, file in events.items():
        ids = pa.array([f"again-{user}" for user in before[each]["user_id"].to_pylist()])
        place = before[each].schema.get_field_index("user_id")
        pq.write_table(before[each].set_column(place, "user_id", ids), file)
    with pytest.raises(LedgerError, match="the events of slot 4 are not those"):
        accident.campaign().restore(accident.seen)
    unchanged(accident)
    for each, file in events.items():
        pq.write_table(before[each], file)
    accident.campaign().restore(accident.seen)
    go_on(accident)


@pytest.mark.parametrize("version", [0, 1], ids=["names", "state alone"])
def test_what_earlier_versions_committed_to(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their releases come back from the events of then, and only from those."""

    def secret(rows: SlotRows, after: MeasuresState) -> Any:
        return rows.earlier_secrets(after)[version]

    with monkeypatch.context() as then:
        then.setattr(SlotRows, "__init__", partialmethod(SlotRows.__init__, earlier=True))
        then.setattr(SlotRows, "secret", secret)
        accident = accident_in(tmp_path, FIXED)
    events = accident.home / "conversions.parquet"
    table = pq.read_table(events)
    pq.write_table(pa.concat_tables([table.slice(0, 24), table.slice(25)]), events)
    with pytest.raises(LedgerError, match="the events of slot 4 are not those"):
        accident.campaign().restore(accident.seen)
    pq.write_table(table, events)
    accident.campaign().restore(accident.seen)
    go_on(accident)


def test_thresholds_that_were_drawn_in_a_lost_slot(tmp_path: Path) -> None:
    accident = accident_in(tmp_path, SVT, backup_after=2)
    with pytest.raises(PrivacyError, match=r"slot 3: drew the secret.*the campaign cannot go on"):
        accident.campaign().restore(accident.seen)
    assert accident.ledger.last_slot("acme", "spring") == 2


def test_files_of_another_campaign(tmp_path: Path) -> None:
    accident = accident_in(tmp_path, "scope_rho = 2.0")
    edit(accident.file, 'name = "spring"', 'name = "summer"')
    with pytest.raises(LedgerError, match=r"is slot 1 of campaign 'spring'.* of campaign 'summer'"):
        accident.campaign().restore(accident.seen)


def test_files_of_another_ledger(tmp_path: Path) -> None:
    """The same scope, campaign and slots, begun elsewhere."""
    accident = accident_in(tmp_path, witness=None)
    other = write_campaign(tmp_path / "other", 8)
    Campaign.load(other).release(through="2026-03-05")
    for slot in (1, 2, 3):
        (accident.seen / f"000{slot}.json").unlink()
    for slot in (4, 5):
        shutil.copy(
            other.parent / "adsbpc-releases" / "acme" / "spring" / f"000{slot}.json", accident.seen
        )
    with pytest.raises(LedgerError, match=r"0004\.json: was changed, or released from another"):
        accident.campaign().restore(accident.seen)
    unchanged(accident)


def test_a_gap(tmp_path: Path) -> None:
    accident = accident_in(tmp_path)
    (accident.seen / "0004.json").unlink()
    with pytest.raises(LedgerError, match=r"0005\.json: slot 4 is missing before it"):
        accident.campaign().restore(accident.seen)
    unchanged(accident)


def test_a_slot_that_nobody_has_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accident = accident_in(tmp_path)
    (accident.seen / "0005.json").unlink()
    restored = accident.campaign().restore(accident.seen)
    assert [one.release.slot for one in restored.releases] == [4]
    assert restored.lost == {"spring": [5]}
    refuse(accident, monkeypatch, "campaign 'spring', slot 5: counts as spent")
    with pytest.raises(LedgerError, match=r"has no release that the ledger lacks.*slot 5: counts"):
        accident.campaign().restore(accident.seen)


@pytest.mark.parametrize("content", [b"{", b"{}", b"\xff", b""])
def test_a_file_that_is_no_release(content: bytes, tmp_path: Path) -> None:
    accident = accident_in(tmp_path)
    (accident.seen / "0004.json").write_bytes(content)
    with pytest.raises(LedgerError, match=r"0004\.json: (is not a release|cannot be read)"):
        accident.campaign().restore(accident.seen)
    unchanged(accident)


def test_a_slot_under_a_wrong_name(tmp_path: Path) -> None:
    accident = accident_in(tmp_path)
    shutil.copy(accident.seen / "0005.json", accident.seen / "0004.json")
    with pytest.raises(LedgerError, match=r"0004\.json: is slot 5 of .*; expected slot 4"):
        accident.campaign().restore(accident.seen)


def test_a_ledger_without_the_scope(tmp_path: Path) -> None:
    accident = accident_in(tmp_path, backup_after=0)
    with pytest.raises(LedgerError, match=r"has no scope 'acme'.*Restore a backup of the ledger"):
        accident.campaign().restore(accident.seen)


def test_nothing_to_restore(tmp_path: Path) -> None:
    file = write_campaign(tmp_path, witness="elsewhere.json")
    Campaign.load(file).release(through="2026-03-02")
    restored = Campaign.load(file).restore()
    assert (len(restored.releases), restored.lost) == (0, {})


def as_an_earlier_version_wrote_it(accident: Accident) -> None:
    """Releases carried nothing, and the mark knows what they were."""
    from hashlib import sha256

    for place in (accident.home / WITNESS,):
        mark = json.loads(place.read_text())
        for slot in (4, 5):
            file = accident.seen / f"000{slot}.json"
            body = json.loads(file.read_text())
            del body["ledger"]
            file.write_text(json.dumps(body))
            mark["campaigns"]["spring"][slot - 1] = sha256(file.read_bytes()).hexdigest()
        place.write_text(json.dumps(mark))


def test_releases_of_an_earlier_version(tmp_path: Path) -> None:
    """State follows from them under histograms; under personal budgets nothing shows that the
    events are those of then. A mark has to vouch for them."""
    accident = accident_in(tmp_path / "adsbpc")
    as_an_earlier_version_wrote_it(accident)
    assert len(accident.campaign().restore(accident.seen).releases) == 2
    assert accident.campaign().verify().problem is None
    assert not accident.campaign().release(6)[0].replayed
    personal = accident_in(tmp_path / "personal", FIXED)
    as_an_earlier_version_wrote_it(personal)
    with pytest.raises(LedgerError, match=r"slot 4: its release carries no commitment.*as spent"):
        personal.campaign().restore(personal.seen)
    unchanged(personal)
    unknown = accident_in(tmp_path / "unknown")
    as_an_earlier_version_wrote_it(unknown)
    (unknown.home / WITNESS).unlink()
    with pytest.raises(LedgerError, match=r"0004\.json: carries nothing that shows"):
        unknown.campaign().restore(unknown.seen)
