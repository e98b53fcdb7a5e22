"""Room for the name of a measure, which may be long, before the part that a charge is for."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    # SQLite holds texts of any length; PostgreSQL changes its catalogue and no entry.
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("adsbpc_entries", "part", type_=sa.String(250))
