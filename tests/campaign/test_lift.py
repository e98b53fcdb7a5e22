"""Measures by arm: what is let in is what happened in each arm, to the last unit; arms are part of
a person; nobody moves between them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from adsbpc import Campaign
from adsbpc.campaign.data_path import attribute, contributed
from adsbpc.engines import Engine, Relation
from adsbpc.errors import AdsbpcError, EngineError, LedgerError, ReleaseError, SpecError
from adsbpc.events import EventTables, with_arms
from adsbpc.ledger import Ledger
from adsbpc.model import CampaignSpec
from tests.campaign.trial import (
    ARMS,
    CAMPAIGN,
    KEY,
    KEYED,
    SLOTS,
    TABLE,
    UNIT,
    Trial,
    arm_by_hash,
    trial,
    write_arms,
    write_trial,
)
from tests.effort import EVERYTHING, first

CREDITS = CAMPAIGN.replace('["publisher", "country"]', '["publisher", "arm"]')
# One arm sees all but the publisher that is listed.
THREE = KEYED.replace("0.6", "0.4\nless = 0.2") + '[lift.withholds]\nless = ["P-1"]\n'
MEASURES = (
    "buyers", "buyers by country", "people", "purchases", "purchases squared", "revenue",
    "revenue squared",
)  # fmt: skip


def kept(file: Path) -> dict[str, list[list[int]]]:
    """What was let in, by measure, slot and cell, from the secret state; nothing may be cut."""
    found: dict[str, list[list[int]]] = {}
    for step in Ledger("adsbpc-ledger.sqlite", file.parent).steps("acme", "trial"):
        for name, own in step["measures"].items():
            of_cut = len(own["multipliers"]) - 1
            cells, cut = own["kept"][-1][:-of_cut], own["kept"][-1][-of_cut:]
            assert not any(cut), f"somebody was cut of {name}: this tests something else"
            found.setdefault(name, []).append(cells)
    return found


def test_what_is_let_in_is_what_happened_in_each_arm(tmp_path: Path) -> None:
    made = trial(60)
    assert {arm_by_hash(each.user) for each in made.bought} == {*ARMS, "other"}
    file = write_trial(tmp_path, made)
    Campaign.load(file).release()
    found = kept(file)
    for measure in MEASURES:
        assert found[measure] == made.expected(measure), measure
    squares, plain = found["purchases squared"], found["purchases"]
    assert sum(map(sum, squares)) > sum(map(sum, plain)), "nobody bought twice: this tests little"


@pytest.mark.slow
def test_conversions_that_wait_for_a_touch_count_once_by_arm(tmp_path: Path) -> None:
    """Those who see ads have late touches, and the control has none: neither a conversion that is
    credited later nor one whose touch comes after the end may count twice, or not at all."""
    made = trial(60)
    assert made.seen, "nobody saw anything: this tests nothing"
    file = write_trial(tmp_path, made)
    file.write_text(file.read_text().replace("[events]", '[events]\nsettle = "0h"\nwait = "3d"'))
    seen = pq.read_table(tmp_path / "impressions.parquet")
    late = pc.add(seen["timestamp"], pa.scalar(timedelta(days=2, hours=5)))
    pq.write_table(seen.append_column("arrived_at", late), tmp_path / "impressions.parquet")
    campaign = Campaign.load(file)
    waited = [campaign.rehearse(slot).conversions for slot in range(1, 5)]
    campaign.release()
    found = kept(file)
    for measure in ("buyers", "purchases", "purchases squared", "revenue"):
        assert found[measure] == made.expected(measure), measure
    by_slot = [row[0] // UNIT for row in made.expected("purchases")]
    assert waited != by_slot, "nothing waited: this tests nothing"


@pytest.mark.parametrize("lift", [KEYED, TABLE])
def test_every_engine_has_the_same_weights(engine: Engine, lift: str, tmp_path: Path) -> None:
    """Of a slot: who comes for the first time is for the books to say, so people are told apart in
    the first slot, and everything that grows in the third."""
    made = trial(40)
    write_arms(tmp_path, [(each.user, arm_by_hash(each.user)) for each in made.bought + made.seen])
    spec = Campaign.load(write_trial(tmp_path, made, lift)).spec
    for slot in (1, 3):
        with engine.scratch():
            attributed = attribute(spec, engine, slot)
            for measure in spec.measures:
                if measure.name not in MEASURES or (measure.layout.once and slot > 1):
                    continue
                with contributed(attributed, measure) as contributions:
                    found = contributions.totals(slot).tolist()
                expected = made.expected(measure.name)[slot - 1]
                # Sums are cells where people are counted once, and otherwise in books alone.
                assert found == expected[-len(found) :], (measure.name, slot)


def test_the_key_stands_in_no_text_of_a_query(engine: Engine, tmp_path: Path) -> None:
    """An engine that fails tells its query, and Spark keeps a history of them."""
    spec = Campaign.load(write_trial(tmp_path, trial(5))).spec
    with engine.scratch():
        events = attribute(spec, engine, 1).events
        rows = with_arms(spec, events, events.conversions)
        with pytest.raises(EngineError) as failed:
            engine.rows("arms", f"SELECT no_such_column FROM {rows} AS people")
    assert "no_such_column" in failed.value.sql
    assert KEY not in str(failed.value)


def test_a_declared_table_says_who_is_where(tmp_path: Path) -> None:
    users = sorted({each.user for each in trial(60).bought})
    arms = {user: ("treatment", "control", "elsewhere")[k % 3] for k, user in enumerate(users[5:])}
    made = trial(60, arm_of=lambda user: arms[user] if arms.get(user) in ARMS else "other")
    write_arms(tmp_path, [*arms.items(), *list(arms.items())[:3]])
    file = write_trial(tmp_path, made, TABLE)
    Campaign.load(file).release()
    found = kept(file)
    for measure in MEASURES:
        assert found[measure] == made.expected(measure), measure


def test_a_table_in_which_nobody_is_in_the_control_is_refused(tmp_path: Path) -> None:
    write_arms(tmp_path, [(each.user, "treatment") for each in trial(5).bought])
    file = write_trial(tmp_path, trial(5), TABLE)
    with pytest.raises(ReleaseError, match="nobody is in the arm 'control'"):
        Campaign.load(file).release()


def test_a_table_that_is_a_file_of_events_by_another_name_is_refused(tmp_path: Path) -> None:
    file = write_trial(tmp_path, trial(5), TABLE.replace("arms.csv", "./conversions.parquet"))
    with pytest.raises(ReleaseError, match="is a file of events, and arms are never read off"):
        Campaign.load(file).release()


def test_people_in_two_arms_stop_a_start_and_are_in_no_arm_after_it(tmp_path: Path) -> None:
    users = sorted({each.user for each in trial(30).bought})
    arms = {user: ARMS[k % 2] for k, user in enumerate(users)}
    write_arms(tmp_path, [*arms.items(), (users[0], "control"), (users[0], "treatment")])
    file = write_trial(tmp_path, trial(30), TABLE)
    with pytest.raises(ReleaseError, match="1 people are in two arms"):
        Campaign.load(file).release()
    assert Campaign.load(file).status().released == 0


@pytest.mark.slow
def test_removing_anybody_leaves_all_others_as_they_are(tmp_path: Path) -> None:
    """A person's arm is part of the person: enumeration over neighbours, each with one removed."""
    made = trial(6, seed=3)
    users = sorted({each.user for each in made.bought})[: None if EVERYTHING else 1]
    file = write_trial(tmp_path / "all", made)
    Campaign.load(file).release()
    whole = kept(file)
    for number, user in enumerate(users):
        fewer = write_trial(tmp_path / str(number), made.without(user))
        Campaign.load(fewer).release()
        others = kept(fewer)
        own = Trial(
            [each for each in made.bought if each.user == user],
            [each for each in made.seen if each.user == user],
        )
        for measure in MEASURES:
            for all_cells, their_cells, my_cells in zip(
                whole[measure], others[measure], own.expected(measure), strict=True
            ):
                assert all_cells == [a + b for a, b in zip(their_cells, my_cells, strict=True)]
            arms = [cell for slot in own.expected(measure) for cell in slot[-3:]]
            assert sum(any(arms[place::3]) for place in range(3)) <= 1 or "country" in measure


