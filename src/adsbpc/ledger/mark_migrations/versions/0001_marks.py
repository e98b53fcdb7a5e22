"""Marks of scopes."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "adsbpc_marks",
        sa.Column("scope", sa.String(200), primary_key=True),
        sa.Column("mark", sa.Text, nullable=False),
    )
