"""The database itself refuses to change or delete an entry."""

from alembic import op

revision = "0002"
down_revision = "0001"

_MESSAGE = "entries of the ledger are never changed or deleted"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER entries_no_{change.lower()} BEFORE {change} ON entries "
                f"BEGIN SELECT RAISE(ABORT, '{_MESSAGE}'); END"
            )
        return
    op.execute(
        "CREATE FUNCTION entries_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_MESSAGE}'; END $$"
    )
    op.execute(
        "CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION entries_append_only()"
    )