def credits_by_arm(spec: CampaignSpec, engine: Engine) -> tuple[list[list[int]], list[list[int]]]:
    """What the data path contributes to credits by publisher and arm, by slot and cell; and the
    same from credits one by one."""
    measure, expected = spec.measures[0], [[0] * 6 for _ in range(SLOTS)]
    with engine.scratch():
        attributed = attribute(spec, engine)
        rows = engine.rows(
            "credits",
            f"SELECT user_id, slot, publisher_index, credit_units FROM {attributed.credits}",
        )
        for user, slot, publisher, units in rows:
            expected[slot - 1][3 * publisher + [*ARMS, "other"].index(arm_by_hash(user))] += units
        with contributed(attributed, measure) as contributions:
            found = [contributions.totals(slot).tolist() for slot in range(1, SLOTS + 1)]
    return found, expected


def test_credits_are_told_apart_by_arm(engine: Engine, tmp_path: Path) -> None:
    spec = Campaign.load(write_trial(tmp_path, trial(60), campaign=CREDITS)).spec
    found, expected = credits_by_arm(spec, engine)
    assert found == expected
    by_arm = [sum(slot[place] for slot in found) for place in range(3)]
    assert all(by_arm), "some arm has no credits: this tests little"


def test_removing_anybody_takes_away_that_persons_credits_alone(
    duckdb_engine: Engine, tmp_path: Path
) -> None:
    """Enumeration over neighbours: with everybody, without one, and that one alone."""
    made, moved = trial(12, seed=4), 0
    whole = Campaign.load(write_trial(tmp_path / "all", made, campaign=CREDITS)).spec
    everybody, _ = credits_by_arm(whole, duckdb_engine)
    users = sorted({each.user for each in made.bought} & {each.user for each in made.seen})
    for number, user in enumerate(users):
        alone = Trial(
            [each for each in made.bought if each.user == user],
            [each for each in made.seen if each.user == user],
        )
        found = []
        for name, own in (("others", made.without(user)), ("alone", alone)):
            file = write_trial(tmp_path / f"{number} {name}", own, campaign=CREDITS)
            found.append(credits_by_arm(Campaign.load(file).spec, duckdb_engine)[0])
        assert everybody == [
            [a + b for a, b in zip(*slots, strict=True)] for slots in zip(*found, strict=True)
        ]
        arms = {place % 3 for slot in found[1] for place, units in enumerate(slot) if units}
        assert len(arms) <= 1
        moved += len(arms)
    assert moved >= 3, "hardly anybody has credits: this tests little"


