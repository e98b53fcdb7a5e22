"""The database itself refuses to change, replace or delete an entry."""

from alembic import op

revision = "0002"
down_revision = "0001"

_TABLE = "adsbpc_entries"
_MESSAGE = "entries of the ledger are never changed or deleted"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        refuse = f"BEGIN SELECT RAISE(ABORT, '{_MESSAGE}'); END"
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {_TABLE}_no_{change.lower()} BEFORE {change} ON {_TABLE} {refuse}"
            )
        # INSERT OR REPLACE deletes without asking the trigger above.
        op.execute(
            f"CREATE TRIGGER {_TABLE}_no_replace BEFORE INSERT ON {_TABLE} WHEN EXISTS ("
            f"SELECT 1 FROM {_TABLE} AS old WHERE old.scope = NEW.scope AND ("
            "old.position = NEW.position OR (old.campaign = NEW.campaign AND old.slot = NEW.slot"
            f" AND old.kind = NEW.kind AND old.part = NEW.part))) {refuse}"
        )
        return
    op.execute(
        f"CREATE FUNCTION {_TABLE}_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_MESSAGE}'; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {_TABLE}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {_TABLE} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {_TABLE}_append_only()"
    )
