"""What the ledger records and what it refuses, on SQLite and on PostgreSQL alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
import sqlalchemy
from sqlalchemy import text

from adsbpc.errors import BudgetError, LedgerError, SpecError
from adsbpc.ledger import Ledger
from adsbpc.ledger.database import LEDGER, Database, upgrade
from adsbpc.ledger.entries import Entry, entries, hash_of
from adsbpc.model import PICO_RHO, Adjacency, Budget, Release
from tests.ledger.entries import STEP, budgets, opening_of, release_of, start


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return "ledger.sqlite"
    return str(request.getfixturevalue("postgresql_database"))


@pytest.fixture
def ledger(location: str, tmp_path: Path) -> Ledger:
    return Ledger(location, tmp_path)


def engine_of(location: str, tmp_path: Path) -> sqlalchemy.Engine:
    if "://" not in location:
        return sqlalchemy.create_engine(f"sqlite:///{tmp_path / location}")
    return sqlalchemy.create_engine(location.replace("postgresql://", "postgresql+psycopg://"))


@pytest.fixture
def raw(location: str, tmp_path: Path) -> Iterator[sqlalchemy.Engine]:
    """The database without the ledger in front of it."""
    engine = engine_of(location, tmp_path)
    yield engine
    engine.dispose()


def test_a_campaign_from_start_to_end(ledger: Ledger) -> None:
    assert not ledger.exists()
    start(ledger, 3, 4)
    assert ledger.exists()
    record = ledger.campaign("acme", "spring")
    assert record is not None
    assert (record.reserved_pico_rho, record.plan.slot_pico_rho) == (PICO_RHO, (1, 2))
    stored, ours = ledger.commit(release_of(2, 3, 4), STEP)
    assert ours
    first, second = ledger.releases("acme", "spring")
    assert stored == second
    for slot, each in enumerate((first, second), start=1):
        release = Release.from_text(each)
        assert release.model_copy(update={"ledger": None}) == release_of(slot, 3, 4)
    assert ledger.steps("acme", "spring") == [STEP, STEP]
    assert ledger.steps("acme", "spring", after=1) == [STEP]
    assert ledger.last_slot("acme", "spring") == 2
    assert budgets(ledger, "spring") == (Budget(PICO_RHO, 14), Budget(PICO_RHO, 14))
    assert ledger.verify("acme").problem is None
    assert ledger.verify("acme").entries == 2 + 2 * 4


def test_a_slot_is_charged_and_stored_once(ledger: Ledger) -> None:
    first, _ = start(ledger, 5)
    again, ours = ledger.commit(release_of(1, 5, value=2), STEP, opening_of())
    assert (again, ours) == (first, False)
    assert ledger.spent("acme") == 5
    assert ledger.verify("acme").entries == 2 + 3


def test_slots_in_order(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="slot 1 is next"):
        ledger.commit(release_of(2, 5), STEP, opening_of())
    assert ledger.mark("acme") is None
    start(ledger, 1)
    with pytest.raises(LedgerError, match="slot 2 is next"):
        ledger.commit(release_of(3, 5), STEP)
    assert ledger.spent("acme") == 1


def test_a_charge_above_the_limit_is_refused_with_the_figures(ledger: Ledger) -> None:
    start(ledger, 6 * PICO_RHO // 10)
    with pytest.raises(BudgetError) as refused:
        ledger.commit(release_of(2, 4 * PICO_RHO // 10, 1), STEP)
    error = refused.value
    assert (error.requested, error.spent, error.left) == (0.400000000001, 0.6, 0.4)
    assert "requested 0.400000000001, spent 0.6, left 0.4 (rho)" in str(error)
    assert ledger.last_slot("acme", "spring") == 1
    ledger.commit(release_of(2, 4 * PICO_RHO // 10), STEP)
    assert budgets(ledger, "spring")[0].left == 0


def test_a_first_slot_that_is_refused_opens_nothing(ledger: Ledger) -> None:
    with pytest.raises(BudgetError):
        start(ledger, PICO_RHO + 1)
    assert ledger.mark("acme") is None


def test_campaigns_of_a_scope_share_its_limit(ledger: Ledger) -> None:
    start(ledger, 10, limit=Fraction(3, 2))
    too_much = opening_of(Fraction(3, 5), campaign="summer")
    for refuse in (
        lambda: ledger.check_room(too_much),
        lambda: start(ledger, rho=Fraction(3, 5), campaign="summer"),
    ):
        with pytest.raises(BudgetError, match=r"requested 0\.6, spent 1, left 0\.5"):
            refuse()
    start(ledger, 20, rho=Fraction(1, 2), campaign="summer")
    start(ledger, 5, rho=Fraction(7), scope="another")
    assert budgets(ledger, "summer") == (
        Budget(PICO_RHO // 2, 20),
        Budget(3 * PICO_RHO // 2, 30),
    )


def test_the_terms_of_a_scope_stay(ledger: Ledger) -> None:
    start(ledger)
    with pytest.raises(LedgerError, match="'add-remove', and this campaign 'substitute'"):
        start(ledger, rho=Fraction(1, 10), campaign="b", adjacency=Adjacency.SUBSTITUTE)
    with pytest.raises(LedgerError, match=r"limit of 1, and .* scope_rho says 9"):
        start(ledger, rho=Fraction(1, 10), campaign="b", limit=Fraction(9))


def test_a_scope_that_differs_in_capitals_only_is_refused(ledger: Ledger) -> None:
    start(ledger)
    with pytest.raises(LedgerError, match=r"has a scope 'acme', .* Write it the same way"):
        start(ledger, scope="Acme")


def test_seeded_noise_is_refused(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="came from 'seeded-1', which hides nobody"):
        ledger.commit(release_of(1, 5, randomness="seeded-1"), STEP, opening_of())
    assert not ledger.exists()


def test_a_campaign_that_never_started_cannot_be_charged(ledger: Ledger) -> None:
    start(ledger)
    with pytest.raises(LedgerError, match="'autumn' of scope 'acme' has not started"):
        ledger.commit(release_of(1, 5, campaign="autumn"), STEP)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE adsbpc_entries SET pico_rho = 0",
        "DELETE FROM adsbpc_entries",
        "INSERT OR REPLACE INTO adsbpc_entries SELECT * FROM adsbpc_entries",
    ],
)
def test_the_database_refuses_changes(ledger: Ledger, raw: sqlalchemy.Engine, change: str) -> None:
    start(ledger)
    if "REPLACE" in change and raw.dialect.name != "sqlite":
        change = "TRUNCATE adsbpc_entries"
    refused = pytest.raises(sqlalchemy.exc.DBAPIError, match="never changed or deleted")
    with refused, raw.begin() as connection:
        connection.execute(text(change))


_TRIGGERS = {
    "sqlite": [
        "DROP TRIGGER adsbpc_entries_no_update",
        "DROP TRIGGER adsbpc_entries_no_delete",
    ],
    "postgresql": ["DROP TRIGGER adsbpc_entries_append_only ON adsbpc_entries"],
}


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE adsbpc_entries SET pico_rho = 1 WHERE kind = 'charge' AND slot = 2",
        "UPDATE adsbpc_entries SET pico_rho = 9000000000000 WHERE kind = 'scope'",
        "UPDATE adsbpc_entries SET body = replace(body, '1.5', '1.6') WHERE kind = 'release'",
        "UPDATE adsbpc_entries SET recorded_at = '2020-01-01' WHERE position = 3",
        "UPDATE adsbpc_entries SET campaign = 'summer' WHERE slot = 1",
        "DELETE FROM adsbpc_entries WHERE kind = 'charge' AND slot = 2",
        "DELETE FROM adsbpc_entries WHERE position = 1",
    ],
)
def test_a_changed_entry_is_found(ledger: Ledger, raw: sqlalchemy.Engine, change: str) -> None:
    start(ledger, 10)
    for slot in (2, 3):
        ledger.commit(release_of(slot, 10 * slot), STEP)
    assert ledger.verify("acme").problem is None
    with raw.begin() as connection:
        for statement in _TRIGGERS[raw.dialect.name]:
            connection.execute(text(statement))
        connection.execute(text(change))
    assert "is not what was written" in str(ledger.verify("acme").problem)
    # Nothing more is released either; a changed body alone leaves the amounts as they were.
    if "body" not in change:
        with pytest.raises(LedgerError, match="Release nothing more"):
            ledger.started(opening_of().guarantee, "spring", None)


def test_an_entry_that_was_sealed_anew_breaks_the_chain(
    ledger: Ledger, raw: sqlalchemy.Engine
) -> None:
    """Whoever changes a charge and its own hash leaves the next entry pointing at the old one."""
    start(ledger, 10)
    ledger.commit(release_of(2, 20), STEP)
    with raw.begin() as connection:
        for statement in _TRIGGERS[raw.dialect.name]:
            connection.execute(text(statement))
        names = ", ".join(each.name for each in fields(Entry))
        ordered = f"SELECT {names}, hash FROM adsbpc_entries ORDER BY position"
        rows = connection.execute(text(ordered)).all()
        forged = replace(Entry(*rows[2][:-1]), pico_rho=1)
        previous = rows[1][-1]
        connection.execute(
            text("UPDATE adsbpc_entries SET pico_rho = 1, hash = :hash WHERE position = 3"),
            {"hash": forged.sealed(previous)},
        )
    assert "entry 4 (state of slot 1) is not what was written" in str(ledger.verify("acme").problem)


def _first_entry() -> sqlalchemy.Insert:
    entry = Entry("acme", 1, "scope", "", 0, "", 5, hash_of("{}"), "2026-01-01")
    row = {**asdict(entry), "body": "{}", "hash": entry.sealed("")}
    return sqlalchemy.insert(entries).values(**row)


def test_an_older_schema_is_carried_over(
    location: str, raw: sqlalchemy.Engine, tmp_path: Path
) -> None:
    with raw.begin() as connection:
        upgrade(connection, "0001")
    ledger = Ledger(location, tmp_path)
    assert ledger.exists()
    # As an older version of the program would have left it: with entries, without triggers.
    with raw.begin() as connection:
        connection.execute(_first_entry())
    start(ledger, scope="another")
    assert ledger.mark("acme") is not None
    with raw.begin() as connection:
        version = connection.execute(text("SELECT version_num FROM adsbpc_schema")).scalar()
    assert version == LEDGER.versions[-1]
    refused = pytest.raises(sqlalchemy.exc.DBAPIError, match="never changed or deleted")
    with refused, raw.begin() as connection:
        connection.execute(text("DELETE FROM adsbpc_entries"))


def test_charges_of_measures_with_the_longest_names_are_kept(
    location: str, raw: sqlalchemy.Engine, tmp_path: Path
) -> None:
    """In a ledger that an older version made, beside the longest scope and campaign."""
    with raw.begin() as connection:
        upgrade(connection, "0003")
    ledger = Ledger(location, tmp_path)
    scope, campaign = _mixed(200, 1), _mixed(200, 2)
    first = release_of(1, 5, scope=scope, campaign=campaign)
    (measured,) = first.measures
    # Several measures are charged by their name.
    renamed = [measured.model_copy(update={"measure": f"{k}{_mixed(199)}"}) for k in range(2)]
    longest = first.model_copy(update={"measures": tuple(renamed)})
    assert max(len(line.part) for line in longest.charges) > 200
    text_of_it, ours = ledger.commit(longest, STEP, opening_of(scope=scope, campaign=campaign))
    assert ours
    assert ledger.spent(scope) == 10
    assert ledger.releases(scope, campaign) == [text_of_it]
    assert ledger.verify(scope).problem is None


def _mixed(length: int, seed: int = 0) -> str:
    """Of characters with four bytes, so that no compression makes it shorter."""
    chosen = Random(seed)
    return "".join(chr(chosen.randrange(0x20000, 0x2A6DF)) for _ in range(length))


def test_a_newer_schema_is_refused(ledger: Ledger, raw: sqlalchemy.Engine) -> None:
    start(ledger)
    with raw.begin() as connection:
        connection.execute(text("UPDATE adsbpc_schema SET version_num = '9999'"))
    with pytest.raises(LedgerError, match=r"has schema 9999, .* Upgrade adsbpc"):
        ledger.exists()
    with pytest.raises(LedgerError, match="Upgrade adsbpc"):
        start(ledger)


def test_the_migrations_make_the_table_of_the_program(raw: sqlalchemy.Engine) -> None:
    """The table that the code describes is the one that the migrations build."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from adsbpc.ledger.entries import metadata

    with raw.begin() as connection:
        upgrade(connection, "head")
        context = MigrationContext.configure(connection, opts={"version_table": "adsbpc_schema"})
        assert compare_metadata(context, metadata) == []


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("mysql://host/db", "mysql:// is not supported"),
        ("://", "is no URL"),
    ],
)
def test_other_databases_are_refused(location: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=message):
        Ledger(location, tmp_path)


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    ledger = Ledger("postgresql://user:hunter2@127.0.0.1:1/db", tmp_path)
    with pytest.raises(LedgerError, match="Run the same command again") as refused:
        ledger.exists()
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in ledger.where


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    start(Ledger("ledger.sqlite", tmp_path))
    assert (tmp_path / "ledger.sqlite").stat().st_mode & 0o077 == 0


def test_commits_are_on_the_disk_when_they_return(tmp_path: Path) -> None:
    """WAL with synchronous = FULL: a commit survives losing power."""
    start(Ledger("ledger.sqlite", tmp_path))
    with Database("ledger.sqlite", tmp_path).reading() as connection:
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