@pytest.mark.slow
def test_arms_that_are_read_off_events_are_found_by_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mistake: whoever comes on an even slot is in the control."""

    def by_slot(spec: CampaignSpec, events: EventTables, rows: Relation) -> Relation:
        return Relation.of(f"SELECT mistaken.*, slot % 2 AS arm_index FROM {rows} AS mistaken")

    file = write_trial(tmp_path, trial(200), campaign=CREDITS)
    monkeypatch.setattr("adsbpc.campaign.data_path.with_arms", by_slot)
    Campaign.load(file).release()
    broken = {claim.name for claim in Campaign.load(file).audit().broken}
    assert {"buyers: one arm each", "attributed: one arm each"} <= broken


@pytest.mark.parametrize("privacy", first(1, ["", 'adjacency = "substitute"']))
def test_from_files_to_the_audit(privacy: str, tmp_path: Path) -> None:
    file = write_trial(tmp_path, trial(200), privacy=privacy)
    campaign = Campaign.load(file)
    released = campaign.release()
    findings = campaign.audit()
    assert findings.held, findings.broken
    assert [one.text for one in campaign.release()] == [one.text for one in released]
    # Nobody is ever cut of people in arms, so that nothing is spent on finding out how much.
    charges = released[0].release.charges
    assert not any(line.part == "buyers: histogram" for line in charges)
    assert any(line.part == "revenue: histogram" for line in charges)


@pytest.mark.parametrize(
    ("before", "after"),
    first(
        1,
        [
            ("treatment = 0.6\ncontrol = 0.3", "treatment = 0.5\ncontrol = 0.3"),
            ("treatment = 0.6\ncontrol = 0.3", "control = 0.3\ntreatment = 0.6"),
            ("lift.key", "other.key"),
        ],
    ),
)
def test_arms_of_a_campaign_that_has_started_stay(before: str, after: str, tmp_path: Path) -> None:
    file = write_trial(tmp_path, trial(20))
    (tmp_path / "other.key").write_text("0" * 64)
    Campaign.load(file).release(1)
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))
    with pytest.raises(LedgerError, match=r"\[lift\]"):
        Campaign.load(file).release(2)
    # Who the control is, and how many people there are, is not a part of the promise.
    file.write_text(text.replace("[lift]", '[lift]\ncontrol = "treatment"'))
    Campaign.load(file).release(2)


@pytest.mark.slow
def test_what_arms_withhold_stays_once_a_campaign_has_started(tmp_path: Path) -> None:
    file = write_trial(tmp_path, trial(20), THREE, campaign=CREDITS)
    Campaign.load(file).release(1)
    text = file.read_text()
    for other in ("", '[lift.withholds]\nless = ["other"]\n'):
        file.write_text(text.replace('[lift.withholds]\nless = ["P-1"]\n', other))
        with pytest.raises(LedgerError, match=r"\[lift\] withholds: was \{'less': \['P-1'\]\}"):
            Campaign.load(file).release(2)
    file.write_text(text)
    Campaign.load(file).release(2)
    assert Campaign.load(file).audit().held


def test_a_lost_key_stops_a_campaign(tmp_path: Path) -> None:
    file = write_trial(tmp_path, trial(20))
    (tmp_path / "lift.key").unlink()
    with pytest.raises(SpecError, match=r"lift\.key is not there"):
        Campaign.load(file).release()


@pytest.mark.parametrize(
    ("lift", "message"),
    [
        (KEYED.replace("0.6", "0.8"), "add up to 1.1: expected 1 at most"),
        (KEYED.replace("0.3", "0.0"), "nobody would be in it"),
        (KEYED.replace("control", "holdout"), "there is no such arm"),
        (KEYED.replace("control = 0.3", ""), "expected two arms or more"),
        (KEYED.replace('key_file = "lift.key"', ""), "by key_file, with shares, or by table"),
        ('[lift]\ntable = "conversions.parquet"\narms = ["treatment", "control"]',
         "arms are never read off events"),
        (KEYED + "[lift.people]\ntreatment = 5", "'control' is in one of people and shares"),
        (KEYED.replace("control", "other"), "which is kept for everything"),
        (THREE.replace("less = [", "les = ["), r"\[lift.withholds\] les: there is no such arm"),
        (THREE.replace("less = [", "control = ["), "is the control, which sees nothing"),
        (THREE.replace('["P-1"]', '["P-2"]'), "'P-2' is no publisher of the campaign"),
        (THREE.replace('["P-1"]', '["P-1", "P-1"]'), "lists 'P-1' more than once"),
        (THREE.replace('["P-1"]', '["P-1", "other"]'), "withholds everything, as the control does"),
        (THREE.replace('["P-1"]', "[]"), r"\[lift.withholds\] less"),
        (THREE + 'treatment = ["other"]\n', "every arm but the control withholds something"),
    ],
)  # fmt: skip
def test_arms_that_make_no_sense_are_refused(lift: str, message: str, tmp_path: Path) -> None:
    file = write_trial(tmp_path, trial(1), lift)
    with pytest.raises(SpecError, match=message):
        Campaign.load(file)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('metric = "squared_value"\nvalue_cap = 80.0', 'metric = "squared_value"\nvalue_cap = 9.0',
         "how much people differ is not known"),
        ('["arm", "country"]', '["country", "arm"]', "Name arm first"),
        ('"converters"\nby = ["arm"]', '"clicks"\nby = ["arm"]', "counts clicks by arm"),
        ('by = ["publisher", "country"]', 'by = ["publisher", "country", "arm"]',
         "by publisher first and arm next"),
        ('by = ["publisher", "country"]', 'metric = "clicks"\nby = ["publisher", "arm"]',
         "credits of arms are conversions or value"),
        ("[dimensions.country]\ncolumn", "[dimensions.arm]\ncolumn", "never read off events"),
        ("{lift}", "", "there is no .lift."),
    ],
)  # fmt: skip
def test_measures_by_arm_that_make_no_sense_are_refused(
    before: str, after: str, message: str, tmp_path: Path
) -> None:
    assert before in CAMPAIGN
    file = write_trial(tmp_path, trial(1), campaign=CAMPAIGN.replace(before, after))
    with pytest.raises(SpecError, match=message):
        Campaign.load(file)


def test_eligibility_alone_is_no_trial(tmp_path: Path) -> None:
    head, _, tail = CAMPAIGN.partition('[[measure]]\nname = "buyers"')
    reach = '[[measure]]\nname = "people"\nmetric = "reach"\nby = ["arm"]\n'
    file = write_trial(tmp_path, trial(1), campaign=head + reach)
    assert "squared" in tail
    with pytest.raises(AdsbpcError, match="measures by arm count reach, and lift needs"):
        Campaign.load(file)
